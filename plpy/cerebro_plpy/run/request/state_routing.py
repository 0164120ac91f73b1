"""The route of a configuration's state from visit to visit: it hops, or copies are averaged.

A route decides which state a visit starts from, its number in the log, how many tables hold the
states in turn, and which state the configuration continues from.
"""

from __future__ import annotations

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.platform.job import StateSource
from cerebro_plpy.platform.state_tables import HOPPING
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.run.request.visit_jobs import make_averaged_state
from cerebro_plpy.scheduling.schedule.schedule import Visit, rotate_copies


class Route:
    """The route of one configuration's state, which hops from visit to visit.

    Each visit starts from the state after the visit before. The next visit has the same number on
    every segment.
    """

    def __init__(self, segments: tuple[int, ...]) -> None:
        self._segments = segments

    @property
    def table_count(self) -> int:
        """The number of tables that hold states in turn."""
        return HOPPING

    def visit_number(self, visit: Visit, completed: int) -> int:
        """Return the number in the log of a visit that creates a state.

        Args:
            completed: number of such visits before it.
        """
        return completed + 1

    def state_number(self, visit: Visit, stored: int) -> int:
        """Return the number of the state that a visit stores after `stored` other states."""
        return stored + 1

    def count_visits(self, epochs: int) -> int:
        """Return the number of visits of these epochs that create states."""
        return epochs * len(self._segments)

    def state_before(self, visit: Visit, state: StateSource) -> StateSource:
        """Return the state that a visit starts from if `state` is that of the configuration."""
        return state

    def record_state(self, visit: Visit, state: StateSource, rows: int) -> bool:
        """Record the state after a visit; return whether the configuration continues from it."""
        return True


class Averaging(Route):
    """A route on which copies of a state are trained in parallel and averaged after each epoch.

    All copies start an epoch from the same state and hop among their segments; the last visit of
    the epoch averages their states. Visits have fixed numbers, so nothing depends on which copy is
    ready first.
    """

    def __init__(self, segments: tuple[int, ...], copies: tuple[tuple[int, ...], ...]) -> None:
        """Create the route.

        Args:
            copies: segments of each copy, in the order of its visits.
        """
        super().__init__(segments)
        self._copies = copies
        self._previous_segment = {
            segment: previous for copy in copies for previous, segment in zip(copy, copy[1:])
        }
        # The state after the visit to a segment in this epoch, and the rows of that visit.
        self._states: dict[int, tuple[StateSource, int]] = {}

    @property
    def table_count(self) -> int:
        return len(self._segments) + 1

    def visit_number(self, visit: Visit, completed: int) -> int:
        if visit.kind == "average":
            position = len(self._segments)
        else:
            position = self._segments.index(visit.segment_id)
        return (visit.epoch - 1) * self.table_count + position + 1

    def state_number(self, visit: Visit, stored: int) -> int:
        return self.visit_number(visit, 0)

    def count_visits(self, epochs: int) -> int:
        return epochs * self.table_count

    def state_before(self, visit: Visit, state: StateSource) -> StateSource:
        if visit.kind == "average":
            return make_averaged_state([self._final_state(copy) for copy in self._copies])
        if visit.segment_id not in self._previous_segment:
            return state
        return self._states[self._previous_segment[visit.segment_id]][0]

    def record_state(self, visit: Visit, state: StateSource, rows: int) -> bool:
        if visit.kind == "average":
            return True
        self._states[visit.segment_id] = (state, rows)
        return False

    def _final_state(self, segments: tuple[int, ...]) -> tuple[StateSource, int]:
        """Return the last state of a copy in this epoch, and the rows that it was trained on."""
        rows = sum(self._states[segment][1] for segment in segments)
        return self._states[segments[-1]][0], rows


def count_state_tables(request: FitRequest) -> int:
    """Return the number of tables that hold the states of each configuration in turn."""
    return _make_route(request.source.segments, request.spec.copy_segments).table_count


def make_route(request: FitRequest, config: Config) -> Route:
    """Return a new route for a configuration of this request."""
    copies = rotate_copies(request.spec.copy_segments, config.mst_key)
    return _make_route(request.segments_of(config.group), copies)


def _make_route(segments: tuple[int, ...], copies: tuple[tuple[int, ...], ...]) -> Route:
    if copies:
        return Averaging(segments, copies)
    return Route(segments)
