"""Packed tables, made by preprocessors and read by fit."""
