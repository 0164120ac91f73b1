"""One module per template: the architecture for a table."""
