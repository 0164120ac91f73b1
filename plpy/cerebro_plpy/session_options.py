"""Settings of worker sessions: what these must not inherit from the role, the database or the caller."""

from __future__ import annotations

OPTIONS = {
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "client_connection_check_interval": "500",
    "default_transaction_isolation": "read\\ committed",
    "default_transaction_read_only": "off",
    "default_transaction_deferrable": "off",
    "row_security": "on",
    "synchronous_commit": "off",
    # A hashed aggregate would hold all blocks of a table in memory at once.
    "enable_hashagg": "off",
    # All rows of a cursor are fetched.
    "cursor_tuple_fraction": "1",
    # What is read in order is read by an index; sorting a state would write it to disk.
    "enable_sort": "off",
    # Compiling a statement takes longer than the few calls in it.
    "jit": "off",
    "search_path": "pg_catalog,pg_temp",
    "standard_conforming_strings": "on",
    "bytea_output": "hex",
    # Values that travel as texts, such as the ids of predicted rows.
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "extra_float_digits": "1",
    "array_nulls": "on",
    "client_encoding": "UTF8",
    "client_min_messages": "warning",
}
