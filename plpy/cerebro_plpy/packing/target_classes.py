"""The classes of a target: read from its table, or copied from a training table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat

from cerebro_plpy.database.call_checks import check_flat
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sql.literals import array_literal, show_value
from cerebro_plpy.errors import DatatypeMismatch, InvalidParameter
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.packing import packed_columns
from cerebro_plpy.packing.packed_columns import MAX_CLASSES, Column
from cerebro_plpy.packing.packed_summary import ClassCounts, ClassValues, strip_padding
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.records import replace

FRACTIONS = ("real", "double precision", "numeric")
MANY_VALUES = 20
"""A column with more different fractions probably holds measurements, not classes."""


def _read_value_texts(db: Database, source: Relation, column: Column) -> ClassValues:
    """Return the distinct texts of a target's values."""
    query = sql(
        "pack.forms",
        source=source.quoted,
        column=column.quoted,
        most=str(MAX_CLASSES + 1),
    )
    return tuple(db.value(query) or ())


def build_class_lookup(db: Database, column: Column) -> str:
    """Return the FROM expression of a table with texts of values and numbers of their classes.

    The server looks texts up in a hash table, which takes as long for many classes as for few.
    """
    classes = column.classes or ()
    numbers = {name: number for number, name in enumerate(strip_padding(list(classes)))}
    texts = [text for text in column.value_texts if text is not None]
    other_texts = [text for text in texts if text not in numbers]
    if other_texts:
        query = sql("pack.class_numbers", type=column.type)
        numbers.update(zip(other_texts, db.value(query, list(classes), other_texts)))
    class_numbers = ", ".join(str(numbers[text]) for text in texts)
    return (
        f"ROWS FROM (pg_catalog.unnest({array_literal(texts)}::text[]), "
        f"pg_catalog.unnest('{{{class_numbers}}}'::integer[]))"
    )


def encode_targets(
    catalog: Catalog,
    source: Relation,
    targets: tuple[Column, ...],
    num_classes: ClassCounts,
    known_classes: ClassValues | None = None,
) -> tuple[Column, ...]:
    """Return the targets with the classes of the source.

    Args:
        num_classes: numbers of classes to which those of each encoded target are padded.
        known_classes: classes of a single target, which then need no scan.
    """
    encoded = [column for column in targets if column.kind == "onehot"]
    check_flat(catalog.module, "num_classes", num_classes)
    if num_classes is not None and len(num_classes) != len(encoded):
        raise InvalidParameter(
            f"{catalog.module} error: num_classes has {count_nouns(len(num_classes), 'element')}; "
            f"expected {len(encoded)}, one for each dependent column that is encoded."
        )
    encoded_by_name = {
        column.name: _encode_target(catalog, source, column, width, known_classes)
        for column, width in zip(encoded, num_classes or repeat(None))
    }
    return tuple(encoded_by_name.get(column.name, column) for column in targets)


def _encode_target(
    catalog: Catalog,
    source: Relation,
    column: Column,
    width: int | None,
    known_classes: ClassValues | None,
) -> Column:
    classes, value_texts = _read_classes(catalog, source, column, known_classes)
    if width is not None and width < len(classes):
        raise InvalidParameter(
            "Invalid num_classes value specified. It must be equal to or greater than distinct "
            f"class values found in table ({len(classes)}).",
            detail=f"Received {width} for column {column.name!r}.",
        )
    return packed_columns.add_classes(column, classes, width or len(classes), value_texts)


def list_class_notices(targets: Sequence[Column], is_type_chosen: bool) -> Iterator[str]:
    """Yield notices about targets that were unexpectedly encoded as classes.

    Args:
        is_type_chosen: the caller passed the type of the targets.
    """
    for column in targets:
        values = len([text for text in column.value_texts if text is not None])
        is_encoded_fraction = column.classes is not None and column.type in FRACTIONS
        if is_encoded_fraction and values > MANY_VALUES and not is_type_chosen:
            yield (
                f"column {column.name!r} is of type {column.type} and has "
                f"{count_nouns(values, 'different value')}, each of which becomes a class. "
                "For regression pass dependent_type => 'float'."
            )
        if None in column.value_texts:
            yield (
                f"column {column.name!r} has NULLs, which become a class of their own. Where the "
                f"label is unknown, pack a view with WHERE {column.quoted} IS NOT "
                "NULL."
            )


def _read_classes(
    catalog: Catalog, source: Relation, column: Column, known_texts: ClassValues | None = None
) -> tuple[ClassValues, ClassValues]:
    """Return the classes of a target in the order of their one-hot columns, and their texts."""
    category = catalog.read_column(source, column.name)["category"]
    texts = known_texts
    if texts is None:
        texts = _read_value_texts(catalog.db, source, column)
    order = "d.v"
    if category == "S":
        order += ' COLLATE "C"'
    classes = catalog.db.value(sql("pack.classes", type=column.type, order=order), list(texts))
    return strip_padding(classes or []), texts


def encode_as_in_training(
    catalog: Catalog, source: Relation, column: Column, training: PackedTable, index: int
) -> Column:
    """Return a target encoded like the target at that index of the training table."""
    classes = training.class_values[index]
    if classes is None:
        return _pack_numbers(catalog, source, column, training.float_targets[index])
    if not column.scalar:
        raise DatatypeMismatch(
            f"{catalog.module} error: dependent column '{column.name}' of table "
            f"'{source.spelling}' is of type {column.type}; expected single values, of which "
            f"'{training.relation.spelling}' has the classes."
        )
    own_classes, value_texts = _read_classes(catalog, source, column)
    unknown = [name for name in own_classes if name not in classes]
    if unknown:
        raise InvalidParameter(
            f"the class values in {source.spelling} ({format_classes(own_classes)}) should be a "
            f"subset of class values in {training.relation.spelling} ({format_classes(classes)})",
            detail=f"Not known there: {format_classes(unknown)}.",
            hint="Leave those rows out, or pack the training table again with them.",
        )
    width = training.target_shapes[index][-1]
    return packed_columns.add_classes(replace(column, kind="onehot"), classes, width, value_texts)


def _pack_numbers(catalog: Catalog, source: Relation, column: Column, is_float: bool) -> Column:
    if not is_float and column.scalar:
        raise DatatypeMismatch(
            f"{catalog.module} error: dependent column '{column.name}' of table "
            f"'{source.spelling}' is of type {column.type}; expected an array of whole numbers, as "
            "encoded targets are in the training table."
        )
    dependent_type = "class"
    if is_float:
        dependent_type = "float"
    return packed_columns.read_target_column(catalog, source, column.name, dependent_type)


def format_classes(classes: Sequence[str | None]) -> str:
    """Return at most ten classes in their order, for a message.

    >>> format_classes([None, "b", "a"])
    'NULL, b, a'
    """
    return list_first([*map(show_value, classes)])


def list_first(texts: Sequence[str]) -> str:
    """Return at most ten texts, separated by commas, for a message."""
    first_texts = [*texts[:10]]
    if len(texts) > 10:
        first_texts.append("…")
    return ", ".join(first_texts)
