"""Acts on live runs, and the end of a run that somebody has acted on."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import psycopg2
import pytest
from processes import eventually
from workbench import Workbench


def done(person: Workbench, call: str, *values: object) -> None:
    """An act that has been done."""
    act = person.value(f"SELECT cerebro.{call}", *values)
    status = "SELECT status, reason FROM cerebro.act WHERE act_id = %s"
    eventually(lambda: person.row(status, act)[0] != "scheduled")
    assert person.row(status, act) == ("done", None)


def done_at_once(person: Workbench, calls: Sequence[str], *values: object) -> None:
    """Acts that have been done with nothing between them: some let a run that is paused go on."""
    acts = person.row("SELECT " + ", ".join(f"cerebro.{call}" for call in calls), *values)
    status = "SELECT DISTINCT status, reason FROM cerebro.act WHERE act_id = ANY (%s)"
    eventually(lambda: "scheduled" not in dict(person.rows(status, list(acts))))
    assert person.rows(status, list(acts)) == [("done", None)]


def cut(person: Workbench, run: int, trained: Future[Any]) -> None:
    """Cancel a run that another session's call has begun."""
    assert person.value("SELECT cerebro.cancel(%s)", run)
    with pytest.raises(psycopg2.Error):
        trained.result()


def let_end(
    bench: Workbench, person: Workbench, run: int, trained: Future[Any], *, resumed: bool
) -> None:
    """Let a run that is paused come to its end, or cancel it and resume it to that."""
    if resumed:
        cut(person, run, trained)
        bench.rows("SELECT cerebro.resume(%s)", run)
    else:
        done(person, "continue_run(%s)", run)
        trained.result()
