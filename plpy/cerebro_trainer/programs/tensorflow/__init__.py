"""Programs on TensorFlow."""
