"""A run commits its slots before it checks them again, and shows periodically that it lives."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import ConfigurationLimit, UndefinedObject
from cerebro_plpy.run.workers.admission import SHOW_SECONDS, RunSlots, SlotRequest

OWN = (7, "ticket")


class Server:
    """Answers statements of the queue one after another, and records them."""

    def __init__(self, *answers: object) -> None:
        self.answers = [None, *answers]
        self.statements = list[tuple[object, ...]]()
        self.committed = 0
        self.is_owned = True

    def run(self, statement: str, values: Sequence[object]) -> list[tuple[object, ...]]:
        name = next(
            name for name in ("enter", "take", "add", "leave") if sql(f"queue.{name}") == statement
        )
        self.statements.append((name, *values))
        return [(self.answers.pop(0),)]

    def rows(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        return self.run(statement, values)

    def peek(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        assert (statement, *values) == (sql("run.own"), OWN[0])
        return [OWN] if self.is_owned else []

    def commit(self) -> None:
        self.committed += 1


def make_slots(server: Server, *, in_procedure: bool = False, limited: bool = True) -> Any:
    db = SimpleNamespace(
        in_procedure=in_procedure, rows=server.rows, peek=server.peek, commit=server.commit
    )
    log = SimpleNamespace(run_id=OWN[0], ticket=OWN[1], is_owned=lambda: server.is_owned)
    slots: Any = RunSlots(db, SimpleNamespace(control=server), log, SlotRequest(1, 4, 3, False))  # type: ignore[arg-type]
    slots.is_limited = limited
    return slots


def test_slots_are_checked_again_before_a_trainer_starts() -> None:
    server = Server(3, 1)
    slots = make_slots(server)
    assert slots.take(4) == slots.count == 1
    assert server.statements[1:] == [("take", *OWN, 4, 0), ("take", *OWN, 3, 0)]


@pytest.mark.parametrize(("requested", "limited"), [(2, True), (4, False)])
def test_slots_that_are_returned_or_not_limited_are_not_checked_again(
    requested: int, limited: bool
) -> None:
    server = Server(4, 4, requested)
    slots = make_slots(server)
    slots.take(4)
    slots.is_limited = limited
    assert slots.take(requested) == requested
    assert server.statements[3:] == [("take", *OWN, requested, 4)]


def test_configurations_are_checked_again_before_they_are_added() -> None:
    server = Server(True, True, True, False, False)
    slots = make_slots(server)
    slots.reserve_configs(2)
    for _ in range(2):
        with pytest.raises(ConfigurationLimit):
            slots.reserve_configs(1)
    assert server.statements[1:] == [("add", *OWN, 2, 3)] * 2 + [("add", *OWN, 1, 5)] * 3


@pytest.mark.parametrize("in_procedure", [False, True])
def test_a_run_shows_periodically_that_it_waits_or_works(
    monkeypatch: pytest.MonkeyPatch, in_procedure: bool
) -> None:
    """In a procedure, the caller's session does, because the control session is disconnected."""
    now = 100.0
    monkeypatch.setattr("cerebro_plpy.run.workers.admission.time.monotonic", lambda: now)
    server = Server(0, 4, 4, 3)
    slots = make_slots(server, in_procedure=in_procedure)
    slots._show_wait()
    now += SHOW_SECONDS
    slots._show_wait()
    assert server.statements[1:] == [("take", *OWN, 0, 0)] and server.committed == in_procedure
    assert slots.take(4) == 4
    slots.refresh()
    assert len(server.statements) == 4
    now += SHOW_SECONDS + 1
    slots.refresh()
    assert server.statements[4:] == [("take", *OWN, 4, 4)] and slots.count == 3, (
        "others have taken the slot without a worker"
    )


@pytest.mark.parametrize("in_procedure", [False, True])
def test_a_run_whose_role_was_renamed_stops_waiting(in_procedure: bool) -> None:
    server = Server(0)
    slots = make_slots(server, in_procedure=in_procedure)
    server.is_owned, slots._last_shown = False, slots._last_shown - SHOW_SECONDS
    with pytest.raises(UndefinedObject, match="no run 7"):
        slots._show_wait()
    assert len(server.statements) == 1
