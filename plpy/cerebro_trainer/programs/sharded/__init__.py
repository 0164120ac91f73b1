"""Programs whose model does not fit into the memory of the trainer."""
