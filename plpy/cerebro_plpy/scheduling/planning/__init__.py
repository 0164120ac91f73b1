"""The plan of a run, estimated by simulation."""
