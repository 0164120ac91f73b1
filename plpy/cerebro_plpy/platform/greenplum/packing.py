"""Packing on Greenplum: rows go from where they lie straight to their segments, and are packed
there, all at a time.

Each segment packs in the process that serves the caller's session there, with a packer of its own:
the statement that moves the rows must not move them again afterwards. What tells rows apart is
where they lie; what passes the coordinator are these numbers alone, so that buffers can be even.
"""

from __future__ import annotations

from bisect import bisect_left
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.source_rows import caller_rows
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cerebro_plpy.database.platform_protocol import Caller, Table

# So many bits less make 16,384 numbers of all hashes, and one of those of half a megabyte of a
# table.
HASHED_BITS, ORDERED_BITS = 50, 22
SETTINGS = {
    # The other planner gathers rows, and knows no single segment.
    "optimizer": "off",
    "enable_hashagg": "off",
    "gp_autostats_mode": "none",
    "gp_autostats_mode_in_functions": "none",
    "default_table_access_method": "heap",
    "jit": "off",
}


@dataclass(frozen=True)
class Source:
    """Rows with what tells them apart: `hashed` under a seed, `ordered` as they lie, where that is
    an order.

    `rows` is the quoted name of what they are read from.
    """

    rows: str
    hashed: str
    ordered: str | None

    def numbers(self, seed: int | None, columns: str = "") -> str:
        """A statement of numbers, and what else is selected of each row."""
        by_hash = sql(self.hashed, seed=f"'{seed or 0}'::bigint")
        number = sql(self.ordered) if seed is None and self.ordered else by_hash
        return sql("spread.numbers", number=number, columns=columns, source=self.rows)


@contextmanager
def packers(db: Caller) -> Iterator[None]:
    """Each segment starts its packer with its first buffer; none is left from before, nor stays."""
    with db.configured(**SETTINGS):
        db.rows(sql("spread.stop_packers"))
        try:
            yield
        finally:
            db.rows(sql("spread.stop_packers"))


@contextmanager
def placed(db: Caller, source: Table, columns: Sequence[str]) -> Iterator[Source]:
    """The source, where its rows have places; else a copy of it in which they have."""
    with caller_rows(db, db.reading, {}) as rows:
        yield from _placed(db, rows.open_table(source, columns), columns)


def _placed(db: Caller, source: Table, columns: Sequence[str]) -> Iterator[Source]:
    places = db.row(sql("spread.has_places"), source.oid, source.oid)
    if places["direct"] and places["single"]:
        yield Source(source.quoted, "spread.number_of_row", "spread.number_in_order")
    elif places["direct"]:
        yield Source(source.quoted, "spread.number_of_part_row", None)
    else:
        names = ", ".join(f"t.{quote_identifier(column)}" for column in columns)
        db.rows(sql("spread.copy", columns=names, source=source.quoted))
        yield Source("pg_temp.cerebro_rows", "spread.number_of_copy", None)
        db.rows(sql("spread.drop_copy"))


class SpreadPackers:
    """See `database.platform.Packers`."""

    def __init__(self, db: Caller, source: Source) -> None:
        self._db = db
        self._source = source
        self.rows = source.rows

    def begin(self, done: str, total: int | None = None) -> None:
        """Nobody is told: each further statement of a function can end the coordinator, if it is
        cancelled then.
        """

    def about_image(self, key: int, column: str, sent: str, spec: str) -> Any:
        """What the packer of that segment says of the first image, which is brought there."""
        image = self._db.value(sql("spread.first", column=column, source=self.rows))
        self._db.rows(sql("spread.image", key=str(key)), spec, image)
        return self._db.value(sql("spread.image_packed", key=str(key)))

    def fill(self, parts: Mapping[str, str], seed: int | None, arrays: str) -> None:
        """Pack all rows, on all segments at a time."""
        db, source = self._db, self._source
        bits = ORDERED_BITS if seed is None and source.ordered else HASHED_BITS
        bounds = find_bounds(db, source.numbers(seed), bits, int(parts["buffers"]))
        numbered = source.numbers(seed, f", {parts['columns']}")
        packed = sql("spread.packed", **{**parts, "numbers": numbered, "bounds": bounds})
        db.rows(sql("spread.fill", **{**parts, "packed": packed}), arrays)
        last = sql("spread.packed_last", keys=parts["keys"])
        db.rows(sql("spread.fill", **{**parts, "packed": last}))


def find_bounds(db: Caller, numbers: str, shift: int, buffers: int) -> str:
    """The numbers with which buffers begin, but for the first, as an array literal.

    Buffers are cut from the order of all numbers, evenly. Nothing sorts these at one place: each
    segment counts them by their leading bits, and only those near a bound are looked at.
    """
    if buffers == 1:
        return "{}"
    with db.configured(enable_hashagg="on"):
        counted = db.row(sql("spread.histogram", numbers=numbers, shift=str(shift)))
    bins, wanted = first_rows(counted["bins"] or (), counted["counts"] or (), buffers)
    question = sql("spread.bounds", numbers=numbers, shift=str(shift))
    return db.value(question, sorted(set(bins)), bins, wanted) or "{}"


def first_rows(
    bins: Sequence[int], counts: Sequence[int], buffers: int
) -> tuple[list[int], list[int]]:
    """Of the first row of each buffer but the first, the bin and the place in it, from 1.

    >>> first_rows([-1, 4, 5], [2, 3, 1], 3)
    ([4, 4], [1, 3])
    """
    ends = list(accumulate(counts))
    rows = ends[-1] if ends else 0
    places = (
        [min(-(-number * rows // buffers) + 1, rows) for number in range(1, buffers)]
        if rows
        else []
    )
    found = [bisect_left(ends, place) for place in places]
    return [bins[i] for i in found], [
        place - ends[i] + counts[i] for i, place in zip(found, places)
    ]
