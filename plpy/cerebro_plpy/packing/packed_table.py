"""Reads what a preprocessor made: a packed table and its summary, with the checks that training
relies on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from math import prod
from typing import Any

from cerebro_plpy.configs.run_spec import DataSpec
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.platform_protocol import KEY
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.database.sessions.spi import Row
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.errors import DatatypeMismatch, InvalidParameter, UndefinedColumn, WrongObjectType
from cerebro_plpy.records import dataclass, fields, replace
from cerebro_plpy.trainer_client.process import host_resources

ELEMENT_BYTES = 4
"""Of a packed value: a float32, or an integer of at most so many."""


@dataclass(frozen=True)
class PackedTable:
    """A table made by a preprocessor, with what its summary says.

    `segments` are the segment ids; `key` is the SQL expression of a row's segment. `class_values`
    has, for each target, the class names in the order of the one-hot columns (None for a NULL
    class), or None where the target came encoded or is a float. `weight` is the column that says
    how much rows count in the training loss.
    """

    relation: Relation
    independent: tuple[str, ...]
    dependent: tuple[str, ...]
    dependent_types: tuple[str, ...]
    class_values: tuple[tuple[str | None, ...] | None, ...]
    class_types: tuple[str, ...]
    num_classes: tuple[int, ...] | None
    normalizing_const: float
    buffer_size: int
    input_shapes: tuple[tuple[int, ...], ...]
    target_shapes: tuple[tuple[int, ...], ...]
    float_targets: tuple[bool, ...]
    segments: tuple[int, ...]
    key: str
    rows: int
    weight: str | None = None

    def spec(self) -> DataSpec:
        """What the log and output tables tell of it."""
        names = [each.name for each in fields(DataSpec) if each.name != "table"]
        return DataSpec(
            table=self.relation.spelling, **{name: getattr(self, name) for name in names}
        )

    @property
    def decoded_bytes(self) -> int:
        """What all rows take at most in the memory of a trainer: inputs, targets and weights."""
        elements = sum(prod(shape) for shape in (*self.input_shapes, *self.target_shapes)) + (
            self.weight is not None
        )
        return self.rows * ELEMENT_BYTES * elements

    def targets(self) -> list[dict[str, Any]]:
        """The targets as the trainer wants them described."""
        return [
            {"kind": "float"} if is_float else {"kind": "onehot", "classes": shape[-1]}
            for is_float, shape in zip(self.float_targets, self.target_shapes)
        ]


# How MADlib called the columns of packed tables, and that of classes, before 1.18.
OLD_COLUMNS = {"independent_var", "dependent_var"}
OLD_CLASSES = "class_values"


@dataclass(frozen=True)
class PackedRelation:
    """A packed table and its summary, as their names were resolved; `what` it is for the call,
    messages say.
    """

    table: Relation
    summary: Relation | None
    what: str


def find_packed(catalog: Catalog, name: str | None, what: str = "input") -> PackedRelation:
    """The packed table of that name."""
    return packed_relation(catalog, catalog.resolve_input(name, what), what)


def packed_relation(catalog: Catalog, table: Relation, what: str) -> PackedRelation:
    """A table with its summary."""
    return PackedRelation(table, catalog.find_companion(table, "_summary"), what)


def read_packed(catalog: Catalog, reader: Session, packed: PackedRelation) -> PackedTable:
    """What a packed table and its summary say, checked."""
    relation, what = packed.table, packed.what
    companion, summary = read_summary(catalog, reader, packed)
    columns = catalog.read_columns(relation)
    independent, dependent = (
        names(summary, "independent_varname"),
        names(summary, "dependent_varname"),
    )
    weight = summary.get("sample_weight_varname")
    beside = (str(weight),) if weight else ()
    _check_columns(catalog, relation, columns, independent + dependent + beside, what)
    if not reader.run(sql("read.has_rows", table=relation.quoted))[0][0]:
        raise InvalidParameter(
            f"{catalog.module} error: Input table '{relation.spelling}' is empty!"
        )
    shapes, sizes = _shapes(catalog, reader, relation, independent + dependent + beside)
    segments, key = _segments(catalog, reader, relation, columns)
    count, end = len(independent), len(independent + dependent)
    targets = list(zip(dependent, shapes[count:end]))
    _check_widths(catalog, relation, targets)
    classes = [
        _class_values(catalog, reader, companion, name, shape[-1]) for name, shape in targets
    ]
    return PackedTable(
        relation=relation,
        independent=independent,
        dependent=dependent,
        dependent_types=names(summary, "dependent_vartype"),
        class_values=tuple(values for values, _ in classes),
        class_types=tuple(kind for _, kind in classes),
        num_classes=tuple(summary["num_classes"])
        if isinstance(summary.get("num_classes"), list)
        else None,
        normalizing_const=float(summary.get("normalizing_const") or 1.0),
        buffer_size=int(summary.get("buffer_size") or 0),
        input_shapes=shapes[:count],
        target_shapes=shapes[count:end],
        float_targets=tuple(size == 4 for size in sizes[count:end]),
        segments=segments,
        key=key,
        rows=_total(reader, relation, independent[0]),
        weight=beside[0] if beside else None,
    )


def read_summary(
    catalog: Catalog, reader: Session, packed: PackedRelation
) -> tuple[Relation, dict[str, Any]]:
    """The summary table of a packed table, and its row."""
    row = read_summary_row(reader, packed.summary) if packed.summary else {}
    if (
        packed.summary is None
        or not row.get("dependent_varname")
        or not row.get("independent_varname")
    ):
        name = packed.table.spelling
        raise WrongObjectType(
            f"{catalog.module}: Missing summary of table '{name}'. {advice(packed.what, name)}",
            hint="Pack the table with training_preprocessor_dl() or validation_preprocessor_dl() "
            "first.",
        )
    return packed.summary, row


def advice(what: str, given: str) -> str:
    """What MADlib says of a table that was not packed.

    >>> advice("validation", "t")
    'Please ensure that the input table (t) has been preprocessed.'
    """
    if what == "training":
        return (
            f"Please ensure that table '{given}' has been preprocessed using "
            "training_preprocessor_dl()."
        )
    if what == "test":
        return (
            f"Please ensure that the test table ({given}) has been preprocessed by the image "
            "preprocessor."
        )
    return f"Please ensure that the input table ({given}) has been preprocessed."


def read_summary_row(reader: Session, summary: Relation) -> dict[str, Any]:
    """The only row of a summary table; {} where it has none."""
    rows = reader.run(sql("read.packed_summary", table=summary.quoted))
    return _json(rows[0][0]) if rows else {}


def names(summary: dict[str, Any], field: str) -> tuple[str, ...]:
    """A list of names in a summary; older summaries hold a single name.

    >>> names({"a": "x"}, "a"), names({"a": ["x", "y"]}, "a"), names({}, "a")
    (('x',), ('x', 'y'), ())
    """
    value = summary.get(field) or ()
    return (value,) if isinstance(value, str) else tuple(value)


def _json(value: Any) -> dict[str, Any]:
    return dict(json.loads(value)) if isinstance(value, str) else dict(value)


def _check_columns(
    catalog: Catalog,
    relation: Relation,
    columns: dict[str, Row],
    wanted: tuple[str, ...],
    what: str,
) -> None:
    for name in (*wanted, *(f"{name}_shape" for name in wanted), "buffer_id"):
        if name not in columns and columns.keys() >= OLD_COLUMNS:
            raise WrongObjectType(
                f"Input table '{relation.spelling}' was preprocessed with an older version of the "
                "input preprocessor. Please re-run the current version of input preprocessor on "
                "the dataset.",
                hint="SELECT training_preprocessor_dl(...) packs it again from its source table.",
            )
        if name not in columns:
            raise UndefinedColumn(
                f"{catalog.module}: invalid column name ('{name}') for table ({relation.spelling})."
                f" {advice(what, relation.spelling)}",
                hint="Pack it with training_preprocessor_dl() or validation_preprocessor_dl().",
            )
        if name in wanted and columns[name]["base"] != "bytea":
            raise WrongObjectType(
                f"{catalog.module}: column '{name}' of table '{relation.spelling}' is of type "
                f"{columns[name]['type']}, expected bytea. {advice(what, relation.spelling)}",
                hint="Input table may be the source table; name the packed table instead.",
            )


def _shapes(
    catalog: Catalog, reader: Session, relation: Relation, wanted: tuple[str, ...]
) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """The shape of one row, and the bytes of one element, of each packed column."""
    text = sql(
        "read.packed_rows",
        table=relation.quoted,
        shapes=", ".join(f"t.{quote_identifier(name + '_shape')}[2:]" for name in wanted),
        sizes=", ".join(
            (
                f"pg_catalog.octet_length(t.{quote_identifier(name)}) / "
                f"nullif(t.{quote_identifier(name + '_shape')}[1], 0)"
            )
            for name in wanted
        ),
    )
    found = [(json.loads(shapes), json.loads(sizes)) for shapes, sizes in reader.run(text)]
    if len(found) != 1 or None in found[0][1] or any(None in shape for shape in found[0][0]):
        raise DatatypeMismatch(
            f"{catalog.module}: the buffers of table '{relation.spelling}' have {len(found)} "
            "different shapes; expected one.",
            detail="; ".join(json.dumps(shapes) for shapes, _ in found[:5]),
            hint="Pack the table again with training_preprocessor_dl().",
        )
    shapes = tuple(tuple(shape) for shape in found[0][0])
    return shapes, tuple(size // max(1, prod(shape)) for size, shape in zip(found[0][1], shapes))


def _check_widths(
    catalog: Catalog, relation: Relation, targets: Iterable[tuple[str, tuple[int, ...]]]
) -> None:
    """A row of targets is a row of values, be it of one."""
    for name, shape in targets:
        if not shape:
            raise DatatypeMismatch(
                f"{catalog.module}: the buffers of table '{relation.spelling}' have no width in "
                f"column {name}; expected rows and values.",
                hint="Pack the table again with training_preprocessor_dl().",
            )


def _segments(
    catalog: Catalog, reader: Session, relation: Relation, columns: dict[str, Row]
) -> tuple[tuple[int, ...], str]:
    """Segment ids, and the expression that tells a row's segment: a table of MADlib on PostgreSQL
    has no key.
    """
    reader.platform.check_distributed(reader, catalog.module, relation)
    placed = f"t.{quote_identifier(KEY)}" if KEY in columns else "t.buffer_id"
    if reader.run(sql("read.packed_nowhere", table=relation.quoted, key=placed))[0][0]:
        raise WrongObjectType(
            f"{catalog.module}: table '{relation.spelling}' has rows that belong to no segment: "
            f"{KEY} or buffer_id is NULL, or buffer_id is negative.",
            hint="Pack the table again with training_preprocessor_dl().",
        )
    if KEY in columns:
        found = reader.run(
            sql("read.packed_segments", table=relation.quoted, key=quote_identifier(KEY))
        )
        segments = tuple(row[0] for row in found)
        reader.platform.check_keys(reader, catalog.module, relation, segments)
        return segments, f"t.{quote_identifier(KEY)}"
    total, distinct = reader.run(sql("read.packed_buffers", table=relation.quoted))[0]
    if total != distinct:
        raise WrongObjectType(
            f"{catalog.module}: table '{relation.spelling}' has {total} buffers but {distinct} "
            "buffer ids; expected them unique.",
            hint="Pack the table again with training_preprocessor_dl().",
        )
    count = min(total, host_resources.parallel_trainers())
    return tuple(range(count)), f"(t.buffer_id % {count})"


def along(source: PackedTable, other: PackedTable) -> PackedTable:
    """The other table spread over the segments of the source: by its own key where that names the
    same segments.
    """
    if set(other.segments) <= set(source.segments) and KEY in other.key:
        return replace(other, segments=source.segments)
    ids = ", ".join(str(segment) for segment in source.segments)
    return replace(
        other,
        segments=source.segments,
        key=f"(ARRAY[{ids}])[t.buffer_id % {len(source.segments)} + 1]",
    )


def _class_values(
    catalog: Catalog, reader: Session, summary: Relation, name: str, width: int
) -> tuple[tuple[str | None, ...] | None, str]:
    """The classes of a target of so many columns in order, and the type of the array."""
    columns = catalog.read_columns(summary)
    column = classes_column(columns, name)
    found = columns.get(column)
    if found is None:
        return None, "text[]"
    kind = found["type"] if found["category"] == "A" else "text[]"
    values = reader.run(
        sql("read.class_values", table=summary.quoted, column=quote_identifier(column))
    )[0][0]
    return known_classes(values, width), kind


def classes_column(columns: Iterable[str], name: str) -> str:
    """The column of a summary that holds the classes of a target; that of MADlib before 1.18 has
    one name for all.

    >>> classes_column(["y_class_values"], "y"), classes_column(["class_values"], "y")
    ('y_class_values', 'class_values')
    """
    return OLD_CLASSES if OLD_CLASSES in columns else f"{name}_class_values"


def known_classes(
    values: list[str | None] | None, width: int | None = None
) -> tuple[str | None, ...] | None:
    """Class values of a target of so many columns, without padding; None where nobody knows them.

    MADlib writes that as a lone NULL, too. A single column has it for its class where the target
    was NULL in all rows.

    >>> (known_classes([None, "a", None]), known_classes([None], 3), known_classes([None], 1),
    ...  known_classes(None))
    ((None, 'a'), None, (None,), None)
    """
    lone = values == [None] and width != 1
    return None if values is None or lone else strip_padding(values)


def strip_padding(values: list[str | None]) -> tuple[str | None, ...]:
    """Class values without padding: NULL is a class only in first place.

    >>> strip_padding([None, "a", "b", None, None])
    (None, 'a', 'b')
    """
    kept = list(values)
    while len(kept) > 1 and kept[-1] is None:
        kept.pop()
    return tuple(kept)


def _total(reader: Session, relation: Relation, first: str) -> int:
    return int(
        reader.run(
            sql(
                "read.packed_total", table=relation.quoted, shape=quote_identifier(f"{first}_shape")
            )
        )[0][0]
    )
