"""The placement of groups: all rows, once, as evenly as the largest group allows."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.scheduling.schedule.placement import (
    GroupSlice,
    fullest_segment_rows,
    spread_evenly,
    wrap_around,
)

GROUPS = st.lists(st.integers(1, 50), min_size=1, max_size=12)


def loads(pieces: list[GroupSlice]) -> Counter[int]:
    found: Counter[int] = Counter()
    for piece in pieces:
        found[piece.segment] += piece.rows
    return found


@given(GROUPS, st.integers(0, 100), st.integers(1, 6))
def test_all_rows_lie_somewhere_and_no_segment_has_more_than_it_must(
    groups: list[int], loose: int, count: int
) -> None:
    pieces = wrap_around(groups, loose, count)
    rows: Counter[int] = Counter()
    for piece in pieces:
        rows[piece.group] += piece.rows
    assert [rows[group] for group in range(len(groups) + 1)] == [*groups, loose]
    assert all(piece.rows > 0 and 0 <= piece.segment < count for piece in pieces)
    assert max(loads(pieces).values()) <= fullest_segment_rows(groups, loose, count)


@given(GROUPS, st.integers(0, 100), st.integers(1, 6))
def test_few_groups_are_split_and_each_between_neighbours(
    groups: list[int], loose: int, count: int
) -> None:
    own = [piece for piece in wrap_around(groups, loose, count) if piece.group < len(groups)]
    split = [one for one, two in pairwise(own) if one.group == two.group]
    assert len(split) < count and len({piece.group for piece in split}) == len(split)
    assert all(two.segment - one.segment in (0, 1) for one, two in pairwise(own))


@given(GROUPS, st.integers(1, 5))
def test_no_placement_lets_an_epoch_take_less_time(groups: list[int], count: int) -> None:
    """One config of each group, for which a row takes a unit of time: where each segment is worked
    off in the order of its pieces, no config is in two places at once, and all is done when the
    fullest segment is. No other placement can be done before, for a config is in one place at a
    time, and so is a worker."""
    filled: Counter[int] = Counter()
    busy: dict[int, list[tuple[int, int]]] = {}
    for piece in wrap_around(groups, 0, count):
        busy.setdefault(piece.group, []).append(
            (filled[piece.segment], filled[piece.segment] + piece.rows)
        )
        filled[piece.segment] += piece.rows
    for times in busy.values():
        assert all(one[1] <= two[0] for one, two in pairwise(sorted(times)))
    assert max(filled.values()) == max(-(-sum(groups) // count), max(groups))


@given(GROUPS, st.integers(0, 20), st.integers(1, 5), st.data())
def test_other_rows_lie_on_the_segments_of_their_groups(
    groups: list[int], loose: int, count: int, data: st.DataObject
) -> None:
    held = [data.draw(st.integers(0, 30)) for _ in (*groups, loose)]
    pieces = wrap_around(groups, loose, count)
    beside = spread_evenly(pieces, held)
    found: Counter[int] = Counter()
    for piece in beside:
        found[piece.group] += piece.rows
    assert [found[group] for group in range(len(held))] == held and all(
        piece.rows for piece in beside
    )
    for group in range(len(groups)):
        own = {piece.segment for piece in pieces if piece.group == group}
        shares = [piece.rows for piece in beside if piece.group == group]
        assert {piece.segment for piece in beside if piece.group == group} <= own
        assert not shares or max(shares) - min(shares) <= 1
