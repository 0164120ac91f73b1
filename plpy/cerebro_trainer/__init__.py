"""The trainer: the process that holds the deep-learning framework, so that no database backend has
to.

A backend starts one (`python -I -m cerebro_trainer`) and speaks to it over one socket: docs/wire.md
has the protocol. Whatever goes wrong in a framework, memory included, ends here and costs one
visit, never a database server.
"""
