"""Allowed architectures, and their rewriting: modules of the trainer, by symbolic links."""
