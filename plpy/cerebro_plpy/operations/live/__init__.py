"""Calls about a run in the log: commands, background runs, resuming, the plan of a run."""
