"""Packs rows into buffers: the work is one INSERT … SELECT, in C and, over whole buffers, in numpy.

Rows are spread at random, by seed: which buffer row number i of the source goes to is the place
that a hash of (i, seed) has in the order of all hashes. That order is cut into buffers, and the
buffers into segments, evenly. What is sorted is the number of the buffer alone; the order within a
buffer is the packer's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, islice
from math import prod

from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.platform_protocol import ALL, Distribution, Packers
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sql.identifiers import quote_identifier, quote_qualified
from cerebro_plpy.database.sql.literals import array_literal, literal
from cerebro_plpy.errors import InvalidParameter, NullNotAllowed
from cerebro_plpy.packing.grouped_buffers import Layout
from cerebro_plpy.packing.packed_columns import CLASSES, IMAGE, SHAPE, Column
from cerebro_plpy.packing.target_classes import class_numbers
from cerebro_plpy.records import dataclass, field

# 8 MB of float32, so that a buffer stays in the processor's cache on its way; rows of which few fit
# may take 64 MB.
ELEMENTS_PER_BUFFER, FEW_ROWS, MOST_ELEMENTS = 2 << 20, 1024, 16 << 20
# What a backend sends at a time, and the packer decodes: a MB of float32, or a single row.
ELEMENTS_PER_BLOCK, MOST_BLOCKS = 1 << 18, 1 << 16
FLOAT_BYTES = 4
ELEMENTS_PER_ARRAY = 3  # what the head of an array takes, in elements, on its way to the packer


@dataclass(frozen=True)
class Packing:
    """All that decides what a packed table looks like, where its rows go, and who packs them."""

    source: Relation
    output: Relation
    dependent: tuple[Column, ...]
    independent: tuple[Column, ...]
    weight: tuple[Column, ...]
    rows: int
    buffer_size: int | None
    normalizing_const: float
    distribution: Distribution
    seed: int | None
    packers: Packers
    recipes: Mapping[str, str] = field(default_factory=dict)
    """What the packer is to apply to values of some of the inputs, by their names."""
    grouped: Layout | None = None
    """Where rows come group by group: their buffers."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of the packed table, in their order: inputs, targets, and weights where there are
        any.
        """
        return (*self.independent, *self.dependent, *self.weight)

    @property
    def segments(self) -> int:
        """How many segments there are, each with a key."""
        return len(self.distribution.keys)


def count_rows(
    db: Database,
    catalog: Catalog,
    source: Relation,
    columns: Sequence[Column],
    weight: Sequence[Column] = (),
) -> int:
    """Rows of the source; refuses an empty one, NULL where a value must be, and weights that are
    none.
    """
    strict = [c for c in columns if c.kind != "onehot"]
    nulls = (
        f", count(*) FILTER (WHERE t.{quote_identifier(c.name)} IS NULL) AS n{i}"
        for i, c in enumerate(strict)
    )
    wrong = (
        sql("pack.count_weights", weight=f"t.{quote_identifier(c.name)}", number=str(i))
        for i, c in enumerate(weight)
    )
    found = list(
        db.row(sql("pack.count", source=source.quoted, nulls="".join((*nulls, *wrong)))).values()
    )
    if found[0] == 0:
        raise InvalidParameter(f"{catalog.module} error: Input table '{source.spelling}' is empty!")
    for column, missing in zip(strict, found[1:]):
        if missing:
            raise NullNotAllowed(
                f"{catalog.module} error: column '{column.name}' of table '{source.spelling}' is "
                f"NULL in {missing} of {found[0]} rows.",
                hint="Leave these rows out: pack a view or table that has WHERE … IS NOT NULL.",
            )
    for column, (usable, some) in zip(weight, (found[-2:],)):
        if usable < found[0] or not some:
            raise InvalidParameter(
                f"{catalog.module} error: column '{column.name}' of table '{source.spelling}' has "
                f"{found[0] - usable} weights that are negative or not finite, and {some} above 0, "
                f"in {found[0]} rows.",
                hint="A weight is how much a row counts in the training loss: 0 for nothing, 2 "
                "for two rows.",
            )
    return int(found[0])


def row_elements(db: Database, packing: Packing, column: Column) -> int:
    """The room that a column takes in one row, in numbers of four bytes; the packer looks at the
    first image.
    """
    if column.classes is not None:
        return ELEMENTS_PER_ARRAY + len(column.classes) // 2
    if column.kind == IMAGE:
        spec = json.dumps(
            {
                "rows": 1,
                "buffer_id": 0,
                "shapes_only": True,
                "arrays": [{"kind": IMAGE, "column": column.name}],
            }
        )
        name = quote_identifier(column.name)
        about = packing.packers.inspect_image(
            packing.distribution.keys[0], name, column.sent(f"t.{name}"), spec
        )
        return prod(json.loads(about)["shapes"][0])
    if column.scalar:
        return ELEMENTS_PER_ARRAY + 1
    text = sql("pack.elements", source=packing.source.quoted, column=quote_identifier(column.name))
    return ELEMENTS_PER_ARRAY + int(db.value(text) or 0)


def sent_elements(db: Database, packing: Packing, column: Column) -> int:
    """What is sent of a column in a row, in numbers of four bytes: a file may be longer than the
    image made of it.
    """
    if column.kind != IMAGE:
        return 0
    text = sql("pack.bytes", source=packing.source.quoted, column=quote_identifier(column.name))
    return int(db.value(text) or 0) // FLOAT_BYTES


def usual_rows(elements: int) -> int:
    """Of a buffer, where a row takes so much room."""
    return max(1, ELEMENTS_PER_BUFFER // elements, min(FEW_ROWS, MOST_ELEMENTS // elements))


def layout(packing: Packing, elements: int) -> tuple[int, int]:
    """Number of buffers, and rows of the largest one: every segment gets the same number of
    buffers.

    `elements` is the room of a row. A given buffer size is a hint, as in MADlib; without one a
    buffer holds about 8 MB, or 1,024 rows where these take no more than 64 MB.
    """
    size = packing.buffer_size or usual_rows(elements)
    per_segment = -(-packing.rows // (min(size, packing.rows) * packing.segments))
    buffers = min(packing.segments * per_segment, packing.rows)
    return buffers, -(-packing.rows // buffers)


def blocks(rows: int, elements: int) -> int:
    """In how many blocks the rows of a buffer are sent: a power of two.

    >>> blocks(1000, 4), blocks(1024, 4096), blocks(3, 1 << 24)
    (1, 16, 4)
    """
    most = min(rows, -(-rows * elements // ELEMENTS_PER_BLOCK), MOST_BLOCKS)
    return 1 << (most - 1).bit_length()


def pack(db: Database, packing: Packing) -> None:
    """Make the packed table and its summary."""
    elements = sum(row_elements(db, packing, c) for c in packing.columns)
    sent = sum(sent_elements(db, packing, c) for c in packing.columns)
    grouped = packing.grouped
    buffers, buffer_size = (
        (len(grouped.cuts), grouped.most_rows) if grouped else layout(packing, elements)
    )
    fill(db, packing, buffers, blocks(buffer_size, max(elements, sent)))
    summarize(db, packing, buffer_size)


def create(db: Database, packing: Packing, named: Sequence[str], shapes: Sequence[str]) -> None:
    """Create the packed table, with columns of these quoted names."""
    table = sql(
        "pack.table",
        output=packing.output.quoted,
        literal=literal(packing.output.quoted),
        columns=", ".join(f"{n} bytea NOT NULL" for n in named),
        shapes=", ".join(f"{n} integer[] NOT NULL" for n in shapes),
        **db.platform.clauses,
    )
    db.rows(
        "; ".join(
            [table, *(sql("pack.external", output=packing.output.quoted, column=n) for n in named)]
        )
    )


def fill(db: Database, packing: Packing, buffers: int, blocks: int) -> None:
    """Create the packed table and fill it."""
    columns = packing.columns
    named = [quote_identifier(c.name) for c in columns]
    shapes = [quote_identifier(c.name + SHAPE) for c in columns]
    create(db, packing, named, shapes)
    parts = insertion(db, packing, named, shapes, buffers, blocks)
    packing.packers.fill(
        parts, packing.seed, json.dumps([describe_column(packing, c) for c in columns])
    )
    check_shapes(db, packing, shapes)
    db.rows(sql("pack.index", output=packing.output.quoted))


def check_shapes(db: Database, packing: Packing, shapes: Sequence[str]) -> None:
    """Raises where buffers have different shapes; within a buffer the packer has compared them."""
    for column, shape in zip(packing.columns, shapes):
        found = db.rows(sql("pack.shapes", output=packing.output.quoted, shape=shape))
        if len(found) > 1:
            listed = ", ".join(
                f"{'x'.join(map(str, row['shape']))} ({row['rows']} rows)" for row in found[:10]
            )
            raise InvalidParameter(
                f"column {column.name!r} of table '{packing.source.spelling}' has values of "
                f"{len(found)} shapes; expected one.",
                detail=f"There are {listed}{', …' if len(found) > 10 else ''}.",
                hint="All values of a column must have the same dimensions: leave the others out, "
                "or change them.",
            )


def insertion(
    db: Database,
    packing: Packing,
    named: Sequence[str],
    shapes: Sequence[str],
    buffers: int,
    blocks: int = 1,
) -> dict[str, str]:
    """The parts of the statement that packs all rows; those of a buffer in so many blocks."""
    columns = packing.columns
    # Names that no column of the user can have in the way.
    carried = [f"c{number}" for number in range(len(columns))]
    numbers, joins = encodings(
        db, {n: c for n, c in zip(carried, columns) if c.classes is not None}
    )
    keys, beside = _places(packing.grouped) if packing.grouped else (packing.distribution.keys, {})
    return dict(
        keys=_array(keys),
        rows=str(packing.rows),
        output=packing.output.quoted,
        source=packing.source.quoted,
        names=", ".join(named),
        shape_names=", ".join(shapes),
        segments=str(len(keys)),
        buffers=str(buffers),
        blocks=str(blocks),
        seed="NULL" if packing.seed is None else f"'{packing.seed}'::bigint",
        columns=", ".join(f"t.{n} AS {c}" for n, c in zip(named, carried)),
        carried=", ".join(f"{numbers.get(c, f'n.{c}')} AS {c}" for c in carried),
        joins=joins,
        aggregates=", ".join(
            f"pg_catalog.string_agg({c.sent(f'g.{n}')}, ''::bytea)"
            for c, n in zip(columns, carried)
        ),
        parts=", ".join(f"cerebro.packed_array({i})" for i in range(1, len(columns) + 1)),
        part_shapes=", ".join(
            f"ARRAY(SELECT pg_catalog.json_array_elements_text(a.shapes -> {i})::integer)"
            for i in range(len(columns))
        ),
        **beside,
    )


def _places(grouped: Layout) -> tuple[Sequence[int], dict[str, str]]:
    """The key of the segment of each buffer, by its number; and what tells the buffer of a row, by
    the row's number.
    """
    firsts = accumulate((cut.rows for cut in grouped.cuts[:-1]), initial=1)
    by_number = sorted(grouped.cuts, key=lambda cut: cut.buffer_id)
    numbers = _array(cut.buffer_id for cut in grouped.cuts)
    buffer = sql("pack.buffer_of_group", numbers=numbers, firsts=_array(islice(firsts, 1, None)))
    return [grouped.keys[cut.segment] for cut in by_number], {"buffer": buffer}


def _array(values: Iterable[int]) -> str:
    return "{" + ", ".join(map(str, values)) + "}"


def encodings(db: Database, encoded: Mapping[str, Column]) -> tuple[dict[str, str], str]:
    """Expressions for the numbers of classes, by the name under which a column is carried; and the
    joins they take.
    """
    numbers, joins = {}, ""
    for name, column in encoded.items():
        key, null = f"k{name[1:]}", "0" if column.classes and column.classes[0] is None else "NULL"
        numbers[name] = f"CASE WHEN n.{name} IS NULL THEN {null} ELSE {key}.number END"
        joins += (
            f" LEFT JOIN {class_numbers(db, column)} AS {key} (form, number) ON {key}.form = "
            f"n.{name}::text"
        )
    return numbers, joins


def describe_column(packing: Packing, column: Column) -> dict[str, object]:
    """A column as the packer wants it described; "array" is what it looks for bad rows by, "source"
    where.
    """
    described: dict[str, object] = {
        "kind": column.kind,
        "column": column.name,
        "source": packing.source.spelling,
    }
    if column.classes is not None:
        return {**described, "kind": "onehot", "classes": len(column.classes)}
    if column.kind != IMAGE:
        name = quote_identifier(column.name)
        described["array"] = f"ARRAY[{name}]" if column.scalar else name
    if column in packing.independent:
        described["divide"] = packing.normalizing_const
        if column.name in packing.recipes:
            described["recipe"] = packing.recipes[column.name]
    return described


def summarize(db: Database, packing: Packing, buffer_size: int) -> None:
    """Create and fill the summary table."""
    summary = quote_qualified((packing.output.schema, packing.output.name + "_summary"))
    dependent = packing.dependent
    class_columns = ", ".join(
        f"{quote_identifier(c.name + CLASSES)} {c.type if c.classes else 'text'}[]"
        for c in dependent
    )
    segments = packing.distribution.describe()
    rules = "text" if segments == (ALL, ALL) else "integer[]"
    weight = [c.name for c in packing.weight]
    made = sql(
        "pack.summary",
        summary=summary,
        literal=literal(summary),
        class_columns=class_columns,
        rules=rules,
        **db.platform.clauses,
    )
    db.rows("; ".join([made, *(sql("pack.summary_weight", summary=summary) for _ in weight)]))
    values = ", ".join(
        f"{array_literal(c.classes)}::text[]::{c.type}[]" if c.classes else "NULL"
        for c in dependent
    )
    # NULL for floats, empty for targets that came encoded: the only place that tells the two apart.
    classes = (
        None
        if any(c.kind == "float32" for c in dependent)
        else [len(c.classes) for c in dependent if c.classes]
    )
    db.rows(
        sql("pack.summarize", summary=summary, class_values=values, rules=rules),
        packing.source.spelling,
        packing.output.spelling,
        [c.name for c in dependent],
        [c.name for c in packing.independent],
        [c.type for c in dependent],
        buffer_size,
        packing.normalizing_const,
        classes,
        *segments,
    )
    for name in weight:
        db.rows(sql("pack.summarize_weight", summary=summary), name)
