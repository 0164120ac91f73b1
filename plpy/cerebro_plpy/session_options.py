"""Settings of worker sessions: what these must not inherit from the role, the database or the caller."""

from __future__ import annotations

from collections.abc import Mapping

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

# Greenplum 7 is as old as PostgreSQL 12.
NEWER = ("idle_session_timeout", "client_connection_check_interval")
GREENPLUM = {
    # The other planner sends statements for one segment to all of them.
    "optimizer": "off",
    "gp_enable_multiphase_agg": "on",
    # Trainers live as long as the processes that started them.
    "gp_vmem_idle_resource_timeout": "0",
    # Nor do processes that read on other segments end because a session waits for a lock.
    "resource_cleanup_gangs_on_wait": "off",
    "gp_autostats_mode": "none",
    "gp_autostats_mode_in_functions": "none",
    "default_table_access_method": "heap",
    # States lie in the order in which they were written.
    "synchronize_seqscans": "off",
}


# A state of megabytes arrives in a third of the time of udpifc; each of many short statements takes a little longer.
DIRECT = {"gp_interconnect_type": "tcp"}


def options(greenplum: bool, proxied: bool) -> Mapping[str, str]:
    """The settings of a worker session on either platform; `proxied` is a Greenplum whose rows move through proxies."""
    if not greenplum:
        return OPTIONS
    common = {name: value for name, value in OPTIONS.items() if name not in NEWER}
    return {**common, **GREENPLUM, **({} if proxied else DIRECT)}
