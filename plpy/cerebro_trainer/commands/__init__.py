"""The commands of a trainer, one for each request; docs/wire.md describes them."""
