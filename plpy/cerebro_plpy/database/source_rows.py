"""The rows of a source, read once and from one snapshot of the database.

A table is read in place. A view, a foreign table or a table with row security is evaluated once,
under the caller's path and formats, into an unlogged table in schema cerebro_state that the same
transaction drops. If nothing can be written, each statement evaluates the source behind a fence.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from cerebro_plpy.database.platform_protocol import Caller, Reader, Table, read_value
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.reading import Reading, SettingValues, configuration
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sql.identifiers import quote_identifier, quote_qualified
from cerebro_plpy.database.sql.literals import literal
from cerebro_plpy.errors import DiskFull, InsufficientPrivilege

if TYPE_CHECKING:
    from cerebro_plpy.database.sessions.worker_sessions import WorkerSession

SCHEMA = "cerebro_state"
SYSTEM_COLUMNS = ("tableoid", "xmin", "cmin", "xmax", "cmax", "ctid", "oid", "gp_segment_id")
# A copy may take this share of the disk space that is free when it begins.
MAX_DISK_SHARE = 0.5
# Takes an item of FROM and its columns; returns an item that also reports the rows read.
Watch = Callable[[str, Sequence[str]], str]


class Copy(NamedTuple):
    """A copied source."""

    source: Table
    name: str  # quoted name of the copy
    bytes: int


class OpenedTable(NamedTuple):
    """A table that a call reads: see `platform_protocol.Table`."""

    spelling: str
    oid: int
    quoted: str
    query: None = None


def unwatched(source: str, columns: Sequence[str]) -> str:
    """Return the item of FROM for a source whose progress is not reported."""
    return source


class SourceRows:
    """The sources of one call, each of which is opened once.

    Args:
        session: reads the rows under pinned settings, within a transaction.
        run_as_caller: runs a statement in the same transaction under the settings of a `Reading`.
            None if nothing may be written; then `session` itself reads under these settings.
    """

    def __init__(self, session: Reader, run_as_caller: Callable[[str], object] | None) -> None:
        self.session = session
        self.copies: list[Copy] = []
        self._run_as_caller = run_as_caller
        self._tables: list[str] = []

    @property
    def writes(self) -> bool:
        """True if tables may be created."""
        return self._run_as_caller is not None

    def name_table(self, kind: str) -> str:
        """Return the quoted name of a table that the caller creates, and that `close` drops."""
        self._tables.append(quote_qualified((SCHEMA, f"{kind}_{secrets.token_hex(8)}")))
        return self._tables[-1]

    def open(self, source: Table, columns: Sequence[str], watch: Watch = unwatched) -> str:
        """Return the item of FROM for these columns of a source.

        Args:
            watch: reports the progress while the source is copied.

        Raises:
            InsufficientPrivilege: columns may not be read.
        """
        check_readable(self.session, source, columns)
        if not is_evaluated(self.session, source):
            return source.quoted
        if self._run_as_caller is None:
            return fenced_item(source, columns)
        return self._copy(source, columns, watch(source.quoted, columns))

    def open_table(
        self, source: Table, columns: Sequence[str], watch: Watch = unwatched
    ) -> OpenedTable:
        """Return a table with these columns, as `open` does: the source itself, or its copy."""
        copies = len(self.copies)
        quoted = self.open(source, columns, watch)
        if len(self.copies) == copies:
            return OpenedTable(source.spelling, source.oid, quoted)
        oid = read_value(self.session, sql("reading.oid", literal=literal(self.copies[-1].name)))
        return OpenedTable(source.spelling, int(oid), quoted)

    def _copy(self, source: Table, columns: Sequence[str], from_item: str) -> str:
        assert self._run_as_caller is not None
        name = self.name_table("source")
        self._run_as_caller(
            sql("reading.copy", copy=name, columns=copied_columns(columns), source=from_item)
        )
        size = read_value(self.session, sql("reading.copied", literal=literal(name)))
        self.copies.append(Copy(source, name, int(size)))
        return copy_item(name, columns)

    def close(self) -> None:
        """Drop the tables of this call."""
        for name in self._tables:
            self.session.run(sql("reading.drop", table=name))


def copied_names(columns: Sequence[str]) -> dict[str, str]:
    """Return the name that each column has in a copy.

    A column of a view may have the name of a system column, which a table cannot have.

    >>> copied_names(["a", "ctid", "ctid_0"])
    {'a': 'a', 'ctid': 'ctid_1', 'ctid_0': 'ctid_0'}
    """
    names = {column: column for column in columns}
    for column in columns:
        if column in SYSTEM_COLUMNS:
            names[column] = _free_name(column, columns)
    return names


def copied_columns(columns: Sequence[str]) -> str:
    """Return the SELECT list that creates a copy with `copied_names` from a source t."""
    return ", ".join(
        f"t.{quote_identifier(column)} AS {quote_identifier(name)}"
        for column, name in copied_names(columns).items()
    )


def copy_item(table: str, columns: Sequence[str]) -> str:
    """Return the item of FROM that gives the columns of a copy their original names."""
    names = copied_names(columns)
    if all(name == column for column, name in names.items()):
        return table
    select_list = ", ".join(
        f"t.{quote_identifier(name)} AS {quote_identifier(column)}"
        for column, name in names.items()
    )
    return sql("reading.kept", columns=select_list, table=table)


def _free_name(column: str, names: Sequence[str]) -> str:
    return next(name for number in count() if (name := f"{column}_{number}") not in names)


def fenced_item(source: Table, columns: Sequence[str]) -> str:
    """Return the item of FROM for these columns of a source that the statement evaluates."""
    select_list = ", ".join(f"t.{quote_identifier(column)}" for column in columns)
    name = source.quoted if source.query is None else source.query.name
    return sql("reading.fence", columns=select_list, source=name)


def is_evaluated(session: Reader, source: Table) -> bool:
    """Return True if reading a source runs code of users, or fetches rows from another server."""
    if source.query is not None:
        return True
    return bool(session.run(sql("reading.kind"), (source.oid, source.oid))[0][1])


def read_kind(session: Reader, source: Table) -> str:
    """Return the kind of a source, as version records and messages contain it."""
    if source.query is not None:
        return "query"
    kinds = {"v": "view", "m": "materialized view", "f": "foreign table", "p": "partitioned table"}
    rows = session.run(sql("reading.kind"), (source.oid, source.oid))
    return kinds.get(rows[0][0], "table")


def check_readable(session: Reader, source: Table, columns: Sequence[str]) -> None:
    """Raise InsufficientPrivilege if the current user may not read all of these columns."""
    denied = session.run(sql("reading.columns"), (source.oid,))
    missing = [name for name in columns if (name,) in denied]
    if missing:
        names = ", ".join(map(quote_identifier, missing))
        role = read_value(session, sql("granted.caller"))
        noun = "columns"
        pronoun = "them"
        if len(missing) == 1:
            noun = "column"
            pronoun = "it"
        raise InsufficientPrivilege(
            f"permission denied for {noun} {names} of {source.spelling}",
            hint=f"Its owner can let you read {pronoun}: "
            f"GRANT SELECT ({names}) ON {source.quoted} TO {quote_identifier(role)};",
        )


@contextmanager
def session_rows(
    session: WorkerSession, reading: Reading, pinned: SettingValues
) -> Iterator[SourceRows]:
    """Yield the sources of a call, which a separate session reads within a transaction.

    Code of a view may change settings and the role, so that they are reset after each copy.

    Args:
        session: a session that was opened with the caller's custom settings.
        pinned: settings for all statements but the copies.
    """

    def run_as_caller(statement: str) -> None:
        session.run(sql("session.configure"), (configuration(reading.settings),))
        with _watched_disk(session):
            session.run(statement)
        session.run(sql("reading.reset"))
        role = quote_identifier(session.identity.current_user)
        session.run(sql("session.set_role", role=role))
        session.run(sql("session.configure"), (configuration(pinned),))

    session.run(sql("session.configure"), (configuration(pinned),))
    rows = SourceRows(session, run_as_caller)
    yield rows
    rows.close()


@contextmanager
def caller_rows(
    db: Caller,
    reading: Reading,
    pinned: SettingValues,
    open_session: Callable[..., LocalSession] = LocalSession,
) -> Iterator[SourceRows]:
    """Yield the sources of a call, which the caller's own session reads.

    In a read-only transaction no source is copied.

    Args:
        pinned: settings for all statements but the copies.
        open_session: creates a session that runs statements in the caller's, under the settings
            that are its keyword arguments.
    """
    if db.value(sql("session.setting"), "transaction_read_only") == "on":
        yield SourceRows(open_session(db, **{**pinned, **reading.settings}), None)
        return
    as_caller = open_session(db, **reading.settings)
    rows = SourceRows(open_session(db, **pinned), as_caller.run)
    yield rows
    rows.close()


def _free_bytes() -> int:
    """Return the free space on the disk of the data folder, a backend's working directory."""
    disk = os.statvfs(".")
    return disk.f_bavail * disk.f_frsize


@contextmanager
def _watched_disk(session: WorkerSession) -> Iterator[None]:
    """Cancel a statement of a session before it fills the server's disk."""
    check = session.check
    free = _free_bytes()

    def check_disk() -> None:
        check()
        if _free_bytes() < free * (1 - MAX_DISK_SHARE):
            session.cancel()
            raise DiskFull(
                f"the copy of the source takes more than {MAX_DISK_SHARE:.0%} of the "
                f"{free / 1e9:.1f} GB that were free on the server's disk",
                hint="Name fewer columns in the call, or copy the source into a table in a "
                "tablespace with more room.",
            )

    session.check = check_disk
    try:
        yield
    finally:
        session.check = check
