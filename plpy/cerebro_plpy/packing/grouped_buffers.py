"""Buffers that hold the rows of one group each: their sizes, segments and buffer ids.

Rows come group by group. A segment is read in the order of buffer ids, so buffers of its groups
alternate: a pass over the segment does not finish one group before it starts the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.configs.train_spec import GroupLayout
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.preprocessing.rows.groups import Groups
from cerebro_plpy.records import dataclass
from cerebro_plpy.scheduling.schedule.placement import GroupSlice, spread_evenly, wrap_around

BUFFERS_PER_BLOCK = 8
"""Fewest buffers of a block, so that rows of as many groups are mixed in it."""


BufferIds = dict[int, tuple[int, ...]]  # by key of their segment


class GroupBuffer(NamedTuple):
    """A buffer with rows of one group."""

    group: int  # index of the group
    segment: int  # index of the segment
    rows: int
    buffer_id: int  # number among all buffers of the table


@dataclass(frozen=True)
class BufferLayout:
    """The buffers of a packed table, in the order of their rows."""

    buffers: tuple[GroupBuffer, ...]
    keys: tuple[int, ...]  # of the segments

    @property
    def rows(self) -> int:
        """Rows of all buffers."""
        return sum(buffer.rows for buffer in self.buffers)

    @property
    def max_rows(self) -> int:
        """Rows of the largest buffer."""
        return max(buffer.rows for buffer in self.buffers)

    def find_buffer_ids(self, group: int) -> BufferIds:
        """Return the ids of a group's buffers, by the key of their segment."""
        buffer_ids: BufferIds = {}
        for buffer in self.buffers:
            if buffer.group == group:
                key = self.keys[buffer.segment]
                buffer_ids[key] = tuple(sorted((*buffer_ids.get(key, ()), buffer.buffer_id)))
        return buffer_ids

    def to_json(self) -> JsonObject:
        """Return the layout as JSON, for `from_json`."""
        return {"cuts": [list(buffer) for buffer in self.buffers], "keys": list(self.keys)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> BufferLayout:
        """Read a layout that `to_json` wrote."""
        buffers = tuple(GroupBuffer(*map(int, cut)) for cut in values["cuts"])
        return cls(buffers, tuple(map(int, values["keys"])))


class _Cut(NamedTuple):
    """A part of a slice that fits into a buffer."""

    group_slice: GroupSlice
    rows: int
    position: float  # of the middle of the part in its slice, from 0 to 1


def lay_out(slices: Sequence[GroupSlice], max_rows: int, keys: Sequence[int]) -> BufferLayout:
    """Cut slices of groups into buffers of at most `max_rows` rows.

    >>> lay_out([GroupSlice(0, 0, 5), GroupSlice(1, 0, 2), GroupSlice(1, 1, 2)], 3, (7, 8)).buffers
    (GroupBuffer(group=0, segment=0, rows=2, buffer_id=0), \
GroupBuffer(group=0, segment=0, rows=3, buffer_id=2), \
GroupBuffer(group=1, segment=0, rows=2, buffer_id=1), \
GroupBuffer(group=1, segment=1, rows=2, buffer_id=3))
    """
    cuts: list[_Cut] = []
    for group_slice in slices:
        count = -(-group_slice.rows // max_rows)
        for index in range(count):
            rows = (index + 1) * group_slice.rows // count - index * group_slice.rows // count
            cuts.append(_Cut(group_slice, rows, (index + 0.5) / count))
    reading_order = sorted(
        range(len(cuts)),
        key=lambda index: (cuts[index].group_slice.segment, cuts[index].position, index),
    )
    buffer_ids = {index: buffer_id for buffer_id, index in enumerate(reading_order)}
    buffers = tuple(
        GroupBuffer(cut.group_slice.group, cut.group_slice.segment, cut.rows, buffer_ids[index])
        for index, cut in enumerate(cuts)
    )
    return BufferLayout(buffers, tuple(keys))


class GroupedLayouts(NamedTuple):
    """The layouts of the training and the validation rows of groups."""

    training: BufferLayout
    validation: BufferLayout
    block_rows: int  # rows of a block of buffers

    def find_places(self, groups: Groups) -> dict[str, GroupLayout]:
        """Return the buffers of each group, by the group's value."""
        return {
            group.value: GroupLayout(
                tuple(buffer.rows for buffer in self.training.buffers if buffer.group == number),
                self.training.find_buffer_ids(number),
                self.validation.find_buffer_ids(number),
                counts=group.classes,
            )
            for number, group in enumerate(groups.rows_by_group)
        }


def lay_out_groups(groups: Groups, keys: Sequence[int], block_rows: int) -> GroupedLayouts:
    """Place the rows of groups on segments with these keys; rows without a group fill them up."""
    ungrouped_training, ungrouped_validation = groups.ungrouped_rows
    training = wrap_around(
        [group.training for group in groups.rows_by_group], ungrouped_training, len(keys)
    )
    validation_rows = [*(group.validation for group in groups.rows_by_group), ungrouped_validation]
    validation = spread_evenly(training, validation_rows)
    max_rows = max(1, block_rows // BUFFERS_PER_BLOCK)
    return GroupedLayouts(
        lay_out(training, max_rows, keys), lay_out(validation, max_rows, keys), block_rows
    )
