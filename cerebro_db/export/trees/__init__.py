"""Boosted trees as files: LightGBM's text, and an ONNX graph."""
