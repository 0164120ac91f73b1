"""Training of the members of a version again, on all rows."""
