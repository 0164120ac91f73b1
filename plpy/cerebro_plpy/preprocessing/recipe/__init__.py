"""Recipes: the features of raw columns, as records, as JSON and as SQL."""
