"""The adapter for Greenplum."""
