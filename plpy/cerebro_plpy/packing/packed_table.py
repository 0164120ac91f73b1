"""A packed table that a preprocessor made, read with the checks that training relies on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import NamedTuple

from cerebro_plpy.configs.run_spec import DataSpec
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.platform_protocol import KEY, read_value
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.database.sessions.spi import Row
from cerebro_plpy.database.sql.identifiers import Names, quote_identifier
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.errors import DatatypeMismatch, InvalidParameter, UndefinedColumn, WrongObjectType
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.packing.packed_summary import (
    ClassValues,
    find_classes_column,
    parse_class_values,
    read_names,
    read_summary_row,
)
from cerebro_plpy.records import dataclass, fields, replace
from cerebro_plpy.trainer_client.process import host_resources
from cerebro_plpy.trainer_client.request_schema import describe_target

Shape = tuple[int, ...]
ELEMENT_BYTES = 4
"""Size of a packed value in memory: a float32, or an integer of at most 4 bytes."""
FLOAT_BYTES = 4
"""Stored size of an element of a float target; elements of encoded targets are smaller."""
OLD_COLUMNS = {"independent_var", "dependent_var"}
"""Columns of packed tables of MADlib before 1.18."""


@dataclass(frozen=True)
class PackedTable:
    """A table made by a preprocessor, with the contents of its summary."""

    relation: Relation
    independent: Names
    dependent: Names
    dependent_types: Names
    class_values: tuple[ClassValues | None, ...]  # per target; None if encoded before, or float
    class_types: Names
    num_classes: tuple[int, ...] | None
    normalizing_const: float
    buffer_size: int
    input_shapes: tuple[Shape, ...]
    target_shapes: tuple[Shape, ...]
    float_targets: tuple[bool, ...]
    segments: tuple[int, ...]  # segment ids
    key: str  # SQL expression of a row's segment
    rows: int
    weight: str | None = None  # column with the weights of rows in the training loss

    def spec(self) -> DataSpec:
        """Return the fields that the log and the output tables contain."""
        names = [field.name for field in fields(DataSpec) if field.name != "table"]
        values = {name: getattr(self, name) for name in names}
        return DataSpec(table=self.relation.spelling, **values)

    @property
    def copied_columns(self) -> Names:
        """Columns that are not inputs: the targets, then the weights, if any."""
        return (*self.dependent, *filter(None, (self.weight,)))

    @property
    def decoded_bytes(self) -> int:
        """Most bytes that all rows take in a trainer: inputs, targets and weights."""
        elements = sum(prod(shape) for shape in (*self.input_shapes, *self.target_shapes))
        elements += self.weight is not None
        return self.rows * ELEMENT_BYTES * elements

    def targets(self) -> list[JsonObject]:
        """Return the targets in the form of a request to the trainer."""
        return [
            describe_target(shape[-1], is_float)
            for is_float, shape in zip(self.float_targets, self.target_shapes)
        ]


@dataclass(frozen=True)
class PackedRelation:
    """The resolved names of a packed table and its summary."""

    table: Relation
    summary: Relation | None
    role: str  # of the table in the call, for messages: "training", "test", "input" …


class ColumnFormat(NamedTuple):
    """The format of a packed column."""

    shape: Shape  # of one row
    element_bytes: int


def find_packed(catalog: Catalog, name: str | None, role: str = "input") -> PackedRelation:
    """Return the packed table of that name, with its summary."""
    return resolve_packed(catalog, catalog.resolve_input(name, role), role)


def resolve_packed(catalog: Catalog, table: Relation, role: str) -> PackedRelation:
    """Return a table with its summary."""
    return PackedRelation(table, catalog.find_companion(table, "_summary"), role)


def read_packed(catalog: Catalog, reader: Session, packed: PackedRelation) -> PackedTable:
    """Read and check a packed table and its summary."""
    relation = packed.table
    companion, summary = read_summary(catalog, reader, packed)
    independent = read_names(summary, "independent_varname")
    dependent = read_names(summary, "dependent_varname")
    weights = read_names(summary, "sample_weight_varname")
    packed_columns = independent + dependent + weights
    columns = catalog.read_columns(relation)
    _check_columns(catalog, packed, columns, packed_columns)
    if not read_value(reader, sql("read.has_rows", table=relation.quoted)):
        raise InvalidParameter(
            f"{catalog.module} error: Input table '{relation.spelling}' is empty!"
        )
    formats = _read_formats(catalog, reader, relation, packed_columns)
    segments, key = _read_segments(catalog, reader, relation, columns)
    inputs = formats[: len(independent)]
    targets = formats[len(independent) : len(independent + dependent)]
    _check_widths(catalog, relation, zip(dependent, targets))
    classes = [
        _read_class_values(catalog, reader, companion, name, target.shape[-1])
        for name, target in zip(dependent, targets)
    ]
    num_classes = None
    if isinstance(summary.get("num_classes"), list):
        num_classes = tuple(summary["num_classes"])
    return PackedTable(
        relation=relation,
        independent=independent,
        dependent=dependent,
        dependent_types=read_names(summary, "dependent_vartype"),
        class_values=tuple(values for values, _ in classes),
        class_types=tuple(array_type for _, array_type in classes),
        num_classes=num_classes,
        normalizing_const=float(summary.get("normalizing_const") or 1.0),
        buffer_size=int(summary.get("buffer_size") or 0),
        input_shapes=tuple(column.shape for column in inputs),
        target_shapes=tuple(column.shape for column in targets),
        float_targets=tuple(column.element_bytes == FLOAT_BYTES for column in targets),
        segments=segments,
        key=key,
        rows=_count_rows(reader, relation, independent[0]),
        weight=next(iter(weights), None),
    )


def read_summary(catalog: Catalog, reader: Session, packed: PackedRelation) -> tuple[Relation, Row]:
    """Return the summary of a packed table, and the row of that summary."""
    if packed.summary is not None:
        row = read_summary_row(reader, packed.summary)
        if row.get("dependent_varname") and row.get("independent_varname"):
            return packed.summary, row
    name = packed.table.spelling
    raise WrongObjectType(
        f"{catalog.module}: Missing summary of table '{name}'. {advise_packing(packed.role, name)}",
        hint="Pack the table with training_preprocessor_dl() or validation_preprocessor_dl() "
        "first.",
    )


def advise_packing(role: str, table: str) -> str:
    """Return MADlib's message about a table that was not packed.

    >>> advise_packing("validation", "t")
    'Please ensure that the input table (t) has been preprocessed.'
    """
    if role == "training":
        return (
            f"Please ensure that table '{table}' has been preprocessed using "
            "training_preprocessor_dl()."
        )
    if role == "test":
        return (
            f"Please ensure that the test table ({table}) has been preprocessed by the image "
            "preprocessor."
        )
    return f"Please ensure that the input table ({table}) has been preprocessed."


def align_segments(source: PackedTable, other: PackedTable) -> PackedTable:
    """Return the other table spread over the segments of the source.

    The other table's own key is used if it names the same segments.
    """
    if set(other.segments) <= set(source.segments) and KEY in other.key:
        return replace(other, segments=source.segments)
    ids = ", ".join(str(segment) for segment in source.segments)
    key = f"(ARRAY[{ids}])[t.buffer_id % {len(source.segments)} + 1]"
    return replace(other, segments=source.segments, key=key)


def _check_columns(
    catalog: Catalog,
    packed: PackedRelation,
    columns: Mapping[str, Row],
    packed_columns: Names,
) -> None:
    """Check that the table has the packed columns, their shapes and buffer ids."""
    table = packed.table.spelling
    for name in (*packed_columns, *(f"{name}_shape" for name in packed_columns), "buffer_id"):
        if name not in columns and columns.keys() >= OLD_COLUMNS:
            raise WrongObjectType(
                f"Input table '{table}' was preprocessed with an older version of the "
                "input preprocessor. Please re-run the current version of input preprocessor on "
                "the dataset.",
                hint="Pack it again from its source table with training_preprocessor_dl().",
            )
        if name not in columns:
            raise UndefinedColumn(
                f"{catalog.module}: invalid column name ('{name}') for table ({table})."
                f" {advise_packing(packed.role, table)}",
                hint="Pack it with training_preprocessor_dl() or validation_preprocessor_dl().",
            )
        if name in packed_columns and columns[name]["base"] != "bytea":
            raise WrongObjectType(
                f"{catalog.module}: column '{name}' of table '{table}' is of type "
                f"{columns[name]['type']}, expected bytea. {advise_packing(packed.role, table)}",
                hint="Input table may be the source table; name the packed table instead.",
            )


def _read_formats(
    catalog: Catalog, reader: Session, relation: Relation, columns: Sequence[str]
) -> tuple[ColumnFormat, ...]:
    """Return the format of each packed column, which must be the same in all buffers."""
    quoted = [(quote_identifier(name), quote_identifier(name + "_shape")) for name in columns]
    query = sql(
        "read.packed_rows",
        table=relation.quoted,
        shapes=", ".join(f"t.{shape}[2:]" for _, shape in quoted),
        sizes=", ".join(
            f"pg_catalog.octet_length(t.{name}) / nullif(t.{shape}[1], 0)" for name, shape in quoted
        ),
    )
    formats = [(json.loads(shapes), json.loads(sizes)) for shapes, sizes in reader.run(query)]
    if len(formats) != 1 or None in formats[0][1] or any(None in s for s in formats[0][0]):
        raise DatatypeMismatch(
            f"{catalog.module}: the buffers of table '{relation.spelling}' have "
            f"{count_nouns(len(formats), 'different shape')}; expected one.",
            detail="; ".join(json.dumps(shapes) for shapes, _ in formats[:5]),
            hint="Pack the table again with training_preprocessor_dl().",
        )
    return tuple(
        ColumnFormat(tuple(shape), row_bytes // max(1, prod(shape)))
        for shape, row_bytes in zip(*formats[0])
    )


def _check_widths(
    catalog: Catalog, relation: Relation, targets: Iterable[tuple[str, ColumnFormat]]
) -> None:
    """Check that a row of each target is an array, if only of one value."""
    for name, target in targets:
        if not target.shape:
            raise DatatypeMismatch(
                f"{catalog.module}: the buffers of table '{relation.spelling}' have no width in "
                f"column {name}; expected rows and values.",
                hint="Pack the table again with training_preprocessor_dl().",
            )


def _read_segments(
    catalog: Catalog, reader: Session, relation: Relation, columns: Mapping[str, Row]
) -> tuple[tuple[int, ...], str]:
    """Return the segment ids, and the SQL expression of a row's segment.

    A table that MADlib packed on PostgreSQL has no key; its buffers are spread by their ids.
    """
    reader.platform.check_distributed(reader, catalog.module, relation)
    key = "t.buffer_id"
    has_key = KEY in columns
    if has_key:
        key = f"t.{quote_identifier(KEY)}"
    if read_value(reader, sql("read.packed_nowhere", table=relation.quoted, key=key)):
        raise WrongObjectType(
            f"{catalog.module}: table '{relation.spelling}' has rows that belong to no segment: "
            f"{KEY} or buffer_id is NULL, or buffer_id is negative.",
            hint="Pack the table again with training_preprocessor_dl().",
        )
    if has_key:
        query = sql("read.packed_segments", table=relation.quoted, key=quote_identifier(KEY))
        segments = tuple(row[0] for row in reader.run(query))
        reader.platform.check_keys(reader, catalog.module, relation, segments)
        return segments, key
    total, distinct = reader.run(sql("read.packed_buffers", table=relation.quoted))[0]
    if total != distinct:
        raise WrongObjectType(
            f"{catalog.module}: table '{relation.spelling}' has {count_nouns(total, 'buffer')} but "
            f"{distinct} buffer ids; expected them unique.",
            hint="Pack the table again with training_preprocessor_dl().",
        )
    count = min(total, host_resources.parallel_trainers())
    return tuple(range(count)), f"(t.buffer_id % {count})"


def _read_class_values(
    catalog: Catalog, reader: Session, summary: Relation, target: str, width: int
) -> tuple[ClassValues | None, str]:
    """Return the classes of a target with `width` one-hot columns, and the type of their array."""
    columns = catalog.read_columns(summary)
    name = find_classes_column(columns, target)
    array_type = "text[]"
    if name not in columns:
        return None, array_type
    if columns[name]["category"] == "A":
        array_type = columns[name]["type"]
    query = sql("read.class_values", table=summary.quoted, column=quote_identifier(name))
    return parse_class_values(read_value(reader, query), width), array_type


def _count_rows(reader: Session, relation: Relation, column: str) -> int:
    shape = quote_identifier(f"{column}_shape")
    return int(read_value(reader, sql("read.packed_total", table=relation.quoted, shape=shape)))
