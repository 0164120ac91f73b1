"""A fingerprint of the rows that a network is trained on: a sum of hashes, in any order of rows."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.preprocessing.recipe.split_encoding import packed_inputs
from cerebro_plpy.preprocessing.rows.row_subset import RowSubset
from cerebro_plpy.preprocessing.values import thumbnails

LABEL_TEXT = 't.label COLLATE pg_catalog."C"'


class Digest(NamedTuple):
    """The rows of one side: their number by class, and the sum of their hashes."""

    counts: dict[str | None, int]  # the key is None if there are no classes
    hashes: int

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(self.counts.values())


def compute_digest(reader: Reader, part: RowSubset, table: str, has_classes: bool) -> Digest:
    """Return the digest of one side.

    A hash over the bytes of an array takes half as long as one over each element.

    Args:
        table: the table of raw rows made from the side.
    """
    arrays = ", ".join(
        f"t.{entry.name}"
        if entry.kind == thumbnails.KIND
        else f"cerebro_internal.array_bytes(t.{entry.name})"
        for entry in packed_inputs(part.recipe)
    )
    hashes = [f"pg_catalog.hash_array_extended(ARRAY[{arrays}], 0)"]
    label = "NULL::text"
    if has_classes:
        label = LABEL_TEXT
        hashes.append(f"pg_catalog.hashtextextended({LABEL_TEXT}, 0)")
    else:
        hashes.append("pg_catalog.hashfloat8extended(t.label, 0)")
    if part.weight is not None:
        hashes.append("pg_catalog.hashfloat8extended(t.weight, 0)")
    # A hash of the hashes: equal parts of two rows must not cancel out in the sum.
    row_hash = f"pg_catalog.hash_array_extended(ARRAY[{', '.join(hashes)}], 0)"
    counts = reader.run(sql("features.digest", label=label, hash=row_hash, table=table))
    return Digest(
        counts={name: rows for name, rows, _ in counts},
        hashes=sum(int(hash_sum) for _, _, hash_sum in counts),
    )


def fingerprint(training: int, validation: int) -> str:
    """Return the text by which both sides of a table are compared with those of another time."""
    return hashlib.sha256(f"{training}/{validation}".encode()).hexdigest()
