"""Pack rows into buffers by one INSERT … SELECT; packers encode whole buffers in numpy.

Rows are shuffled by a seed: all rows are ordered by a hash of their number and the seed. This order
is cut into buffers, and the buffers into segments, evenly. Only numbers of buffers are sorted; the
packer shuffles the rows within a buffer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, islice

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.database.sql.literals import literal
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.packing.buffer_sizes import (
    choose_buffers,
    count_blocks,
    count_useful_segments,
    estimate_row_elements,
    estimate_sent_elements,
)
from cerebro_plpy.packing.grouped_buffers import BufferLayout
from cerebro_plpy.packing.packed_columns import IMAGE, SHAPE, Column
from cerebro_plpy.packing.packing_plan import PackingPlan
from cerebro_plpy.packing.summary_table import create_summary
from cerebro_plpy.packing.target_classes import build_class_lookup, list_first
from cerebro_plpy.records import replace


def pack(db: Database, plan: PackingPlan) -> None:
    """Create the packed table and its summary."""
    row_elements = sum(estimate_row_elements(db, plan, column) for column in plan.columns)
    sent_elements = sum(estimate_sent_elements(db, plan, column) for column in plan.columns)
    if plan.saves_segments:
        segments = count_useful_segments(plan.rows, row_elements)
        plan = replace(plan, distribution=plan.distribution.take_first(segments))
    if plan.group_layout:
        buffers = len(plan.group_layout.buffers)
        buffer_size = plan.group_layout.max_rows
    else:
        buffers, buffer_size = choose_buffers(plan, row_elements)
    _fill(db, plan, buffers, count_blocks(buffer_size, max(row_elements, sent_elements)))
    create_summary(db, plan, buffer_size)


def _fill(db: Database, plan: PackingPlan, buffers: int, blocks: int) -> None:
    """Create the packed table and fill it."""
    names = [column.quoted for column in plan.columns]
    shapes = [quote_identifier(column.name + SHAPE) for column in plan.columns]
    _create_table(db, plan, names, shapes)
    parts = build_insert(db, plan, names, shapes, buffers, blocks)
    arrays = json.dumps([_describe_column(plan, column) for column in plan.columns])
    plan.packers.fill(parts, plan.seed, arrays)
    _check_shapes(db, plan, shapes)
    db.rows(sql("pack.index", output=plan.output.quoted))


def _create_table(
    db: Database, plan: PackingPlan, names: Sequence[str], shapes: Sequence[str]
) -> None:
    """Create the packed table with columns of these quoted names."""
    output = plan.output.quoted
    statements = [
        sql(
            "pack.table",
            output=output,
            literal=literal(output),
            columns=", ".join(f"{name} bytea NOT NULL" for name in names),
            shapes=", ".join(f"{shape} integer[] NOT NULL" for shape in shapes),
            **db.platform.clauses,
        )
    ]
    statements += [sql("pack.external", output=output, column=name) for name in names]
    db.rows("; ".join(statements))


def _check_shapes(db: Database, plan: PackingPlan, shapes: Sequence[str]) -> None:
    """Check that all buffers have the same shapes; within a buffer the packer compares them."""
    for column, name in zip(plan.columns, shapes):
        rows = db.rows(sql("pack.shapes", output=plan.output.quoted, shape=name))
        if len(rows) > 1:
            shape_texts = [
                f"{'x'.join(map(str, row['shape']))} ({count_nouns(row['rows'], 'row')})"
                for row in rows
            ]
            raise InvalidParameter(
                f"column {column.name!r} of table '{plan.source.spelling}' has values of "
                f"{count_nouns(len(rows), 'shape')}; expected one.",
                detail=f"There are {list_first(shape_texts)}.",
                hint="All values of a column must have the same dimensions: leave the others out, "
                "or change them.",
            )


def build_insert(
    db: Database,
    plan: PackingPlan,
    names: Sequence[str],
    shapes: Sequence[str],
    buffers: int,
    blocks: int = 1,
) -> dict[str, str]:
    """Return the parts of the statement that packs all rows.

    Args:
        names: quoted names of the packed columns.
        shapes: quoted names of the columns with their shapes.
        blocks: number of blocks in which the rows of a buffer are sent.
    """
    columns = plan.columns
    aliases = [f"c{number}" for number in range(len(columns))]  # cannot clash with users' columns
    aliased = list(zip(aliases, columns))
    seed = "NULL"
    if plan.seed is not None:
        seed = f"'{plan.seed}'::bigint"
    keys: Sequence[int] = plan.distribution.keys
    if plan.group_layout:
        keys = _find_buffer_keys(plan.group_layout)
    parts = dict(
        keys=_array(keys),
        rows=str(plan.rows),
        output=plan.output.quoted,
        source=plan.source.quoted,
        names=", ".join(names),
        shape_names=", ".join(shapes),
        segments=str(len(keys)),
        buffers=str(buffers),
        blocks=str(blocks),
        seed=seed,
        columns=", ".join(f"t.{name} AS {alias}" for name, alias in zip(names, aliases)),
        carried=", ".join(f"{_value_sql(alias, column)} AS {alias}" for alias, column in aliased),
        joins="".join(_class_join_sql(db, alias, column) for alias, column in aliased),
        aggregates=", ".join(
            f"pg_catalog.string_agg({column.bytes_sql(f'g.{alias}')}, ''::bytea)"
            for alias, column in aliased
        ),
        parts=", ".join(
            f"cerebro_internal.packed_array({number + 1})" for number in range(len(columns))
        ),
        part_shapes=", ".join(
            f"ARRAY(SELECT pg_catalog.json_array_elements_text(a.shapes -> {number})::integer)"
            for number in range(len(columns))
        ),
    )
    if plan.group_layout:
        parts["buffer"] = _group_buffer_sql(plan.group_layout)
    return parts


def _find_buffer_keys(layout: BufferLayout) -> list[int]:
    """Return the key of the segment of each buffer, by buffer id."""
    by_id = sorted(layout.buffers, key=lambda buffer: buffer.buffer_id)
    return [layout.keys[buffer.segment] for buffer in by_id]


def _group_buffer_sql(layout: BufferLayout) -> str:
    """Return the expression of a row's buffer id, by the number of the row."""
    first_rows = accumulate((buffer.rows for buffer in layout.buffers[:-1]), initial=1)
    return sql(
        "pack.buffer_of_group",
        numbers=_array(buffer.buffer_id for buffer in layout.buffers),
        firsts=_array(islice(first_rows, 1, None)),
    )


def _array(values: Iterable[int]) -> str:
    return "{" + ", ".join(map(str, values)) + "}"


def _value_sql(alias: str, column: Column) -> str:
    """Return the expression of a value, or of the number of its class."""
    if column.classes is None:
        return f"n.{alias}"
    null = "NULL"
    if column.classes[:1] == (None,):
        null = "0"
    return f"CASE WHEN n.{alias} IS NULL THEN {null} ELSE {_lookup_alias(alias)}.number END"


def _class_join_sql(db: Database, alias: str, column: Column) -> str:
    """Return the join with the numbers of a column's classes; '' without classes."""
    if column.classes is None:
        return ""
    lookup = _lookup_alias(alias)
    return (
        f" LEFT JOIN {build_class_lookup(db, column)} AS {lookup} (form, number)"
        f" ON {lookup}.form = n.{alias}::text"
    )


def _lookup_alias(alias: str) -> str:
    return f"k{alias[1:]}"


def _describe_column(plan: PackingPlan, column: Column) -> Mapping[str, object]:
    """Return a column in the form of a request to the packer.

    With `array` and `source`, the packer finds rows with bad values for its error message.
    """
    description: dict[str, object] = {
        "kind": column.kind,
        "column": column.name,
        "source": plan.source.spelling,
    }
    if column.classes is not None:
        return {**description, "kind": "onehot", "classes": len(column.classes)}
    if column.kind != IMAGE:
        description["array"] = column.wrap(column.quoted)
    if column in plan.independent:
        description["divide"] = plan.normalizing_const
        if column.name in plan.recipes:
            description["recipe"] = plan.recipes[column.name]
    return description
