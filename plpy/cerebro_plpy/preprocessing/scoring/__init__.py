"""Scores of predictions, and drift of rows."""
