"""The epoch loop, and everything that decides within it."""
