"""Commands of the command line, a module for each group of them; each imports what it needs when it
is called.
"""
