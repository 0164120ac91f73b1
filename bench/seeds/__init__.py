"""The table that model hopping is known by, made again: the same selection by hopping, by a
parameter server, by synchronous data parallelism, by averaging, and by tasks over full copies of
the rows."""
