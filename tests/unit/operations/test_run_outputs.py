"""A background run is completed in the log if its output tables are made, and only then without an
error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.operations.fit import run_outputs

TABLES = "output tables"


class Caller:
    """The session of a procedure: its writes count once it commits. Another session may log at
    once.
    """

    in_procedure = True

    def __init__(self, *, logs_with_output: bool) -> None:
        self.platform = SimpleNamespace(logs_with_output=logs_with_output)
        self.pending: list[object] = []
        self.committed: list[object] = []
        self.spare = True

    def value(self, statement: str) -> str:
        return "2026-01-01 00:00:00+00"

    def rows(self, statement: str, error: str | None, ended: str, run_id: int) -> None:
        self.pending.append((run_id, error))

    def commit(self) -> None:
        self.committed += self.pending
        self.pending.clear()

    def rollback(self) -> None:
        self.pending.clear()

    @contextmanager
    def open_another(self, *_: object) -> Iterator[Any]:
        """Open a session that commits each statement."""

        def run(statement: str, values: Sequence[Any]) -> None:
            error, _, run_id = values
            self.committed.append((run_id, error))

        yield SimpleNamespace(control=SimpleNamespace(run=run))


@pytest.fixture(params=[True, False], ids=["one transaction", "two transactions"])
def caller(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Caller:
    session = Caller(logs_with_output=request.param)
    monkeypatch.setattr(run_outputs, "open_context", session.open_another)
    monkeypatch.setattr(run_outputs, "_write", lambda *_: session.pending.append(TABLES))
    monkeypatch.setattr(
        run_outputs, "_drop_unused_states", lambda *_: setattr(session, "spare", False)
    )
    return session


def finish(caller: Caller, keep_states: bool | None) -> None:
    output = cast(run_outputs.RunOutputs, None)
    run_outputs.finish(cast(Database, caller), {}, 7, output, keep_states=keep_states)


@pytest.mark.parametrize("keep_states", [None, True, False])
def test_a_run_is_completed_once_with_its_tables(caller: Caller, keep_states: bool | None) -> None:
    """The same transaction removes states that are not kept, so that none is spare."""
    finish(caller, keep_states)
    assert sorted(caller.committed, key=str) == [(7, None), TABLES] and not caller.pending
    assert caller.platform.logs_with_output or caller.committed[0] == TABLES, (
        "none is completed without its tables"
    )
    assert caller.spare == (keep_states is False)


def test_the_log_has_the_error_of_tables_that_are_not_made(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        caller.pending.append("a part of the tables")
        raise OSError("the disk is full")

    monkeypatch.setattr(run_outputs, "_write", fail)
    with pytest.raises(OSError, match="the disk is full"):
        finish(caller, None)
    assert (
        caller.committed == [(7, "the output tables were not made: the disk is full")]
        and not caller.pending
    )
    assert caller.spare, "the run can be resumed from its states"
