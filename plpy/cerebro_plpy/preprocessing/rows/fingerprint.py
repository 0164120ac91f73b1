"""What tells the rows of a table from others, in all that a network sees of them: a sum of hashes,
in any order.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.preprocessing.recipe.split_encoding import packed_inputs
from cerebro_plpy.preprocessing.rows.row_subset import RowSubset
from cerebro_plpy.preprocessing.values import thumbnails

TEXT = 't.label COLLATE pg_catalog."C"'


class Digest(NamedTuple):
    """Of the rows of a side: how many there are of each class, or of none, and the sum of their
    hashes.
    """

    counts: dict[str | None, int]
    hashes: int

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(self.counts.values())


def compute_digest(reader: Reader, part: RowSubset, table: str, classes: bool) -> Digest:
    """The digest of a side whose raw rows are such a table.

    A hash over the bytes of arrays takes half as long as one over each of their elements.
    """
    arrays = ", ".join(
        f"t.{each.name}" if each.kind == thumbnails.KIND else f"cerebro.array_bytes(t.{each.name})"
        for each in packed_inputs(part.recipe)
    )
    numbers = [*([] if classes else ["label"]), *([] if part.weight is None else ["weight"])]
    hashes = [
        f"pg_catalog.hash_array_extended(ARRAY[{arrays}], 0)",
        *([f"pg_catalog.hashtextextended({TEXT}, 0)"] if classes else []),
        *(f"pg_catalog.hashfloat8extended(t.{name}, 0)" for name in numbers),
    ]
    # What differs is to differ in the sum, too, wherever it stands.
    row = f"pg_catalog.hash_array_extended(ARRAY[{', '.join(hashes)}], 0)"
    found = reader.run(
        sql("features.digest", label=TEXT if classes else "NULL::text", hash=row, table=table)
    )
    return Digest(
        {name: rows for name, rows, _ in found}, sum(int(hashed) for _, _, hashed in found)
    )


def fingerprint(training: int, validation: int) -> str:
    """A text by which both sides of a table are compared with those of another time."""
    return hashlib.sha256(f"{training}/{validation}".encode()).hexdigest()
