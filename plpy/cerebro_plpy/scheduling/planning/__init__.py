"""The plan of a run, from estimates by simulation."""
