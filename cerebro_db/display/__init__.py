"""Text, charts and files that are made from records of runs and models."""
