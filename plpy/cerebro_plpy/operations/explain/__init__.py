"""Calls that measure and explain a model by name."""
