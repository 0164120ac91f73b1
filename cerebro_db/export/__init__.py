"""Export of models and runs to files and registries that other programs read."""
