"""The part of cerebro_db that runs inside a PostgreSQL backend.

It uses the standard library only (and psycopg2 in one module), so that loading it can neither crash a
backend nor start a thread in it. Everything numerical happens in the trainer, a process of its own.
"""
