"""How a run takes places: committed first, and looked at once more; and how it shows that it waits
or works.
"""

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
    """Answers statements of the queue, one after another, and remembers them."""

    def __init__(self, *answers: object) -> None:
        self.answers, self.heard = [None, *answers], list[tuple[object, ...]]()
        self.committed = 0
        self.owned = True

    def run(self, statement: str, values: Sequence[object]) -> list[tuple[object, ...]]:
        name = next(
            name for name in ("enter", "take", "add", "leave") if sql(f"queue.{name}") == statement
        )
        self.heard.append((name, *values))
        return [(self.answers.pop(0),)]

    def rows(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        return self.run(statement, values)

    def peek(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        assert (statement, *values) == (sql("run.own"), OWN[0])
        return [OWN] if self.owned else []

    def commit(self) -> None:
        self.committed += 1


def places_of(server: Server, *, in_procedure: bool = False, limited: bool = True) -> Any:
    db = SimpleNamespace(
        in_procedure=in_procedure, rows=server.rows, peek=server.peek, commit=server.commit
    )
    log = SimpleNamespace(run_id=OWN[0], ticket=OWN[1], is_owned=lambda: server.owned)
    made: Any = RunSlots(db, SimpleNamespace(control=server), log, SlotRequest(1, 4, 3, False))  # type: ignore[arg-type]
    made.is_limited = limited
    return made


def test_places_are_looked_at_again_before_a_trainer_starts() -> None:
    server = Server(3, 1)
    places = places_of(server)
    assert places.take(4) == places.count == 1
    assert server.heard[1:] == [("take", *OWN, 4, 0), ("take", *OWN, 3, 0)]


@pytest.mark.parametrize(("wanted", "limited"), [(2, True), (4, False)])
def test_places_that_are_given_back_or_not_limited_need_no_second_look(
    wanted: int, limited: bool
) -> None:
    server = Server(4, 4, wanted)
    places = places_of(server)
    places.take(4)
    places.is_limited = limited
    assert places.take(wanted) == wanted
    assert server.heard[3:] == [("take", *OWN, wanted, 4)]


def test_configurations_are_looked_at_again_before_they_join() -> None:
    server = Server(True, True, True, False, False)
    places = places_of(server)
    places.reserve_configs(2)
    for _ in range(2):
        with pytest.raises(ConfigurationLimit):
            places.reserve_configs(1)
    assert server.heard[1:] == [("add", *OWN, 2, 3)] * 2 + [("add", *OWN, 1, 5)] * 3


@pytest.mark.parametrize("in_procedure", [False, True])
def test_a_run_shows_that_it_waits_and_that_it_works(
    monkeypatch: pytest.MonkeyPatch, in_procedure: bool
) -> None:
    """In a procedure its own session says so, because that which writes the log is away."""
    now = 100.0
    monkeypatch.setattr("cerebro_plpy.run.workers.admission.time.monotonic", lambda: now)
    server = Server(0, 4, 4, 3)
    places = places_of(server, in_procedure=in_procedure)
    places._show_wait()
    now += SHOW_SECONDS
    places._show_wait()
    assert server.heard[1:] == [("take", *OWN, 0, 0)] and server.committed == in_procedure
    assert places.take(4) == 4
    places.refresh()
    assert len(server.heard) == 4
    now += SHOW_SECONDS + 1
    places.refresh()
    assert server.heard[4:] == [("take", *OWN, 4, 4)] and places.count == 3, (
        "others have what had no worker"
    )


@pytest.mark.parametrize("in_procedure", [False, True])
def test_a_run_whose_role_has_another_name_waits_no_longer(in_procedure: bool) -> None:
    server = Server(0)
    places = places_of(server, in_procedure=in_procedure)
    server.owned, places._last_shown = False, places._last_shown - SHOW_SECONDS
    with pytest.raises(UndefinedObject, match="no run 7"):
        places._show_wait()
    assert len(server.heard) == 1
