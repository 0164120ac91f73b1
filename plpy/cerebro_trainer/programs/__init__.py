"""Compiled models that many configs share: one module per framework behind one protocol."""
