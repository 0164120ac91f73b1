"""A run on a terminal or in pictures: all that is drawn from records."""
