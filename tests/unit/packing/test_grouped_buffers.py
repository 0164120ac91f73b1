"""Buffers of groups: each row is in one buffer of its group, and groups alternate."""

from __future__ import annotations

import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.train_spec import GroupLayout
from cerebro_plpy.packing.grouped_buffers import (
    BUFFERS_PER_BLOCK,
    BufferLayout,
    GroupedLayouts,
    lay_out_groups,
)
from cerebro_plpy.preprocessing.rows.groups import GroupRows, Groups
from cerebro_plpy.preprocessing.values.expression import Expression

COUNTS = st.lists(st.tuples(st.integers(1, 400), st.integers(1, 60)), min_size=1, max_size=8)


def make_layouts(
    counts: list[tuple[int, int]], loose: tuple[int, int], keys: list[int], block: int
) -> GroupedLayouts:
    sizes = tuple(GroupRows(str(number), *rows) for number, rows in enumerate(counts))
    return lay_out_groups(Groups("g", 1, sizes, 0, loose, Expression("t.g")), keys, block)


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
    layouts = make_layouts(counts, loose, keys, block)
    for side, layout in enumerate((layouts.training, layouts.validation)):
        group_rows = [
            sum(buffer.rows for buffer in layout.buffers if buffer.group == group)
            for group in range(len(counts) + 1)
        ]
        assert group_rows == [*(rows[side] for rows in counts), loose[side]]
        assert layout.rows == sum(group_rows)
        max_rows = max(1, block // BUFFERS_PER_BLOCK)
        assert all(0 < buffer.rows <= max_rows for buffer in layout.buffers)
        buffer_ids = sorted(buffer.buffer_id for buffer in layout.buffers)
        assert buffer_ids == list(range(len(layout.buffers)))
        groups = [buffer.group for buffer in layout.buffers]
        assert groups == sorted(groups), "rows come group by group"
        assert BufferLayout.from_json(layout.to_json()) == layout
        by_id = sorted(layout.buffers, key=lambda buffer: buffer.buffer_id)
        assert all(one.segment <= two.segment for one, two in pairwise(by_id)), (
            "buffers of a segment are neighbours"
        )
    sizes = tuple(
        GroupRows(str(number), *rows, classes=(rows[0] - 1, 1))
        for number, rows in enumerate(counts)
    )
    places = layouts.find_places(Groups("g", 1, sizes, 0, loose, Expression("t.g")))
    assert all(sum(place.counts) == place.rows for place in places.values())
    for place in places.values():
        assert place.validation.keys() <= place.training.keys() <= set(keys)
        logged = json.loads(json.dumps(place))
        assert GroupLayout.from_json(logged) == place
        assert GroupLayout.from_json(logged[:4]) == place._replace(counts=())
    grouped_ids = [
        buffer_id
        for place in places.values()
        for buffer_ids in place.training.values()
        for buffer_id in buffer_ids
    ]
    assert len(grouped_ids) == len(set(grouped_ids))
    assert len(grouped_ids) == sum(
        buffer.group < len(counts) for buffer in layouts.training.buffers
    )


@given(st.integers(2, 5), st.integers(2, 20))
def test_groups_of_one_segment_take_turns(groups: int, buffers: int) -> None:
    """Buffers of equally large groups alternate in the order of buffer ids."""
    layouts = make_layouts([(buffers * 10, 1)] * groups, (0, 0), [0], 10 * BUFFERS_PER_BLOCK)
    order = [
        buffer.group
        for buffer in sorted(layouts.training.buffers, key=lambda buffer: buffer.buffer_id)
    ]
    assert order == list(range(groups)) * buffers
