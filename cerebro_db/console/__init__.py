"""A run on a terminal while it goes on, and keys by which whoever watches it steers it."""
