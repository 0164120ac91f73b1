"""Settings of worker sessions, and translation of their driver's errors."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.database.platform_protocol import Caller, Platform
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import MESSAGE_PREFIX, CerebroError, ConnectionFailure, find_error_class

# Settings on every platform, which adds its own: see `Platform.session_options`.
COMMON_OPTIONS = {
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "default_transaction_isolation": "read\\ committed",
    "default_transaction_read_only": "off",
    "default_transaction_deferrable": "off",
    "row_security": "on",
    "synchronous_commit": "off",
    # A hashed aggregate would keep all blocks of a table in memory at once.
    "enable_hashagg": "off",
    # All rows of a cursor are fetched.
    "cursor_tuple_fraction": "1",
    # Ordered reads use an index; sorting a state would write it to disk.
    "enable_sort": "off",
    # Compiling a statement takes longer than its few function calls.
    "jit": "off",
    "search_path": "pg_catalog,pg_temp",
    "standard_conforming_strings": "on",
    "bytea_output": "hex",
    # Formats of values that are sent or hashed as texts, such as ids of predicted rows.
    "datestyle": "ISO,\\ YMD",
    "intervalstyle": "postgres",
    "extra_float_digits": "1",
    "array_nulls": "on",
    "client_encoding": "UTF8",
    "client_min_messages": "warning",
}
# Settings since PostgreSQL 14: an idle worker session waits for its caller, and ends with it.
OPTIONS_SINCE_14 = {"idle_session_timeout": "0", "client_connection_check_interval": "500"}


def common_options(db: Caller) -> dict[str, str]:
    """Return the settings that worker sessions have on every platform."""
    if int(db.value(sql("session.setting"), "server_version_num")) < 140000:
        return dict(COMMON_OPTIONS)
    return {**COMMON_OPTIONS, **OPTIONS_SINCE_14}


def translate(error: Any, platform: Platform) -> CerebroError:
    """Return psycopg2's error as ours, with the server's code, detail and hint."""
    if error.pgcode is None:
        return ConnectionFailure(f"a worker session was lost: {str(error).strip()}")
    diag = error.diag
    server_message = diag.message_primary or str(error)
    message = platform.clean_message(server_message).removeprefix(MESSAGE_PREFIX)
    loss = platform.translate_loss(error.pgcode, server_message)
    if loss is not None:
        return loss
    if error.pgcode.startswith("57P"):
        return ConnectionFailure(f"a worker session was ended by the server: {message}")
    translated = find_error_class(error.pgcode)(
        message, hint=diag.message_hint, detail=diag.message_detail
    )
    translated.sqlstate = error.pgcode
    return translated
