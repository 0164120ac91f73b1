"""Sessions, statements, names and catalogs of the database; nothing of learning."""
