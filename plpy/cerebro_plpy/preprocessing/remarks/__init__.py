"""Remarks about columns that may not be what they are taken for."""
