"""Programs on PyTorch."""
