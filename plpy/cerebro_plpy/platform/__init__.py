"""What differs between PostgreSQL and Greenplum, behind one protocol."""
