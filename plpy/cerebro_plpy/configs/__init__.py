"""The parameters of a configuration, and the choice of configurations to try; pure functions."""
