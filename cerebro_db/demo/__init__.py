"""The demo: a training on real images, from an empty database to predictions."""
