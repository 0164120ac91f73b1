"""Limits on the cost of runs, and fair shares among them."""
