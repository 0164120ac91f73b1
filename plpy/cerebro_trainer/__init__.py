"""The trainer: the process that runs the deep-learning framework outside the database backends.

A backend starts a trainer (`python -I -m cerebro_trainer`) and communicates with it over one
socket; docs/internals/wire.md describes the protocol. An error of a framework, even a lack of
memory, ends in this process: it costs one visit, never a database server.
"""
