"""What a call does, from its arguments to its tables."""
