"""What a copy of a source has in the way of it: a disk that gets full, and columns with names of
the system's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cerebro_plpy.database import source_rows
from cerebro_plpy.database.reading import Reading
from cerebro_plpy.database.sessions.worker_sessions import WorkerSession
from cerebro_plpy.database.source_rows import OpenedTable, SourceRows, session_rows
from cerebro_plpy.errors import DiskFull

VIEW = OpenedTable("seen", 7, '"public"."seen"')


class Session:
    """A session that reads a view; `check` is called while it copies."""

    def __init__(self) -> None:
        self.identity = SimpleNamespace(current_user="ann")
        self.statements: list[str] = []
        self.canceled = False
        self.check: Callable[[], None] = lambda: None

    def run(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        self.statements.append(statement)
        if statement.startswith("CREATE UNLOGGED TABLE"):
            self.check()
        if "has_column_privilege" in statement:
            return []
        return [("v", True)] if "relkind" in statement else [(1000,)]

    def cancel(self) -> None:
        self.canceled = True


@contextmanager
def free(monkeypatch: pytest.MonkeyPatch, *sizes: int) -> Any:
    """Within, the disk has so many bytes free, one size after another."""
    left = list(sizes)
    monkeypatch.setattr(source_rows, "_free_bytes", lambda: left.pop(0))
    yield


def test_a_copy_ends_before_it_has_half_of_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session()
    with (
        free(monkeypatch, 100, 49),
        pytest.raises(DiskFull, match="more than 50%"),
        session_rows(cast(WorkerSession, session), Reading({}, "public", "on"), {}) as rows,
    ):
        rows.open(VIEW, ["a"])
    assert session.canceled


def test_one_that_leaves_more_than_half_is_made_and_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = Session()
    with (
        free(monkeypatch, 100, 51),
        session_rows(cast(WorkerSession, session), Reading({}, "public", "on"), {}) as rows,
    ):
        name = rows.open(VIEW, ["a"])
        assert name.startswith('"cerebro_state"."source_')
        session.check()  # nobody looks at the disk any more
    assert session.statements[-1] == f"DROP TABLE IF EXISTS {name}" and not session.canceled


def test_the_statement_that_copies_contains_columns_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the caller's path is set for it alone."""
    session = Session()
    with (
        free(monkeypatch, 100, 90),
        session_rows(cast(WorkerSession, session), Reading({}, "public", "on"), {}) as rows,
    ):
        name = rows.open(VIEW, ["a", 'b "c"'])
    copy = next(
        number for number, each in enumerate(session.statements) if each.startswith("CREATE")
    )
    assert session.statements[copy] == (
        f'CREATE UNLOGGED TABLE {name} AS SELECT t."a" AS "a", t."b ""c""" AS "b ""c""" FROM '
        '"public"."seen" AS t'
    )
    assert (
        session.statements[copy + 1] == "RESET ALL"
        and session.statements[copy + 2] == 'SET ROLE "ann"'
    )


def test_a_column_may_have_the_name_of_a_system_column() -> None:
    session = Session()
    rows = SourceRows(session, session.run)
    source = rows.open(VIEW, ["ctid", "ctid_0"])
    copy = next(each for each in session.statements if each.startswith("CREATE"))
    assert 't."ctid" AS "ctid_1", t."ctid_0" AS "ctid_0"' in copy
    assert source.startswith(
        '(SELECT t."ctid_1" AS "ctid", t."ctid_0" AS "ctid_0" FROM "cerebro_state"."source_'
    )
