"""Estimates before training, and the strategy that is chosen from them."""
