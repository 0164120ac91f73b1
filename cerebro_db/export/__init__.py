"""Models and runs as files that other programs read: what the database has, without the
database.
"""
