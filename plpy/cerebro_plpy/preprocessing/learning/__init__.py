"""The recipe of a table, learned from its training rows."""
