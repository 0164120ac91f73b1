"""Repeat the published comparison of model hopping with other methods.

The same selection runs with model hopping, a parameter server, synchronous data parallelism,
averaging, and tasks over full copies of the rows.
"""
