"""A run: its epoch loop, its log, its workers, and what a replay repeats."""
