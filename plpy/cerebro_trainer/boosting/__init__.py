"""Boosted trees: their state as arrays, growing by LightGBM, and predictions."""
