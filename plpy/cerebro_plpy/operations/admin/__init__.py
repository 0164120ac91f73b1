"""Calls of administrators, and help."""
