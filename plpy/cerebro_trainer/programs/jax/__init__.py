"""Programs on JAX."""
