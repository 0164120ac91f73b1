"""The kinds of columns, one module each: everything that the backend knows of a kind."""
