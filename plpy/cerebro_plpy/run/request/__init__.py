"""The request of a run, and the jobs of its visits."""
