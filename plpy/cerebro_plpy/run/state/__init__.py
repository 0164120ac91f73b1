"""The state of a run and of each of its configurations."""
