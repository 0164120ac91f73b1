"""Search spaces, their distributions, and the search that a call names."""
