"""The tables and models that users name."""
