"""Boosted trees as they are stored: modules of the trainer, by links."""
