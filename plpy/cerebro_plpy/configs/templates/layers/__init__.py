"""Parts of networks that templates are built from."""
