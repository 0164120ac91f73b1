"""The rows of a source: samples, statistics, splits, groups, weights."""
