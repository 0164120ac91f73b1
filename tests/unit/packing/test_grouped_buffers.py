"""Buffers that hold one group each: all rows are in one, and groups lie among one another."""

from __future__ import annotations

import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.train_spec import GroupPlace
from cerebro_plpy.packing.grouped_buffers import MIXED, Grouped, Layout, grouped_layouts
from cerebro_plpy.preprocessing.rows.groups import GroupRows, Groups

COUNTS = st.lists(st.tuples(st.integers(1, 400), st.integers(1, 60)), min_size=1, max_size=8)


def grouped(
    counts: list[tuple[int, int]], loose: tuple[int, int], keys: list[int], block: int
) -> Grouped:
    found = tuple(GroupRows(str(number), *rows) for number, rows in enumerate(counts))
    return grouped_layouts(Groups("g", 1, found, 0, loose), keys, block)


@given(
    COUNTS,
    st.tuples(st.integers(0, 50), st.integers(0, 50)),
    st.integers(1, 4),
    st.integers(1, 500),
)
def test_each_row_is_in_one_buffer_of_its_group(
    counts: list[tuple[int, int]], loose: tuple[int, int], segments: int, block: int
) -> None:
    keys = list(range(7, 7 + segments))
    made = grouped(counts, loose, keys, block)
    for side, layout in enumerate((made.training, made.validation)):
        rows = [
            sum(cut.rows for cut in layout.cuts if cut.group == group)
            for group in range(len(counts) + 1)
        ]
        assert rows == [*(each[side] for each in counts), loose[side]] and layout.rows == sum(rows)
        assert all(0 < cut.rows <= max(1, block // MIXED) for cut in layout.cuts)
        assert sorted(cut.buffer_id for cut in layout.cuts) == list(range(len(layout.cuts)))
        assert [cut.group for cut in layout.cuts] == sorted(cut.group for cut in layout.cuts), (
            "rows come so"
        )
        assert Layout.from_json(layout.to_json()) == layout
        numbered = sorted(layout.cuts, key=lambda cut: cut.buffer_id)
        assert all(one.segment <= two.segment for one, two in pairwise(numbered)), (
            "those of a segment are neighbours"
        )
    found = tuple(
        GroupRows(str(n), *each, classes=(each[0] - 1, 1)) for n, each in enumerate(counts)
    )
    places = made.places(Groups("g", 1, found, 0, loose))
    assert all(sum(place.counts) == place.rows for place in places.values())
    for place in places.values():
        assert place.validation.keys() <= place.training.keys() <= set(keys)
        logged = json.loads(json.dumps(place))
        assert GroupPlace.from_json(logged) == place and GroupPlace.from_json(
            logged[:4]
        ) == place._replace(counts=())
    owned = [
        number
        for place in places.values()
        for numbers in place.training.values()
        for number in numbers
    ]
    assert (
        len(owned) == len(set(owned)) == sum(cut.group < len(counts) for cut in made.training.cuts)
    )


@given(st.integers(2, 5), st.integers(2, 20))
def test_groups_of_one_segment_take_turns(groups: int, buffers: int) -> None:
    """Of equally large ones no two buffers of one group come one after the other."""
    made = grouped([(buffers * 10, 1)] * groups, (0, 0), [0], 10 * MIXED)
    order = [cut.group for cut in sorted(made.training.cuts, key=lambda cut: cut.buffer_id)]
    assert order == list(range(groups)) * buffers
