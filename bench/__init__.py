"""Measures cerebro_db beside other ways to do the same work; see docs/internals/benchmarks.md."""
