"""The quality of models on real tables, beside that of other libraries with as much time."""
