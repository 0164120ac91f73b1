"""A segment's rows as arrays: decoded, kept, ordered, weighted."""
