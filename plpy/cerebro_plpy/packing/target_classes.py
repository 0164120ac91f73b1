"""The classes of a target: found in a table, or taken over from a training table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cerebro_plpy.database.call_checks import check_flat
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.database.sql.literals import array_literal
from cerebro_plpy.errors import DatatypeMismatch, InvalidParameter
from cerebro_plpy.packing import packed_columns
from cerebro_plpy.packing.packed_columns import MAX_CLASSES, Column
from cerebro_plpy.packing.packed_table import PackedTable, strip_padding
from cerebro_plpy.records import replace

FRACTIONS = ("real", "double precision", "numeric")
MANY = 20
"""So many different numbers are measures, as a rule."""


def find_forms(db: Database, source: Relation, column: Column) -> tuple[str | None, ...]:
    """The texts that the values of a target have."""
    text = sql(
        "pack.forms",
        source=source.quoted,
        column=quote_identifier(column.name),
        most=str(MAX_CLASSES + 1),
    )
    return tuple(db.value(text) or ())


def find_classes(
    db: Database, column: Column, forms: Sequence[str | None], category: str
) -> tuple[str | None, ...]:
    """The classes of a target, of which these are texts, in the order of their one-hot columns."""
    order = 'd.v COLLATE "C"' if category == "S" else "d.v"
    return strip_padding(
        db.value(sql("pack.classes", type=column.type, order=order), list(forms)) or []
    )


def class_numbers(db: Database, column: Column) -> str:
    """Where the texts of a target's values are found with the numbers of their classes: an
    expression for FROM.

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
    return (
        f"ROWS FROM (pg_catalog.unnest({array_literal(known)}::text[]), "
        f"pg_catalog.unnest('{{{placed}}}'::integer[]))"
    )


def with_found_classes(
    catalog: Catalog,
    source: Relation,
    targets: tuple[Column, ...],
    num_classes: list[int | None] | None,
    known: tuple[str, ...] | None = None,
) -> tuple[Column, ...]:
    """The targets with the classes found in the source, padded to num_classes; these are `known` of
    a single one.
    """
    encoded = [c for c in targets if c.kind == "onehot"]
    check_flat(catalog.module, "num_classes", num_classes)
    if num_classes is not None and len(num_classes) != len(encoded):
        raise InvalidParameter(
            f"{catalog.module} error: num_classes has {len(num_classes)} elements; expected "
            f"{len(encoded)}, one for each dependent column that is encoded."
        )
    padded = iter(num_classes or [None] * len(encoded))
    return tuple(
        _classes(catalog, source, c, next(padded), known) if c.kind == "onehot" else c
        for c in targets
    )


def _classes(
    catalog: Catalog,
    source: Relation,
    column: Column,
    wanted: int | None,
    known: tuple[str, ...] | None,
) -> Column:
    found, forms = classes_of(catalog, source, column, known)
    if wanted is not None and wanted < len(found):
        raise InvalidParameter(
            "Invalid num_classes value specified. It must be equal to or greater than distinct "
            f"class values found in table ({len(found)}).",
            detail=f"Received {wanted} for column {column.name!r}.",
        )
    return packed_columns.with_classes(column, found, wanted or len(found), forms)


def surprises(targets: Sequence[Column], chosen: bool) -> Iterator[str]:
    """What the caller should know of targets that became classes, and whether that was the caller's
    choice.
    """
    for column in targets:
        found = len([form for form in column.forms if form is not None])
        if not chosen and column.classes is not None and column.type in FRACTIONS and found > MANY:
            yield (
                f"column {column.name!r} is of type {column.type} and has {found} different "
                "values, each of which becomes a class. For regression pass dependent_type => "
                "'float'."
            )
        if None in column.forms:
            yield (
                f"column {column.name!r} has NULLs, which become a class of their own. Where the "
                f"label is unknown, pack a view with WHERE {quote_identifier(column.name)} IS NOT "
                "NULL."
            )


def classes_of(
    catalog: Catalog, source: Relation, column: Column, known: tuple[str, ...] | None = None
) -> tuple[tuple[str | None, ...], tuple[str | None, ...]]:
    """The classes that a target has in a table, and the texts that stand for them, where these are
    not known.
    """
    category = catalog.read_column(source, column.name)["category"]
    forms = known if known is not None else find_forms(catalog.db, source, column)
    return find_classes(catalog.db, column, forms, category), forms


def as_in_training(
    catalog: Catalog, source: Relation, column: Column, model: PackedTable, index: int
) -> Column:
    """A target encoded as the target at that place of the training table was."""
    classes = model.class_values[index]
    if classes is None:
        return _as_numbers(catalog, source, column, model.float_targets[index])
    if not column.scalar:
        raise DatatypeMismatch(
            f"{catalog.module} error: dependent column '{column.name}' of table "
            f"'{source.spelling}' is of type {column.type}; expected single values, of which "
            f"'{model.relation.spelling}' has the classes."
        )
    named, forms = classes_of(catalog, source, column)
    unknown = [name for name in named if name not in classes]
    if unknown:
        raise InvalidParameter(
            f"the class values in {source.spelling} ({show(named)}) should be a subset of class "
            f"values in {model.relation.spelling} ({show(classes)})",
            detail=f"Not known there: {show(unknown)}.",
            hint="Leave those rows out, or pack the training table again with them.",
        )
    return packed_columns.with_classes(
        replace(column, kind="onehot"), classes, model.target_shapes[index][-1], forms
    )


def _as_numbers(catalog: Catalog, source: Relation, column: Column, floats: bool) -> Column:
    if not floats and column.scalar:
        raise DatatypeMismatch(
            f"{catalog.module} error: dependent column '{column.name}' of table "
            f"'{source.spelling}' is of type {column.type}; expected an array of whole numbers, as "
            "encoded targets are in the training table."
        )
    return packed_columns.dependent_column(
        catalog, source, column.name, "float" if floats else "class"
    )


def show(classes: Sequence[str | None]) -> str:
    """Classes for a message in their order, at most ten.

    >>> show([None, "b", "a"])
    'NULL, b, a'
    """
    names = ["NULL" if c is None else c for c in classes]
    return ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
