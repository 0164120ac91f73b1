"""The rows of a source: where a call reads them, so that it reads them once and in one state of the
database.

A table is read in place. A view, a foreign table or a table with row security is evaluated once,
under the caller's path and formats, into an unlogged table in schema cerebro_state that the same
transaction drops. Where nothing can be written, each statement evaluates the source behind a fence.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from cerebro_plpy.database.platform_protocol import Caller, Reader, Table
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.reading import Reading, configuration
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sql.identifiers import quote_identifier, quote_qualified
from cerebro_plpy.database.sql.literals import literal
from cerebro_plpy.errors import DiskFull, InsufficientPrivilege

if TYPE_CHECKING:
    from cerebro_plpy.database.sessions.worker_sessions import WorkerSession

SCHEMA = "cerebro_state"
SYSTEM_COLUMNS = ("tableoid", "xmin", "cmin", "xmax", "cmax", "ctid", "oid", "gp_segment_id")
MOST_OF_DISK = 0.5
"""A copy takes at most so much of the disk that is free when it begins."""
Watch = Callable[[str, Sequence[str]], str]


class Copy(NamedTuple):
    """A source that was copied."""

    source: Table
    name: str  # of the copy, quoted
    bytes: int


class Opened(NamedTuple):
    """A table that a call reads: see `platform.Table`."""

    spelling: str
    oid: int
    quoted: str


def as_it_is(source: str, columns: Sequence[str]) -> str:
    """Return what stands in FROM for a source of which nobody is told how far it is read."""
    return source


class SourceRows:
    """The sources of one call, opened one after another, each of them once."""

    def __init__(self, session: Reader, run_as_caller: Callable[[str], object] | None) -> None:
        """Use a session, which is in a transaction, to read sources.

        Args:
            session: reads the rows under pinned settings.
            run_as_caller: runs a statement in the same transaction under the settings of a
                `Reading`; None if nothing may be written, and `session` itself reads under these
                settings.
        """
        self.session = session
        self.copies: list[Copy] = []
        self._run_as_caller = run_as_caller
        self._tables: list[str] = []

    @property
    def writes(self) -> bool:
        """Whether tables may be made."""
        return self._run_as_caller is not None

    def new_table(self, kind: str) -> str:
        """Return the quoted name of a table that the caller of this makes, and `close` drops."""
        self._tables.append(quote_qualified((SCHEMA, f"{kind}_{secrets.token_hex(8)}")))
        return self._tables[-1]

    def open(self, source: Table, columns: Sequence[str], watch: Watch = as_it_is) -> str:
        """Return what stands in FROM for these columns of a source.

        Args:
            watch: returns what stands in FROM while the source is copied.

        Raises:
            InsufficientPrivilege: Columns may not be read.
        """
        check_readable(self.session, source, columns)
        if not is_evaluated(self.session, source):
            return source.quoted
        if self._run_as_caller is None:
            return fenced(source, columns)
        return self._copied(source, columns, watch(source.quoted, columns))

    def open_table(self, source: Table, columns: Sequence[str], watch: Watch = as_it_is) -> Opened:
        """Return a table with these columns of a source, as `open` does: the source itself, or its
        copy.
        """
        copies = len(self.copies)
        quoted = self.open(source, columns, watch)
        if len(self.copies) == copies:
            return Opened(source.spelling, source.oid, quoted)
        ((oid,),) = self.session.run(sql("reading.oid", literal=literal(self.copies[-1].name)))
        return Opened(source.spelling, int(oid), quoted)

    def _copied(self, source: Table, columns: Sequence[str], read: str) -> str:
        assert self._run_as_caller is not None
        name = self.new_table("source")
        self._run_as_caller(
            sql("reading.copy", copy=name, columns=columns_to_keep(columns), source=read)
        )
        ((size,),) = self.session.run(sql("reading.copied", literal=literal(name)))
        self.copies.append(Copy(source, name, int(size)))
        return kept_rows(name, columns)

    def close(self) -> None:
        """Drop the tables of this call."""
        for name in self._tables:
            self.session.run(sql("reading.drop", table=name))


def kept_names(columns: Sequence[str]) -> dict[str, str]:
    """Return the name in a table of each of these columns of a source: a view's may be that of a
    system column.

    >>> kept_names(["a", "ctid", "ctid_0"])
    {'a': 'a', 'ctid': 'ctid_1', 'ctid_0': 'ctid_0'}
    """
    return {each: _free_name(each, columns) if each in SYSTEM_COLUMNS else each for each in columns}


def columns_to_keep(columns: Sequence[str]) -> str:
    """Return what a statement selects of a source, as t, to make a table with the `kept_names` of
    these columns.
    """
    names = kept_names(columns)
    return ", ".join(
        f"t.{quote_identifier(each)} AS {quote_identifier(name)}" for each, name in names.items()
    )


def kept_rows(table: str, columns: Sequence[str]) -> str:
    """Return what stands in FROM for a table with the `kept_names` of these columns, so that it has
    their own.
    """
    names = kept_names(columns)
    if all(name == each for each, name in names.items()):
        return table
    listed = ", ".join(
        f"t.{quote_identifier(name)} AS {quote_identifier(each)}" for each, name in names.items()
    )
    return sql("reading.kept", columns=listed, table=table)


def _free_name(column: str, names: Sequence[str]) -> str:
    return next(name for number in count() if (name := f"{column}_{number}") not in names)


def fenced(source: Table, columns: Sequence[str]) -> str:
    """Return what stands in FROM for these columns of a source that the statement itself
    evaluates.
    """
    listed = ", ".join(f"t.{quote_identifier(each)}" for each in columns)
    return sql("reading.fence", columns=listed, source=source.quoted)


def is_evaluated(session: Reader, source: Table) -> bool:
    """Check whether a reading of a source evaluates code of users, or fetches rows from
    elsewhere.
    """
    return bool(session.run(sql("reading.kind"), (source.oid, source.oid))[0][1])


def kind_of(session: Reader, source: Table) -> str:
    """Return the kind of a source, as version records and messages contain it."""
    kinds = {"v": "view", "m": "materialized view", "f": "foreign table", "p": "partitioned table"}
    return kinds.get(session.run(sql("reading.kind"), (source.oid, source.oid))[0][0], "table")


def check_readable(session: Reader, source: Table, columns: Sequence[str]) -> None:
    """Raise InsufficientPrivilege if the current user may not read all of these columns."""
    denied = {name for (name,) in session.run(sql("reading.columns"), (source.oid,))}
    missing = [name for name in columns if name in denied]
    if missing:
        listed = ", ".join(map(quote_identifier, missing))
        ((role,),) = session.run(sql("granted.caller"))
        raise InsufficientPrivilege(
            f"permission denied for column{'s' * (len(missing) > 1)} {listed} of {source.spelling}",
            hint=f"Leave {'them' if len(missing) > 1 else 'it'} out (columns => '* except "
            f"{listed}'), or ask the owner: GRANT SELECT ({listed}) ON {source.spelling} TO "
            f"{quote_identifier(role)};",
        )


@contextmanager
def session_rows(
    session: WorkerSession, reading: Reading, pinned: Mapping[str, str]
) -> Iterator[SourceRows]:
    """Yield the sources of a call as a session of its own reads them, which is in a transaction.

    Code of a view may change settings and the role, so that they are reset after each copy.

    Args:
        session: was opened with the caller's custom settings.
        pinned: settings for all statements but the copies.
    """

    def run(statement: str) -> None:
        session.run(sql("session.configure"), (configuration(reading.settings),))
        with _disk_watched(session):
            session.run(statement)
        session.run(sql("reading.reset"))
        session.run(sql("session.set_role", role=quote_identifier(session.who.current_user)))
        session.run(sql("session.configure"), (configuration(pinned),))

    session.run(sql("session.configure"), (configuration(pinned),))
    rows = SourceRows(session, run)
    yield rows
    rows.close()


@contextmanager
def caller_rows(
    db: Caller,
    reading: Reading,
    pinned: Mapping[str, str],
    open_session: Callable[..., LocalSession] = LocalSession,
) -> Iterator[SourceRows]:
    """Yield the sources of a call as the caller's own session reads them, which may be one that
    writes nothing.

    Args:
        pinned: settings for all statements but the copies.
        open_session: makes what runs statements in the session, under settings that it is given by
            name.
    """
    if db.value(sql("session.setting"), "transaction_read_only") == "on":
        yield SourceRows(open_session(db, **{**pinned, **reading.settings}), None)
        return
    as_caller = open_session(db, **reading.settings)
    rows = SourceRows(open_session(db, **pinned), as_caller.run)
    yield rows
    rows.close()


def _free_bytes() -> int:
    """Return how much of the disk of the data folder, which is a backend's working directory, is
    free.
    """
    about = os.statvfs(".")
    return about.f_bavail * about.f_frsize


@contextmanager
def _disk_watched(session: WorkerSession) -> Iterator[None]:
    """Within, a statement of a session is cancelled before it fills the server's disk."""
    check, free = session.check, _free_bytes()

    def watch() -> None:
        check()
        if _free_bytes() < free * (1 - MOST_OF_DISK):
            session.cancel()
            raise DiskFull(
                f"the copy of the source takes more than {MOST_OF_DISK:.0%} of the "
                f"{free / 1e9:.1f} GB that were free on the server's disk",
                hint="Name fewer columns (columns => 'a, b'), or make a table of the source where "
                "there is room.",
            )

    session.check = watch
    try:
        yield
    finally:
        session.check = check
