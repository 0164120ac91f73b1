"""Keras models from architectures; rewriting an architecture is the safety check."""
