"""Packed tables: how they are made, and how they are read."""
