"""One function per SQL function, a module per file of sql/: the way in, and nothing below knows of it."""
