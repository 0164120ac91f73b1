"""When a run looks for places, and who is at work in those that it has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from bare_states import bare_state
from hypothesis import example, given
from hypothesis import strategies as st

from cerebro_plpy.errors import ConnectionFailure
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.run.loop.step import Step
from cerebro_plpy.run.loop.worker_scaling import WorkerScaling
from cerebro_plpy.run.state.run_state import RunState
from cerebro_plpy.scheduling.schedule.schedule import Plan

LOOK = 5.0
SEGMENTS = 4


@pytest.mark.parametrize(
    ("limited", "steady", "expected"),
    [(True, False, LOOK), (True, True, math.inf), (False, False, math.inf)],
)
def test_a_run_that_keeps_its_places_never_looks_for_others(
    limited: bool, steady: bool, expected: float
) -> None:
    """Its last look is long ago: to wait until the next one would be not to wait at all."""
    slots = SimpleNamespace(is_limited=limited, is_static=steady, next_check=LOOK)
    context: Any = SimpleNamespace(slots=slots)
    nothing: Any = None
    assert WorkerScaling(nothing, nothing, context, []).next_check == expected


class Moment(NamedTuple):
    """One look for places: how many there are to be, who does something then, and for whom there is
    no session.
    """

    wanted: int | None
    busy: frozenset[int]
    refused: frozenset[int]
    paused: bool


class Memory:
    """Of a trainer that has begun."""

    started = True

    def forget(self) -> None:
        """Nothing."""


class Server:
    """The places of a run, who hires for it, and what its workers do."""

    is_limited, is_static = True, False

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.moment = Moment(None, frozenset(), frozenset(), paused=False)
        self.opener, self.count = self, SEGMENTS
        self.numbers, self.open = set(range(SEGMENTS)), set(range(SEGMENTS))
        self.ended: set[int] = set()

    @property
    def busy(self) -> set[int]:
        """Workers that do something; nobody else than who is at work, or is about to leave, ever
        does.
        """
        return self.open & self.moment.busy

    @property
    def idle(self) -> set[int]:
        return self.numbers - self.busy

    @property
    def is_finished(self) -> bool:
        return not self.busy

    def is_busy(self, number: int) -> bool:
        return number in self.busy

    def refresh(self) -> None:
        """Nothing."""

    def read_share(self) -> int | None:
        return self.moment.wanted

    def take(self, wanted: int) -> int:
        self.count = wanted
        return wanted

    def wait(self) -> float:
        self.count = self.moment.wanted or 1
        return 1.0

    def worker(self, number: int) -> Worker:
        session: Any = None
        memory: Any = Memory()
        return Worker(number, session, "jax", None, memory)

    def add_worker(self, number: int, framework: str) -> Worker:
        assert framework == "jax"
        if number in self.moment.refused:
            raise ConnectionFailure("too many connections")
        self.open.add(number)
        return self.worker(number)

    def reopen(self, worker: Worker) -> bool:
        if worker.number not in self.moment.refused:
            self.open.add(worker.number)
        return worker.number in self.open

    def add_workers(self, hired: Sequence[Worker]) -> None:
        """Nothing."""

    def report_cost(self, worker: Worker) -> None:
        """Nothing."""

    def close_workers(self, workers: Sequence[Worker]) -> None:
        self.ended |= {worker.number for worker in workers} & self.busy
        self.open -= {worker.number for worker in workers}


def at_work() -> RunState:
    """The state of a run in which each worker has one segment."""
    segments = range(SEGMENTS)
    return bare_state(Plan(1, tuple(segments), {segment: segment for segment in segments}), {})


def scaling_of(server: Server, state: RunState) -> WorkerScaling:
    pool: Any = server
    context: Any = SimpleNamespace(slots=server, notify=server.notes.append)
    return WorkerScaling(state, pool, context, [server.worker(n) for n in range(SEGMENTS)])


def apply(step: Step) -> None:
    """Apply a step as the loop does."""
    for effect in (*step.changes, *step.tasks, *step.notes):
        effect()


NOBODY = frozenset[int]()


@st.composite
def draw_moment(draw: st.DrawFn) -> Moment:
    """Draw a look for places."""
    some = st.frozensets(st.integers(0, SEGMENTS - 1))
    return Moment(
        draw(st.none() | st.integers(0, SEGMENTS)), draw(some), draw(some), draw(st.booleans())
    )


@given(st.lists(draw_moment(), max_size=8))
@example([Moment(0, NOBODY, NOBODY, paused=True), Moment(3, NOBODY, frozenset({1}), paused=False)])
def test_each_place_is_that_of_a_worker_that_has_a_session(moments: list[Moment]) -> None:
    """Also where a run pauses, rests, and is to go on while it is paused; nobody is stopped who
    does something.
    """
    server, state = Server(), at_work()
    scaling = scaling_of(server, state)
    for server.moment in moments:
        state.paused_at = 0.0 if server.moment.paused else None
        for step in scaling.adjust():
            apply(step)
        assert server.numbers <= server.open and server.count == len(server.open)
        assert not server.ended
        fewest = max(server.moment.wanted or SEGMENTS, 1)
        assert len(server.numbers) <= fewest or scaling.is_waiting
        if server.numbers:
            assert set(state.plan.workers.values()) <= server.numbers


def test_a_run_goes_on_without_a_worker_that_is_lost_as_long_as_there_is_another() -> None:
    """A worker is there once for each framework, and so may be lost twice."""
    server, state, error = Server(), at_work(), ConnectionFailure("too many connections")
    scaling = scaling_of(server, state)
    for lost in range(1, SEGMENTS):
        for _ in range(2 if lost < SEGMENTS - 1 else 1):
            apply(scaling.remove_lost(server.worker(lost), error))
        assert set(state.plan.workers.values()) == server.numbers == {0, *range(lost + 1, SEGMENTS)}
    assert [note.split(":")[0] for note in server.notes][::2] == [
        f"going on with {workers}" for workers in ("3 workers", "2 workers", "1 worker")
    ]
    with pytest.raises(ConnectionFailure):
        scaling.remove_lost(server.worker(0), error)
