"""The two preprocessors: check the arguments, find the classes, pack, and describe the result."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from cerebro_plpy import columns, packing, resources, settings, visit
from cerebro_plpy.catalog import Catalog
from cerebro_plpy.checks import check_flat, check_positive
from cerebro_plpy.columns import Column
from cerebro_plpy.db import Database
from cerebro_plpy.errors import DatatypeMismatch, InvalidParameter, NullNotAllowed, UndefinedTable
from cerebro_plpy.local import LocalSession
from cerebro_plpy.names import split_columns
from cerebro_plpy.packed import read_packed
from cerebro_plpy.packing import Packing
from cerebro_plpy.records import PackedTable, Relation

DISTRIBUTIONS = ("all_segments", "gpu_segments")


@dataclass(frozen=True)
class PackArguments:
    """The arguments that both preprocessors have, as they came."""

    source_table: str | None
    output_table: str | None
    dependent_varname: str | None
    independent_varname: str | None
    buffer_size: int | None
    distribution_rules: str | None


@dataclass(frozen=True)
class TrainingOptions:
    """The further arguments of training_preprocessor_dl, as they came."""

    normalizing_const: float | None
    num_classes: list[int | None] | None
    n_segments: int | None
    seed: int | None
    dependent_type: str | None


def pack_training(db: Database, session: dict[str, Any], given: PackArguments, options: TrainingOptions) -> None:
    """Pack a table for training."""
    catalog = Catalog(db, "training_preprocessor_dl")
    check_arguments(catalog, given)
    constant = check_options(catalog, options)
    source, output, dependent, independent = tables_and_columns(catalog, given, options.dependent_type)
    with packer(db, session):
        rows = packing.count_rows(db, catalog, source, (*independent, *dependent))
        plan = Packing(
            source=source,
            output=output,
            dependent=with_found_classes(catalog, source, dependent, options.num_classes),
            independent=independent,
            rows=rows,
            buffer_size=given.buffer_size,
            normalizing_const=constant,
            segments=min(options.n_segments or resources.parallel_trainers(), rows),
            seed=secrets.randbits(31) if options.seed is None else options.seed,
        )
        packing.pack(db, plan)


def check_options(catalog: Catalog, options: TrainingOptions) -> float:
    """The normalizing constant; what else needs no table is checked too."""
    constant = 1.0 if options.normalizing_const is None else options.normalizing_const
    if not 0 < constant < float("inf"):
        raise InvalidParameter(
            f"{catalog.module}: The normalizing constant has to be a positive integer or NULL.",
            detail=f"Received {constant}.",
        )
    check_positive(catalog.module, "n_segments", options.n_segments)
    if options.dependent_type not in (None, "class", "float"):
        raise InvalidParameter(
            f"{catalog.module} error: dependent_type is {options.dependent_type!r}; expected 'class' or 'float'."
        )
    return constant


def pack_validation(db: Database, session: dict[str, Any], given: PackArguments, training: str | None) -> None:
    """Pack a table as its training table was packed: same classes, constant and segments; not shuffled."""
    catalog = Catalog(db, "validation_preprocessor_dl")
    check_arguments(catalog, given)
    model = read_training(catalog, training)
    source, output, dependent, independent = tables_and_columns(catalog, given, None)
    if len(dependent) != len(model.dependent) or len(independent) != len(model.independent):
        raise InvalidParameter(
            f"{catalog.module} error: received {len(dependent)} dependent and {len(independent)} independent columns;"
            f" expected {len(model.dependent)} and {len(model.independent)} as in table '{training}'."
        )
    with packer(db, session):
        dependent = tuple(as_in_training(catalog, source, c, model, i) for i, c in enumerate(dependent))
        plan = Packing(
            source=source,
            output=output,
            dependent=dependent,
            independent=independent,
            rows=packing.count_rows(db, catalog, source, (*independent, *dependent)),
            buffer_size=given.buffer_size,
            normalizing_const=model.normalizing_const,
            segments=len(model.segments),
            seed=None,
        )
        packing.pack(db, plan)


def read_training(catalog: Catalog, training: str | None) -> PackedTable:
    """The packed training table that a validation table follows."""
    hint = "Name the packed training table."
    if training is None or not training.strip():
        raise NullNotAllowed(f"{catalog.module} error: NULL/empty input table name!", hint=hint)
    if catalog.find(training) is None:
        raise UndefinedTable(
            f"{catalog.module} error: Input table '{training}' does not exist. Please ensure that table"
            f" '{training}' has been preprocessed using training_preprocessor_dl().",
            hint=hint,
        )
    return read_packed(catalog, LocalSession(catalog.db), training, "training")


def check_arguments(catalog: Catalog, given: PackArguments) -> None:
    """What needs no table."""
    if given.buffer_size is not None and given.buffer_size < 1:
        raise InvalidParameter(
            f"{catalog.module}: The buffer size has to be a positive integer or NULL.",
            detail=f"Received {given.buffer_size}.",
        )
    for name in ("dependent_varname", "independent_varname"):
        if not (getattr(given, name) or "").strip():
            raise NullNotAllowed(f"{catalog.module} error: {name} is NULL or empty; expected the name of a column.")
    rules = given.distribution_rules
    if rules is not None and rules not in DISTRIBUTIONS:
        catalog.relation(rules, "distribution rules")


def tables_and_columns(
    catalog: Catalog, given: PackArguments, dependent_type: str | None
) -> tuple[Relation, Relation, tuple[Column, ...], tuple[Column, ...]]:
    """Source, output, targets and inputs."""
    source = catalog.relation(given.source_table)
    output = catalog.output(given.output_table, ("_summary",))
    targets, inputs = split_columns(given.dependent_varname or ""), split_columns(given.independent_varname or "")
    if len(set(targets + inputs)) != len(targets + inputs):
        raise InvalidParameter(
            f"{catalog.module} error: received columns {', '.join(targets + inputs)}; expected each to be named once."
        )
    dependent = tuple(columns.dependent_column(catalog, source, name, dependent_type) for name in targets)
    independent = tuple(columns.independent_column(catalog, source, name) for name in inputs)
    columns.check_names(catalog.module, targets, inputs)
    return source, output, dependent, independent


def with_found_classes(
    catalog: Catalog, source: Relation, columns: tuple[Column, ...], num_classes: list[int | None] | None
) -> tuple[Column, ...]:
    """The targets with the classes found in the source, padded to num_classes."""
    encoded = [c for c in columns if c.kind == "onehot"]
    check_flat(catalog.module, "num_classes", num_classes)
    if num_classes is not None and len(num_classes) != len(encoded):
        raise InvalidParameter(
            f"{catalog.module} error: num_classes has {len(num_classes)} elements; expected {len(encoded)}, one for"
            " each dependent column that is encoded."
        )
    padded = iter(num_classes or [None] * len(encoded))
    return tuple(_classes(catalog, source, c, next(padded)) if c.kind == "onehot" else c for c in columns)


def _classes(catalog: Catalog, source: Relation, column: Column, wanted: int | None) -> Column:
    found, forms = classes_of(catalog, source, column)
    if wanted is not None and wanted < len(found):
        raise InvalidParameter(
            "Invalid num_classes value specified. It must be equal to or greater than distinct class values found in"
            f" table ({len(found)}).",
            detail=f"Received {wanted} for column {column.name!r}.",
        )
    return columns.with_classes(column, found, wanted or len(found), forms)


def classes_of(
    catalog: Catalog, source: Relation, column: Column
) -> tuple[tuple[str | None, ...], tuple[str | None, ...]]:
    """The classes that a target has in a table, and the texts that stand for them."""
    category = catalog.column(source, column.name)["category"]
    forms = packing.find_forms(catalog.db, source, column)
    return packing.find_classes(catalog.db, column, forms, category), forms


def as_in_training(catalog: Catalog, source: Relation, column: Column, model: PackedTable, index: int) -> Column:
    """A target encoded as the target at that place of the training table was."""
    classes = model.class_values[index]
    if classes is None:
        return _as_numbers(catalog, source, column, model.float_targets[index])
    if not column.scalar:
        raise DatatypeMismatch(
            f"{catalog.module} error: dependent column '{column.name}' of table '{source.given}' is of type"
            f" {column.type}; expected single values, of which '{model.relation.given}' has the classes."
        )
    named, forms = classes_of(catalog, source, column)
    found = set(named)
    if not found <= set(classes):
        raise InvalidParameter(
            f"the class values in {source.given} ({show(found)}) should be a subset of class values in"
            f" {model.relation.given} ({show(set(classes))})",
            detail=f"Not known there: {show(found - set(classes))}.",
            hint="Leave those rows out, or pack the training table again with them.",
        )
    return columns.with_classes(replace(column, kind="onehot"), classes, model.target_shapes[index][-1], forms)


def _as_numbers(catalog: Catalog, source: Relation, column: Column, floats: bool) -> Column:
    if not floats and column.scalar:
        raise DatatypeMismatch(
            f"{catalog.module} error: dependent column '{column.name}' of table '{source.given}' is of type"
            f" {column.type};"
            " expected an array of whole numbers, as encoded targets are in the training table."
        )
    return columns.dependent_column(catalog, source, column.name, "float" if floats else "class")


def show(classes: set[str | None]) -> str:
    """Classes for a message, at most ten.

    >>> show({"b", "a", None})
    'NULL, a, b'
    """
    names = sorted(("NULL" if c is None else c) for c in classes)
    return ", ".join(names[:10]) + (", …" if len(names) > 10 else "")


@contextmanager
def packer(db: Database, session: dict[str, Any]) -> Iterator[None]:
    """A trainer that has numpy only, and ends with the call; it starts while the rows are counted."""
    chosen = settings.read(db)
    settings.check_trainer(chosen)
    spec = settings.trainer_spec(chosen, settings.TrainerRequest(framework="none"))
    visit.begin_trainer(db.check_interrupts, session, spec)
    try:
        yield
    finally:
        visit.stop_trainer(session)
