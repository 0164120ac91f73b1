"""How a configuration's state moves from visit to visit: it hops, or copies of it are averaged.

A route says what a visit starts from, which number it has in the log, how many tables hold the
states in turn, and what the state is that a visit has left.
"""

from __future__ import annotations

from typing import Protocol

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.platform.job import StateSource
from cerebro_plpy.platform.state_tables import HOPPING
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.run.request.visit_jobs import make_averaged_state
from cerebro_plpy.scheduling.schedule.schedule import Visit, rotate_copies


class Route(Protocol):
    """The way of one configuration's state."""

    @property
    def table_count(self) -> int:
        """How many tables hold states in turn."""
        ...

    def visit_number(self, visit: Visit, completed: int) -> int:
        """The number in the log of a visit that leaves a state, where so many were completed
        before.
        """
        ...

    def state_number(self, visit: Visit, stored: int) -> int:
        """The number of the state that a visit stores, where so many were stored before."""
        ...

    def count_visits(self, epochs: int) -> int:
        """How many visits of so many epochs leave states."""
        ...

    def state_before(self, visit: Visit, state: StateSource) -> StateSource:
        """What a visit starts from, where the configuration has this state."""
        ...

    def record_state(self, visit: Visit, left: StateSource, rows: int) -> bool:
        """Take note of what a visit of so many rows has left; whether the configuration goes on
        from it.
        """
        ...


class Hopping:
    """Each visit starts from what the visit before has left: the next one has the same number
    wherever it is.
    """

    table_count = HOPPING

    def __init__(self, segments: int) -> None:
        self._segments = segments

    def visit_number(self, visit: Visit, completed: int) -> int:
        return completed + 1

    def state_number(self, visit: Visit, stored: int) -> int:
        return stored + 1

    def count_visits(self, epochs: int) -> int:
        return epochs * self._segments

    def state_before(self, visit: Visit, state: StateSource) -> StateSource:
        return state

    def record_state(self, visit: Visit, left: StateSource, rows: int) -> bool:
        return True


class Averaging:
    """Copies start an epoch from one state and hop among their segments; a last visit makes the
    mean of what they left.

    `copies` are the segments of each in the order in which it visits them. Nothing depends on which
    of them is ready first: visits know their numbers beforehand.
    """

    def __init__(self, segments: tuple[int, ...], copies: tuple[tuple[int, ...], ...]) -> None:
        self._segments, self._copies = segments, copies
        self._before = {
            segment: earlier for copy in copies for earlier, segment in zip(copy, copy[1:])
        }
        self._left: dict[int, tuple[StateSource, int]] = {}  # of this epoch, by segment

    @property
    def table_count(self) -> int:
        return len(self._segments) + 1

    def visit_number(self, visit: Visit, completed: int) -> int:
        place = (
            len(self._segments)
            if visit.kind == "average"
            else self._segments.index(visit.segment_id)
        )
        return (visit.epoch - 1) * self.table_count + place + 1

    def state_number(self, visit: Visit, stored: int) -> int:
        return self.visit_number(visit, 0)

    def count_visits(self, epochs: int) -> int:
        return epochs * self.table_count

    def state_before(self, visit: Visit, state: StateSource) -> StateSource:
        if visit.kind == "average":
            return make_averaged_state([self._copy(copy) for copy in self._copies])
        before = self._before.get(visit.segment_id)
        return state if before is None else self._left[before][0]

    def _copy(self, segments: tuple[int, ...]) -> tuple[StateSource, int]:
        """What a copy has left at last, and the rows that it has trained on."""
        return self._left[segments[-1]][0], sum(self._left[segment][1] for segment in segments)

    def record_state(self, visit: Visit, left: StateSource, rows: int) -> bool:
        if visit.kind == "average":
            return True
        self._left[visit.segment_id] = (left, rows)
        return False


def count_state_tables(request: FitRequest) -> int:
    """How many tables hold the states of each configuration in turn."""
    return _route(request.source.segments, request.spec.copy_segments).table_count


def make_route(request: FitRequest, config: Config) -> Route:
    """A new route for a configuration of this request."""
    return _route(
        request.segments_of(config.group), rotate_copies(request.spec.copy_segments, config.mst_key)
    )


def _route(segments: tuple[int, ...], copies: tuple[tuple[int, ...], ...]) -> Route:
    return Averaging(segments, copies) if copies else Hopping(len(segments))
