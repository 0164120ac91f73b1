"""The embedded server: a private PostgreSQL next to the virtual environment."""
