"""Trainers forked from a process that has imported their framework, and nothing of any user.

One for each framework of a server. A fork takes milliseconds where the import takes seconds,
computes the same bits, and shares the memory of what was imported. docs/wire.md describes how a
backend asks for one.
"""
