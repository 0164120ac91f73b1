"""Live view of a run on a terminal, with keys that control the run."""
