"""Pages on which runs are looked at in a browser."""
