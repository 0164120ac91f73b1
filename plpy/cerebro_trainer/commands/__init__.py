"""The commands of a trainer, one for each request; docs/internals/wire.md describes them."""
