"""What worker sessions are told when they are opened, and what their driver reports."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.database.platform_protocol import Platform
from cerebro_plpy.errors import CerebroError, ConnectionFailure, by_sqlstate

# On every platform, which adds its own: see `Platform.session_options`.
ALWAYS = {
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
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
    # Values that travel as texts, such as the ids of predicted rows, or that are hashed as texts.
    "datestyle": "ISO,\\ YMD",
    "intervalstyle": "postgres",
    "extra_float_digits": "1",
    "array_nulls": "on",
    "client_encoding": "UTF8",
    "client_min_messages": "warning",
}
# What came with PostgreSQL 14: an idle worker session waits for its caller, and ends where that is
# gone.
SINCE_14 = {"idle_session_timeout": "0", "client_connection_check_interval": "500"}


def options(version: int) -> dict[str, str]:
    """The settings that worker sessions have on every platform, by the server's
    server_version_num.
    """
    return {**ALWAYS, **(SINCE_14 if version >= 140000 else {})}


def translate(error: Any, platform: Platform) -> CerebroError:
    """An error of psycopg2 as ours, with the code, detail and hint that the server gave."""
    if error.pgcode is None:
        return ConnectionFailure(f"a worker session was lost: {str(error).strip()}")
    diag = error.diag
    told = diag.message_primary or str(error)
    message = platform.message(told).removeprefix("plpy.Error: ")
    lost = platform.lost(error.pgcode, told)
    if lost is not None:
        return lost
    ours = by_sqlstate(error.pgcode)(message, hint=diag.message_hint, detail=diag.message_detail)
    ours.sqlstate = error.pgcode
    if error.pgcode.startswith("57P"):
        return ConnectionFailure(f"a worker session was ended by the server: {message}")
    return ours
