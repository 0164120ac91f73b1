"""Trained models: by name, by table, and their grants."""
