"""From an architecture to a Keras model; its rewriting is the safety check."""
