"""A config's state as bytes that hold no code, and the mean of several."""
