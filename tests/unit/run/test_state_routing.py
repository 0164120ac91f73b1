"""What visits start from where copies of a configuration are averaged."""

from __future__ import annotations

import pytest

from cerebro_plpy.platform.job import StateSource
from cerebro_plpy.run.request.state_routing import Averaging
from cerebro_plpy.scheduling.schedule.schedule import Kind, Visit

SEGMENTS = (3, 4, 5, 6, 7)
COPIES = ((4, 5, 3), (7, 6))
MEAN = StateSource("chunks", "mean", 0)
ROWS = {3: 30, 4: 40, 5: 50, 6: 60, 7: 70}


def visit(segment: int, kind: Kind = "train") -> Visit:
    return Visit(2, 1, segment, kind)


def left(segment: int) -> StateSource:
    return StateSource("chunks", f"left by {segment}", 0)


@pytest.mark.parametrize("order", [(4, 5, 3, 7, 6), (7, 4, 6, 5, 3), (7, 6, 4, 5, 3)])
def test_a_copy_goes_on_from_what_it_has_left_and_all_begin_from_the_mean(
    order: tuple[int, ...],
) -> None:
    route, before = (
        Averaging(SEGMENTS, COPIES),
        {4: MEAN, 7: MEAN, 5: left(4), 3: left(5), 6: left(7)},
    )
    for segment in order:
        assert route.state_before(visit(segment), MEAN) == before[segment]
        assert not route.record_state(visit(segment), left(segment), ROWS[segment])
    averaged = route.state_before(visit(5, "average"), MEAN)
    assert averaged.of == ((left(3), 120), (left(6), 130))
    assert route.record_state(visit(5, "average"), MEAN, 0)


def test_each_visit_of_an_epoch_has_a_number_and_a_table_of_its_own() -> None:
    route = Averaging(SEGMENTS, COPIES)
    visits = [*map(visit, SEGMENTS), visit(4, "average")]
    assert [route.visit_number(each, 0) for each in visits] == [*range(7, 13)]
    assert (
        len({route.state_number(each, 0) % route.table_count for each in visits})
        == route.table_count
        == 6
    )
