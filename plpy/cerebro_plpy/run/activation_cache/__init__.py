"""Outputs of frozen layers, computed once and stored."""
