"""Packs rows into buffers: the work is one INSERT … SELECT, in C and, over whole buffers, in numpy.

Rows are spread at random, by seed: which buffer row number i of the source goes to is the place that a hash of
(i, seed) has in the order of all hashes. That order is cut into buffers, and the buffers into segments, evenly.
What is sorted is the number of the buffer alone; the order within a buffer is the packer's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from cerebro_plpy.catalog import Catalog
from cerebro_plpy.columns import CLASSES, IMAGE, MAX_CLASSES, SHAPE, Column, text_array
from cerebro_plpy.db import Database
from cerebro_plpy.errors import InvalidParameter, NullNotAllowed
from cerebro_plpy.names import quote_identifier, quote_qualified
from cerebro_plpy.packed import strip_padding
from cerebro_plpy.queries import sql
from cerebro_plpy.records import Relation

# 8 MB of float32, so that a buffer stays in the processor's cache on its way; rows of which few fit may take 64 MB.
ELEMENTS_PER_BUFFER, FEW_ROWS, MOST_ELEMENTS = 2 << 20, 1024, 16 << 20
ELEMENTS_PER_ARRAY = 3  # what the head of an array takes, in elements, on its way to the packer
# A scan that starts in the middle of the table would number its rows differently, and a hashed aggregate
# would hold all buffers in memory at once. Rows are sorted in parts of 16 MB: with less they are written and read
# twice, with more a part no longer fits into the processor's cache.
SETTINGS = {
    "work_mem": "16MB",
    "synchronize_seqscans": "off",
    "enable_hashagg": "off",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
}


@dataclass(frozen=True)
class Packing:
    """All that decides what a packed table looks like."""

    source: Relation
    output: Relation
    dependent: tuple[Column, ...]
    independent: tuple[Column, ...]
    rows: int
    buffer_size: int | None
    normalizing_const: float
    segments: int
    seed: int | None


def count_rows(db: Database, catalog: Catalog, source: Relation, columns: Sequence[Column]) -> int:
    """Rows of the source; refuses an empty one, and NULL where a value must be."""
    strict = [c for c in columns if c.kind != "onehot"]
    nulls = (f", count(*) FILTER (WHERE t.{quote_identifier(c.name)} IS NULL) AS n{i}" for i, c in enumerate(strict))
    found = list(db.row(sql("pack.count", source=source.quoted, nulls="".join(nulls))).values())
    if found[0] == 0:
        raise InvalidParameter(f"{catalog.module} error: Input table '{source.given}' is empty!")
    for column, missing in zip(strict, found[1:]):
        if missing:
            raise NullNotAllowed(
                f"{catalog.module} error: column '{column.name}' of table '{source.given}' is NULL in {missing} of"
                f" {found[0]} rows.",
                hint="Leave these rows out: pack a view or table that has WHERE … IS NOT NULL.",
            )
    return int(found[0])


def find_forms(db: Database, source: Relation, column: Column) -> tuple[str | None, ...]:
    """The texts that the values of a target have."""
    text = sql("pack.forms", source=source.quoted, column=quote_identifier(column.name), most=str(MAX_CLASSES + 1))
    return tuple(db.value(text) or ())


def find_classes(db: Database, column: Column, forms: Sequence[str | None], category: str) -> tuple[str | None, ...]:
    """The classes of a target, of which these are texts, in the order of their one-hot columns."""
    order = 'd.v COLLATE "C"' if category == "S" else "d.v"
    return strip_padding(db.value(sql("pack.classes", type=column.type, order=order), list(forms)) or [])


def class_numbers(db: Database, column: Column) -> str:
    """Where the texts of a target's values are found with the numbers of their classes: an expression for FROM.

    Looking up a text in a hash table takes as long for many classes as for few.
    """
    classes = column.classes or ()
    numbers = {name: number for number, name in enumerate(strip_padding(list(classes)))}
    known = [form for form in column.forms if form is not None]
    others = [form for form in known if form not in numbers]
    if others:
        found = db.value(sql("pack.class_numbers", type=column.type), list(classes), others)
        numbers.update(zip(others, found))
    placed = ", ".join(str(numbers[form]) for form in known)
    return f"ROWS FROM (pg_catalog.unnest({text_array(known)}::text[]), pg_catalog.unnest('{{{placed}}}'::integer[]))"


def row_elements(db: Database, source: Relation, column: Column) -> int:
    """The room that a column takes in one row, in numbers of four bytes; the packer looks at the first image."""
    if column.classes is not None:
        return ELEMENTS_PER_ARRAY + len(column.classes) // 2
    if column.kind == IMAGE:
        spec = json.dumps({"rows": 1, "buffer_id": 0, "arrays": [{"kind": IMAGE, "column": column.name}]})
        image = column.sent(f"t.{quote_identifier(column.name)}")
        return prod(json.loads(db.value(sql("pack.image", source=source.quoted, image=image), spec))["shapes"][0])
    if column.scalar:
        return ELEMENTS_PER_ARRAY + 1
    text = sql("pack.elements", source=source.quoted, column=quote_identifier(column.name))
    return ELEMENTS_PER_ARRAY + int(db.value(text) or 0)


def layout(packing: Packing, elements: int) -> tuple[int, int]:
    """Number of buffers, and rows of the largest one: every segment gets the same number of buffers.

    `elements` is the room of a row. A given buffer size is a hint, as in MADlib; without one a buffer holds
    about 8 MB, or 1,024 rows where these take no more than 64 MB.
    """
    usual = max(1, ELEMENTS_PER_BUFFER // elements, min(FEW_ROWS, MOST_ELEMENTS // elements))
    size = packing.buffer_size or usual
    per_segment = -(-packing.rows // (min(size, packing.rows) * packing.segments))
    buffers = min(packing.segments * per_segment, packing.rows)
    return buffers, -(-packing.rows // buffers)


def pack(db: Database, packing: Packing) -> None:
    """Make the packed table and its summary."""
    elements = sum(row_elements(db, packing.source, c) for c in (*packing.independent, *packing.dependent))
    buffers, buffer_size = layout(packing, elements)
    fill(db, packing, buffers)
    summarize(db, packing, buffer_size)


def create(db: Database, packing: Packing, named: Sequence[str], shapes: Sequence[str]) -> None:
    """Create the packed table, with columns of these quoted names."""
    db.rows(
        sql(
            "pack.table",
            output=packing.output.quoted,
            columns=", ".join(f"{n} bytea NOT NULL" for n in named),
            shapes=", ".join(f"{n} integer[] NOT NULL" for n in shapes),
        )
    )
    for name in named:
        db.rows(sql("pack.external", output=packing.output.quoted, column=name))


def fill(db: Database, packing: Packing, buffers: int) -> None:
    """Create the packed table and fill it."""
    columns = (*packing.independent, *packing.dependent)
    named = [quote_identifier(c.name) for c in columns]
    shapes = [quote_identifier(c.name + SHAPE) for c in columns]
    create(db, packing, named, shapes)
    with db.configured(**SETTINGS):
        db.rows(insertion(db, packing, named, shapes, buffers), json.dumps([described(packing, c) for c in columns]))
    check_shapes(db, packing, shapes)
    db.rows(sql("pack.index", output=packing.output.quoted))


def check_shapes(db: Database, packing: Packing, shapes: Sequence[str]) -> None:
    """Raises where buffers have different shapes; within a buffer the packer has compared them."""
    for column, shape in zip((*packing.independent, *packing.dependent), shapes):
        found = db.rows(sql("pack.shapes", output=packing.output.quoted, shape=shape))
        if len(found) > 1:
            listed = ", ".join(f"{'x'.join(map(str, row['shape']))} ({row['rows']} rows)" for row in found[:10])
            raise InvalidParameter(
                f"column {column.name!r} of table '{packing.source.given}' has values of {len(found)} shapes;"
                " expected one.",
                detail=f"There are {listed}{', …' if len(found) > 10 else ''}.",
                hint="All values of a column must have the same dimensions: leave the others out, or change them.",
            )


def insertion(db: Database, packing: Packing, named: Sequence[str], shapes: Sequence[str], buffers: int) -> str:
    """The statement that packs all rows."""
    columns = (*packing.independent, *packing.dependent)
    # Names that no column of the user can have in the way.
    carried = [f"c{number}" for number in range(len(columns))]
    encoded = [(n, f"k{n[1:]}", c) for n, c in zip(carried, columns) if c.classes is not None]
    numbers = {
        n: f"CASE WHEN n.{n} IS NULL THEN {'0' if c.classes and c.classes[0] is None else 'NULL'} ELSE {k}.number END"
        for n, k, c in encoded
    }
    joins = (f"LEFT JOIN {class_numbers(db, c)} AS {k} (form, number) ON {k}.form = n.{n}::text" for n, k, c in encoded)
    return sql(
        "pack.fill",
        output=packing.output.quoted,
        source=packing.source.quoted,
        names=", ".join(named),
        shape_names=", ".join(shapes),
        segments=str(packing.segments),
        buffers=str(buffers),
        buffer=buffer_of(packing, buffers),
        seed="NULL" if packing.seed is None else f"'{packing.seed}'::bigint",
        columns=", ".join(f"t.{n} AS {c}" for n, c in zip(named, carried)),
        carried=", ".join(f"{numbers.get(c, f'n.{c}')} AS {c}" for c in carried),
        joins=" ".join(joins),
        aggregates=", ".join(f"pg_catalog.string_agg({c.sent(f'g.{n}')}, ''::bytea)" for c, n in zip(columns, carried)),
        parts=", ".join(f"b.packed[{i}]" for i in range(2, len(columns) + 2)),
        part_shapes=", ".join(
            f"ARRAY(SELECT pg_catalog.json_array_elements_text(a.shapes -> {i})::integer)" for i in range(len(columns))
        ),
    )


def buffer_of(packing: Packing, buffers: int) -> str:
    """The buffer of row n.number, from 0: an expression."""
    name = "pack.buffer_in_order" if packing.seed is None else "pack.buffer_by_hash"
    return sql(name, rows=str(packing.rows), buffers=str(buffers), seed=f"'{packing.seed}'::bigint")


def described(packing: Packing, column: Column) -> dict[str, object]:
    """A column as the packer wants it described; "array" is what it looks for bad rows by."""
    described: dict[str, object] = {"kind": column.kind, "column": column.name}
    if column.classes is not None:
        return {**described, "kind": "onehot", "classes": len(column.classes)}
    if column.kind != IMAGE:
        name = quote_identifier(column.name)
        described["array"] = f"ARRAY[{name}]" if column.scalar else name
    if column in packing.independent:
        described["divide"] = packing.normalizing_const
    return described


def summarize(db: Database, packing: Packing, buffer_size: int) -> None:
    """Create and fill the summary table."""
    summary = quote_qualified((packing.output.schema, packing.output.name + "_summary"))
    dependent = packing.dependent
    class_columns = ", ".join(
        f"{quote_identifier(c.name + CLASSES)} {c.type if c.classes else 'text'}[]" for c in dependent
    )
    db.rows(sql("pack.summary", summary=summary, class_columns=class_columns))
    values = ", ".join(f"{text_array(c.classes)}::text[]::{c.type}[]" if c.classes else "NULL" for c in dependent)
    # NULL for floats, empty for targets that came encoded: the only place that tells the two apart.
    classes = None if any(c.kind == "float32" for c in dependent) else [len(c.classes) for c in dependent if c.classes]
    db.rows(
        sql("pack.summarize", summary=summary, class_values=values),
        packing.source.given,
        packing.output.given,
        [c.name for c in dependent],
        [c.name for c in packing.independent],
        [c.type for c in dependent],
        buffer_size,
        packing.normalizing_const,
        classes,
        "all_segments",
        "all_segments",
    )
