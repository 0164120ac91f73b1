"""The differences between PostgreSQL and Greenplum, behind one protocol."""
