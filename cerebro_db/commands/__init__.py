"""Commands of the command line, one module for each group.

A module imports the libraries of a command only when the command runs.
"""
