"""Custom settings of the caller, such as app.tenant_id, for the session that reads a source.

Policies and views can depend on custom settings, so a session that reads for the caller has the
same ones. Their values may be secrets. They travel only in the startup packet of that session,
which no log and no view of the server shows: a statement or a parameter would be logged.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Sequence
from typing import Any

from cerebro_plpy.database.definitions import (
    check_session_dependencies,
    read_source_definitions,
    refuse_computed_names,
)
from cerebro_plpy.database.platform_protocol import Reader, Table
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.reading import SettingValues
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sessions.sql_errors import read_sqlstate
from cerebro_plpy.errors import (
    FeatureNotSupported,
    InsufficientPrivilege,
    LimitExceeded,
    ObjectNotReady,
)
from cerebro_plpy.nouns import count_nouns

# Limit of all options: the server silently drops connections with larger packets than 10,000.
MAX_BYTES = 8000
# Added to the buffer: if it is too small, the server raises an error that Python cannot pass.
SPARE_BYTES = 65536
SIZE_BYTES = ctypes.sizeof(ctypes.c_size_t)
NUMBER_BYTES = 4
BYTE_ORDER = sys.byteorder
# Name, value, and file with a line number, if any; then the numbers of source and context.
ENTRY = re.compile(rb"([^\0]+)\0[^\0]*\0(?:[^\0]+\0.{4}|\0)(.{4})(.{4})", re.DOTALL)
MAX_SOURCE = 31  # PostgreSQL has 13 sources of settings.
MAX_CONTEXT = 6
# The server splits startup options at whitespace, and reads a backslash as an escape.
ESCAPED_CHARACTERS = re.compile(r"[\\\s]")
# The server ends the name of a startup option at =, and reads - as _.
FORBIDDEN_IN_NAMES = re.compile(r"[-=]")


class CustomSettings(dict[str, str]):
    """Values of settings by name; the repr shows only names."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(sorted(self))})"


def read_custom_settings(db: Database, sources: Sequence[Table] = ()) -> CustomSettings:
    """Return the custom settings that are in effect in the caller's session.

    A setting that was reset is '' here, as is one that only new sessions of the role have:
    PostgreSQL cannot unset it.

    Args:
        db: the caller's session.
        sources: the relations that are read. Names in their policies, views and functions are
            looked up, too: PostgreSQL does not list a setting that was reset.

    Raises:
        FeatureNotSupported: the server does not list its settings, and a policy computes the name
            of one.
    """
    changed = list_changed_settings()
    definitions = read_source_definitions(db, sources)
    if changed is None:
        refuse_computed_names(definitions)
    literal_names = {name for definition in definitions for name in definition.names}
    candidates = [*literal_names, *(changed or ())]
    names = {name.lower(): name for name in candidates if "." in name}
    values: dict[str, str] = {}
    for row in db.rows(sql("custom.settings"), sorted(names.values())):
        if row["context"] in (None, "user"):
            values.update(_read_value(db, row["name"], row["is_default"]))
    return CustomSettings(values)


def read_settings_for_reader(db: Database, sources: Sequence[Table]) -> CustomSettings:
    """Return the caller's custom settings for another session that reads these sources.

    Raises:
        FeatureNotSupported: rows depend on session state that another session does not share.
    """
    for source in sources:
        check_session_dependencies(db, source)
    return read_custom_settings(db, sources)


def _read_value(db: Database, name: str, is_default: bool) -> SettingValues:
    """Return a setting by its name; empty if it is not set, or if the caller cannot set it.

    A setting that only privileged roles may read can be set only by them.
    """
    values: list[str | None] = []
    error = db.find_error(lambda: values.append(db.value(sql("custom.value"), name)))
    if error is None:
        (value,) = values
        if value is None and not is_default:
            return {}
        return {name: value or ""}
    if read_sqlstate(error) != InsufficientPrivilege.sqlstate:
        raise error
    return {}


def escape_startup_options(settings: SettingValues) -> CustomSettings:
    """Return names and values as they stand in `-c name=value`, a session's startup option.

    Raises:
        LimitExceeded: the settings are too long for the startup packet.
        FeatureNotSupported: the name of a setting cannot be a startup option.
    """
    escaped = {_escape_name(name): _escape(value) for name, value in settings.items()}
    size = sum(len(f"-c {name}={value} ".encode()) for name, value in escaped.items())
    if size > MAX_BYTES:
        raise LimitExceeded(
            f"custom settings of this session take {count_nouns(f'{size:,}', 'byte')}; at most "
            f"{MAX_BYTES:,} can be passed to the session that reads",
            hint="Set the longest of them to '' before the call if the source does not need it, "
            "or to a key under which a policy finds the rest in a table.",
        )
    return CustomSettings(escaped)


def _escape(text: str) -> str:
    return ESCAPED_CHARACTERS.sub(r"\\\g<0>", text)


def _escape_name(name: str) -> str:
    if FORBIDDEN_IN_NAMES.search(name):
        raise FeatureNotSupported(
            f"the name of custom setting {name!r} contains - or =, so it cannot be passed to the "
            "session that reads",
            hint="Give it a name of letters, digits, underscores and dots; or call from a session "
            "that has not set it.",
        )
    return _escape(name)


def check_custom_settings(session: Reader, settings: SettingValues) -> None:
    """Check that the session that reads has the same values.

    Raises:
        ObjectNotReady: a value differs, for instance because a login trigger or a preloaded
            library changes it.
    """
    if not settings:
        return
    values = dict(session.run(sql("custom.values"), (list(settings),)))
    different = sorted(name for name, value in settings.items() if values.get(name) != value)
    if different:
        raise ObjectNotReady(
            "the session that reads has other values of the custom settings "
            f"{', '.join(different)} than this one",
            hint="Look for event triggers on login, and for libraries in "
            "session_preload_libraries, that change them.",
        )


def list_changed_settings() -> list[str] | None:
    """Return the names of all settings that differ from their defaults.

    The server serializes these settings for the workers of a parallel query. Nothing else lists
    custom settings. None if the server does not export the functions for it.
    """
    try:
        server: Any = ctypes.CDLL(None)
        estimate = server.EstimateGUCStateSpace
        serialize = server.SerializeGUCState
    except AttributeError:
        return None
    estimate.restype = ctypes.c_size_t
    serialize.argtypes = (ctypes.c_size_t, ctypes.c_void_p)
    serialize.restype = None
    size = int(estimate()) + SPARE_BYTES
    buffer = ctypes.create_string_buffer(size)
    serialize(size, buffer)
    return parse_names(buffer.raw)


def parse_names(state: bytes) -> list[str] | None:
    """Return the names of settings that the server has serialized; None for any other bytes.

    PostgreSQL 15 and newer add the role that has set a value. Only the total length tells which
    format the bytes have.
    """
    size = int.from_bytes(state[:SIZE_BYTES], BYTE_ORDER)
    end = SIZE_BYTES + size
    if len(state) < end:
        return None
    entries = state[SIZE_BYTES:end]
    for role_bytes in (NUMBER_BYTES, 0):
        try:
            return _parse_entries(entries, role_bytes)
        except ValueError:
            continue
    return None


def _parse_entries(entries: bytes, role_bytes: int) -> list[str]:
    """Return the names of the entries; raise ValueError if they have another format."""
    names = []
    position = 0
    while position < len(entries):
        match = ENTRY.match(entries, position)
        if match is None:
            raise ValueError("the last setting is cut off")
        position = match.end() + role_bytes
        name, *numbers = match.groups()
        names.append(name.decode())
        source, context = (int.from_bytes(number, BYTE_ORDER) for number in numbers)
        if not names[-1].isprintable() or source > MAX_SOURCE or context > MAX_CONTEXT:
            raise ValueError("these are no settings")
    if position > len(entries):
        raise ValueError("the last setting is cut off")
    return names
