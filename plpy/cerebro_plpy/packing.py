"""Packs rows into buffers: the work is one INSERT … SELECT, in C and, over whole buffers, in numpy.

Rows are spread at random, by seed: row number i of the source goes to the place that a hash of (i, seed)
has in the order of all hashes. Buffer b belongs to segment b mod n.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cerebro_plpy.catalog import Catalog, quoted
from cerebro_plpy.db import Database, Row
from cerebro_plpy.errors import DatatypeMismatch, InvalidParameter, NullNotAllowed
from cerebro_plpy.names import quote_identifier
from cerebro_plpy.packed import strip_padding
from cerebro_plpy.queries import sql
from cerebro_plpy.records import Relation

ELEMENTS_PER_BUFFER = 16 << 20  # 64 MB of float32: bounds what one row of a packed table takes in memory
NUMBERS = "N"
# A scan that starts in the middle of the table would number its rows differently, and a hashed aggregate
# would hold all buffers in memory at once.
SETTINGS = {"synchronize_seqscans": "off", "enable_hashagg": "off", "max_parallel_workers_per_gather": "0"}
SEND_TYPE = {"float32": "real[]", "int16": "smallint[]"}


@dataclass(frozen=True)
class Column:
    """How one column is packed. `kind` is float32, int16 (encoded by the user) or onehot."""

    name: str
    type: str
    kind: str
    scalar: bool
    classes: tuple[str | None, ...] | None = None

    def expression(self) -> str:
        """The array that is sent to the packer, of row `g`."""
        column = f"g.{quote_identifier(self.name)}"
        if self.classes is not None:
            index = f"pg_catalog.array_position({text_array(self.classes)}::text[]::{self.type}[], {column}) - 1"
            return f"ARRAY[{index}]::integer[]"
        return f"{f'ARRAY[{column}]' if self.scalar else column}::{SEND_TYPE[self.kind]}"


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


def text_array(values: Sequence[str | None]) -> str:
    """An array literal as a quoted SQL string.

    >>> text_array(["a'b", None, 'c"d'])
    'E\\'{"a\\'\\'b",NULL,"c\\\\\\\\"d"}\\''
    """
    items = ("NULL" if v is None else '"' + v.replace("\\", "\\\\").replace('"', '\\"') + '"' for v in values)
    body = "{" + ",".join(items) + "}"
    return "E'" + body.replace("\\", "\\\\").replace("'", "''") + "'"


def independent_column(catalog: Catalog, source: Relation, name: str) -> Column:
    """An input: an array of numbers, or a number."""
    found = catalog.column(source, name)
    scalar = found["category"] == NUMBERS
    if not scalar and not numeric_array(found):
        raise DatatypeMismatch(
            f"{catalog.module} error: independent column '{name}' of table '{source.given}' is of type {found['type']};"
            " expected an array of numbers, or a number.",
            hint="Build one with ARRAY[column, …]::real[].",
        )
    return Column(name, found["type"], "float32", scalar)


def dependent_column(catalog: Catalog, source: Relation, name: str, dependent_type: str | None) -> Column:
    """A target; its classes are filled in later, for they take a scan."""
    found = catalog.column(source, name)
    if found["category"] == "A" and not numeric_array(found):
        raise DatatypeMismatch(
            f"{catalog.module} error: dependent column '{name}' of table '{source.given}' is of type {found['type']};"
            " expected an array of numbers (encoded classes, or floats), or a single value.",
        )
    if found["category"] == "A":
        whole = found["element"] in ("smallint", "integer", "bigint")
        is_float = dependent_type == "float" or (dependent_type is None and not whole)
        return Column(name, found["type"], "float32" if is_float else "int16", False)
    if dependent_type == "float":
        if found["category"] != NUMBERS:
            raise DatatypeMismatch(
                f"{catalog.module} error: dependent column '{name}' of table '{source.given}' is of type {found['type']};"
                " dependent_type 'float' expects a number or an array of numbers.",
                hint="Leave dependent_type out to encode classes.",
            )
        return Column(name, found["type"], "float32", True)
    return Column(name, found["type"], "onehot", True)


def numeric_array(found: Row) -> bool:
    """Whether a column of the catalog is an array of numbers."""
    return bool(found["category"] == "A" and found["element_category"] == NUMBERS)


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
                f"{catalog.module} error: column '{column.name}' of table '{source.given}' is NULL in {missing} of {found[0]} rows.",
                hint="Leave these rows out: pack a view or table that has WHERE … IS NOT NULL.",
            )
    return int(found[0])


def find_classes(db: Database, source: Relation, column: Column, category: str) -> tuple[str | None, ...]:
    """The classes of a target in the order of their one-hot columns."""
    order = 'd.v COLLATE "C"' if category == "S" else "d.v"
    text = sql("pack.classes", source=source.quoted, column=quote_identifier(column.name), order=order)
    return strip_padding(db.value(text))


def row_elements(db: Database, source: Relation, column: Column) -> int:
    """How many numbers one row of an input has."""
    if column.scalar:
        return 1
    text = sql("pack.elements", source=source.quoted, column=quote_identifier(column.name))
    return int(db.value(text) or 0)


def layout(packing: Packing, elements: int) -> tuple[int, int]:
    """Number of buffers, and rows of the largest one: every segment gets the same number of buffers.

    A given buffer size is a hint, as in MADlib; without one a buffer holds about 64 MB.
    """
    size = packing.buffer_size or max(1, ELEMENTS_PER_BUFFER // max(1, elements))
    per_segment = -(-packing.rows // (min(size, packing.rows) * packing.segments))
    buffers = min(packing.segments * per_segment, packing.rows)
    return buffers, -(-packing.rows // buffers)


def fill(db: Database, packing: Packing, buffers: int) -> None:
    """Create the packed table and fill it."""
    columns = (*packing.independent, *packing.dependent)
    named = [quote_identifier(c.name) for c in columns]
    shapes = [quote_identifier(f"{c.name}_shape") for c in columns]
    db.rows(sql(
        "pack.table", output=packing.output.quoted,
        columns=", ".join(f"{n} bytea NOT NULL" for n in named), shapes=", ".join(f"{n} integer[] NOT NULL" for n in shapes),
    ))  # fmt: skip
    for name in named:
        db.rows(sql("pack.external", output=packing.output.quoted, column=name))
    order = "n.number" if packing.seed is None else f"pg_catalog.hashint8extended(n.number, {packing.seed}), n.number"
    text = sql(
        "pack.fill", output=packing.output.quoted, source=packing.source.quoted, names=", ".join(named),
        shape_names=", ".join(shapes), segments=str(packing.segments), buffers=str(buffers), rows=str(packing.rows), order=order,
        columns=", ".join(f"t.{n}" for n in named), carried=", ".join(named),
        aggregates=", ".join(f"pg_catalog.string_agg(pg_catalog.array_send({c.expression()}), ''::bytea)" for c in columns),
        parts=", ".join(f"(b.packed).data[{i}]" for i in range(1, len(columns) + 1)),
        part_shapes=", ".join(
            f"ARRAY(SELECT pg_catalog.json_array_elements_text((b.packed).shapes -> {i})::integer)" for i in range(len(columns))
        ),
    )  # fmt: skip
    with db.configured(**SETTINGS):
        db.rows(text, json.dumps([described(packing, c) for c in columns]))
    db.rows(sql("pack.index", output=packing.output.quoted))


def described(packing: Packing, column: Column) -> dict[str, object]:
    """A column as the packer wants it described."""
    if column.classes is not None:
        return {"kind": "onehot", "classes": len(column.classes)}
    if column in packing.independent:
        return {"kind": column.kind, "divide": packing.normalizing_const}
    return {"kind": column.kind}


def with_classes(column: Column, classes: tuple[str | None, ...], padded: int) -> Column:
    """The column with its classes, padded with NULL to a number of them."""
    return replace(column, classes=(*classes, *(None,) * (padded - len(classes))))


def summarize(db: Database, packing: Packing, buffer_size: int) -> None:
    """Create and fill the summary table."""
    summary = quoted(packing.output.schema, packing.output.name + "_summary")
    dependent = packing.dependent
    class_columns = ", ".join(f"{quote_identifier(c.name + '_class_values')} {c.type if c.classes else 'text'}[]" for c in dependent)
    db.rows(sql("pack.summary", summary=summary, class_columns=class_columns))
    values = ", ".join(f"{text_array(c.classes)}::text[]::{c.type}[]" if c.classes else "NULL" for c in dependent)
    # NULL for floats, empty for targets that came encoded: the only place that tells the two apart.
    classes = None if any(c.kind == "float32" for c in dependent) else [len(c.classes) for c in dependent if c.classes]
    db.rows(
        sql("pack.summarize", summary=summary, class_values=values),
        packing.source.given, packing.output.given, [c.name for c in dependent], [c.name for c in packing.independent],
        [c.type for c in dependent], buffer_size, packing.normalizing_const, classes, "all_segments", "all_segments",
    )  # fmt: skip
