"""Calls that predict and evaluate."""
