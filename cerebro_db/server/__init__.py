"""The embedded server: a private PostgreSQL beside the virtual environment."""
