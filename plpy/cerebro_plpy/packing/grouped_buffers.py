"""Buffers that hold one group each: how many rows each of them has, on which segment it lies, and
its number.

Rows come group by group. A segment is read in the order of buffer ids, so those of its groups lie
among one another: whoever goes through all of a segment sees no group as a whole before the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.configs.train_spec import GroupPlace
from cerebro_plpy.preprocessing.rows.groups import Groups
from cerebro_plpy.records import dataclass
from cerebro_plpy.scheduling.schedule.placement import GroupSlice, spread_evenly, wrap_around

MIXED = 8
"""Buffers that make a block, at the least: so many groups may be among one another in it."""


class Cut(NamedTuple):
    """A buffer: its group and its segment by their places, its rows, and its number among all
    buffers.
    """

    group: int
    segment: int
    rows: int
    buffer_id: int


@dataclass(frozen=True)
class Layout:
    """The buffers of a packed table in the order in which their rows come; segments have these
    `keys`.
    """

    cuts: tuple[Cut, ...]
    keys: tuple[int, ...]

    @property
    def rows(self) -> int:
        """Of all buffers."""
        return sum(cut.rows for cut in self.cuts)

    @property
    def most_rows(self) -> int:
        """Of the largest buffer."""
        return max(cut.rows for cut in self.cuts)

    def buffers_of(self, group: int) -> dict[int, tuple[int, ...]]:
        """The numbers of a group's buffers, by the key of their segment."""
        found: dict[int, tuple[int, ...]] = {}
        for cut in self.cuts:
            if cut.group == group:
                key = self.keys[cut.segment]
                found[key] = tuple(sorted((*found.get(key, ()), cut.buffer_id)))
        return found

    def to_json(self) -> dict[str, Any]:
        """As `from_json` takes it."""
        return {"cuts": [list(cut) for cut in self.cuts], "keys": list(self.keys)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Layout:
        """What `to_json` gave."""
        return cls(
            tuple(Cut(*map(int, cut)) for cut in values["cuts"]), tuple(map(int, values["keys"]))
        )


def layout(pieces: Sequence[GroupSlice], size: int, keys: Sequence[int]) -> Layout:
    """Buffers of at most so many rows for pieces of groups, which lie on segments with these keys.

    >>> layout([GroupSlice(0, 0, 5), GroupSlice(1, 0, 2), GroupSlice(1, 1, 2)], 3, (7, 8)).cuts
    (Cut(group=0, segment=0, rows=2, buffer_id=0), Cut(group=0, segment=0, rows=3, buffer_id=2), \
Cut(group=1, segment=0, rows=2, buffer_id=1), Cut(group=1, segment=1, rows=2, buffer_id=3))
    """
    found: list[tuple[GroupSlice, int, float]] = []
    for piece in pieces:
        count = -(-piece.rows // size)
        for place in range(count):
            rows = (place + 1) * piece.rows // count - place * piece.rows // count
            found.append((piece, rows, (place + 0.5) / count))
    order = sorted(
        range(len(found)), key=lambda number: (found[number][0].segment, found[number][2], number)
    )
    numbers = {place: number for number, place in enumerate(order)}
    cuts = (
        Cut(piece.group, piece.segment, rows, numbers[place])
        for place, (piece, rows, _) in enumerate(found)
    )
    return Layout(tuple(cuts), tuple(keys))


class Grouped(NamedTuple):
    """The layouts of the rows that are trained on, and of those held back, and of how many rows a
    block is made.
    """

    training: Layout
    validation: Layout
    block_rows: int

    def places(self, groups: Groups) -> dict[str, GroupPlace]:
        """Where the rows of each group lie."""
        return {
            each.value: GroupPlace(
                tuple(cut.rows for cut in self.training.cuts if cut.group == n),
                self.training.buffers_of(n),
                self.validation.buffers_of(n),
                counts=each.classes,
            )
            for n, each in enumerate(groups.found)
        }


def grouped_layouts(groups: Groups, keys: Sequence[int], block_rows: int) -> Grouped:
    """Where rows of groups are to lie, on segments with these keys; those without a group fill them
    up.
    """
    loose, held = groups.loose
    pieces = wrap_around([each.training for each in groups.found], loose, len(keys))
    beside = spread_evenly(pieces, [*(each.validation for each in groups.found), held])
    size = max(1, block_rows // MIXED)
    return Grouped(layout(pieces, size, keys), layout(beside, size, keys), block_rows)
