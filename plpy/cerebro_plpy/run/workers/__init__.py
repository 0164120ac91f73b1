"""Workers of a run: their tasks, their admission, their cost."""
