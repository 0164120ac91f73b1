"""Packing on Greenplum: rows are sent directly to their segments, which pack them in parallel.

Each segment packs in the process that serves the caller's session there, with its own packer: the
statement that moves the rows must not move them again afterwards. A row is identified by its
storage location. Only numbers made from these locations pass through the coordinator, which makes
even buffers from them.
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
    from collections.abc import Iterator, Sequence

    from cerebro_plpy.database.platform_protocol import Caller, SqlParts, Table

HASHED_BITS = 50  # shifting hashes right by this leaves 16,384 bins
ORDERED_BITS = 22  # shifting locations right by this puts half a megabyte of a table into a bin
SETTINGS = {
    # The other planner gathers rows, and cannot send a statement to a single segment.
    "optimizer": "off",
    "enable_hashagg": "off",
    "gp_autostats_mode": "none",
    "gp_autostats_mode_in_functions": "none",
    "default_table_access_method": "heap",
    "jit": "off",
}


@dataclass(frozen=True)
class Source:
    """Rows to pack, and expressions that number them."""

    rows: str  # quoted name of their table
    hashed: str  # statement of the expression for a hash of the location and a seed
    ordered: str | None  # statement of the expression for the location, if it has an order

    def numbers_query(self, seed: int | None, columns: str = "") -> str:
        """Return the query for the number of each row, and for further columns."""
        number = sql(self.hashed, seed=f"'{seed or 0}'::bigint")
        if seed is None and self.ordered:
            number = sql(self.ordered)
        return sql("spread.numbers", number=number, columns=columns, source=self.rows)


@contextmanager
def stopped_packers(db: Caller) -> Iterator[None]:
    """Stop the packers of all segments before and after.

    Within, each segment starts its packer with its first buffer.
    """
    with db.configured(**SETTINGS):
        db.rows(sql("spread.stop_packers"))
        try:
            yield
        finally:
            db.rows(sql("spread.stop_packers"))


@contextmanager
def locate_rows(db: Caller, source: Table, columns: Sequence[str]) -> Iterator[Source]:
    """Return the source if its rows have storage locations, else a copy of it."""
    with caller_rows(db, db.reading, {}) as rows:
        opened = rows.open_table(source, columns)
        locations = db.row(sql("spread.has_places"), opened.oid, opened.oid)
        if locations["direct"] and locations["single"]:
            yield Source(opened.quoted, "spread.number_of_row", "spread.number_in_order")
        elif locations["direct"]:
            yield Source(opened.quoted, "spread.number_of_part_row", None)
        else:
            names = ", ".join(f"t.{quote_identifier(column)}" for column in columns)
            db.rows(sql("spread.copy", columns=names, source=opened.quoted))
            yield Source("pg_temp.cerebro_rows", "spread.number_of_copy", None)
            db.rows(sql("spread.drop_copy"))


class GreenplumPackers:
    """See `platform_protocol.Packers`."""

    def __init__(self, db: Caller, source: Source) -> None:
        self._db = db
        self._source = source
        self.from_item = source.rows

    def begin(self, activity: str, total: int | None = None) -> None:
        """Show nothing: a cancel during a further statement of a function can end the server."""

    def inspect_image(self, key: int, column: str, encoding: str, spec: str) -> Any:
        """Send the first image to a segment; return the findings of its packer."""
        image = self._db.value(sql("spread.first", column=column, source=self.from_item))
        self._db.rows(sql("spread.image", key=str(key)), spec, image)
        return self._db.value(sql("spread.image_packed", key=str(key)))

    def fill(self, parts: SqlParts, seed: int | None, arrays: str) -> None:
        """Pack all rows, on all segments in parallel."""
        db = self._db
        source = self._source
        bits = ORDERED_BITS if seed is None and source.ordered else HASHED_BITS
        bounds = find_bounds(db, source.numbers_query(seed), bits, int(parts["buffers"]))
        numbers = source.numbers_query(seed, f", {parts['columns']}")
        packed = sql("spread.packed", **{**parts, "numbers": numbers, "bounds": bounds})
        db.rows(sql("spread.fill", **{**parts, "packed": packed}), arrays)
        last = sql("spread.packed_last", keys=parts["keys"])
        db.rows(sql("spread.fill", **{**parts, "packed": last}))


def find_bounds(db: Caller, numbers: str, shift: int, buffers: int) -> str:
    """Return the first number of each buffer except the first, as an array literal.

    The sequence of all numbers is divided evenly into buffers, without sorting it on one machine.
    Each segment makes a histogram of the leading bits, and only bins with a bound are examined.
    """
    if buffers == 1:
        return "{}"
    with db.configured(enable_hashagg="on"):
        histogram = db.row(sql("spread.histogram", numbers=numbers, shift=str(shift)))
    bins, offsets = locate_bounds(histogram["bins"] or (), histogram["counts"] or (), buffers)
    query = sql("spread.bounds", numbers=numbers, shift=str(shift))
    return db.value(query, sorted(set(bins)), bins, offsets) or "{}"


def locate_bounds(
    bins: Sequence[int], counts: Sequence[int], buffers: int
) -> tuple[list[int], list[int]]:
    """Return the bin of the first row of each buffer except the first, and its position in the bin.

    Positions are counted from 1.

    >>> locate_bounds([-1, 4, 5], [2, 3, 1], 3)
    ([4, 4], [1, 3])
    """
    ends = list(accumulate(counts))
    rows = sum(counts)
    if rows == 0:
        return [], []
    bound_bins = []
    offsets = []
    for buffer in range(1, buffers):
        first_row = min(-(-buffer * rows // buffers) + 1, rows)
        index = bisect_left(ends, first_row)
        bound_bins.append(bins[index])
        offsets.append(first_row - ends[index] + counts[index])
    return bound_bins, offsets
