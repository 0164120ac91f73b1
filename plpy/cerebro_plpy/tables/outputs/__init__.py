"""Output tables of runs."""
