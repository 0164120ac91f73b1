"""Data in the trainer: decoding of what SQL sends, cached datasets, and the order of rows."""
