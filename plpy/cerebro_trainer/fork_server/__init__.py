"""The fork server, which forks trainers from a process that has imported their framework.

There is one fork server for each framework of a database server; its process is titled
"cerebro_nursery". It has no data of any user. A fork takes milliseconds instead of the seconds of
an import, computes the same bits, and shares the memory of the imported libraries.
docs/internals/wire.md describes the requests of backends.
"""
