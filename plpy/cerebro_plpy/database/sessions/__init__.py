"""Sessions: the caller's own, and those that a run opens."""
