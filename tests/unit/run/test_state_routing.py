"""The states that visits start from if copies of a configuration are averaged."""

from __future__ import annotations

import pytest

from cerebro_plpy.platform.job import StateSource
from cerebro_plpy.run.request.state_routing import Averaging
from cerebro_plpy.scheduling.schedule.schedule import Kind, Visit

SEGMENTS = (3, 4, 5, 6, 7)
COPIES = ((4, 5, 3), (7, 6))
MEAN = StateSource("chunks", "mean", 0)
ROWS = {3: 30, 4: 40, 5: 50, 6: 60, 7: 70}


def make_visit(segment: int, kind: Kind = "train") -> Visit:
    return Visit(2, 1, segment, kind)


def state_after(segment: int) -> StateSource:
    return StateSource("chunks", f"after {segment}", 0)


@pytest.mark.parametrize("order", [(4, 5, 3, 7, 6), (7, 4, 6, 5, 3), (7, 6, 4, 5, 3)])
def test_a_copy_continues_from_its_last_state_and_all_copies_start_from_the_mean(
    order: tuple[int, ...],
) -> None:
    route = Averaging(SEGMENTS, COPIES)
    expected = {4: MEAN, 7: MEAN, 5: state_after(4), 3: state_after(5), 6: state_after(7)}
    for segment in order:
        assert route.state_before(make_visit(segment), MEAN) == expected[segment]
        assert not route.record_state(make_visit(segment), state_after(segment), ROWS[segment])
    averaged = route.state_before(make_visit(5, "average"), MEAN)
    assert averaged.of == ((state_after(3), 120), (state_after(6), 130))
    assert route.record_state(make_visit(5, "average"), MEAN, 0)


def test_each_visit_of_an_epoch_has_its_own_number_and_table() -> None:
    route = Averaging(SEGMENTS, COPIES)
    visits = [*map(make_visit, SEGMENTS), make_visit(4, "average")]
    assert [route.visit_number(visit, 0) for visit in visits] == [*range(7, 13)]
    slots = {route.state_number(visit, 0) % route.table_count for visit in visits}
    assert len(slots) == route.table_count == 6
