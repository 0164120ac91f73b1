"""What worker sessions are told when they are opened, and what their driver reports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cerebro_plpy.errors import CerebroError, ConnectionFailure, SegmentLost, by_sqlstate

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


SEGMENT_LOST = "58M01"  # Greenplum's: a segment does not answer, or not as the one that it was
_SEGMENT = re.compile(r"  \(seg\d+ [^()]*pid=\d+\)$")  # what Greenplum adds to a message that came from a segment


def translated(error: Any) -> CerebroError:
    """An error of psycopg2 as ours, with the code, detail and hint that the server gave."""
    if error.pgcode is None:
        return ConnectionFailure(f"a worker session was lost: {str(error).strip()}")
    diag = error.diag
    message = _SEGMENT.sub("", diag.message_primary or str(error)).removeprefix("plpy.Error: ")
    ours = by_sqlstate(error.pgcode)(message, hint=diag.message_hint, detail=diag.message_detail)
    ours.sqlstate = error.pgcode
    if error.pgcode.startswith("57P"):
        return ConnectionFailure(f"a worker session was ended by the server: {message}")
    if error.pgcode == SEGMENT_LOST:
        return SegmentLost(f"a segment was lost: {message.splitlines()[0]}")
    return ours
