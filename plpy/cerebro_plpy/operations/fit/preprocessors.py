"""The two preprocessors: check the arguments, find the classes, pack, and write the summary."""

from __future__ import annotations

import secrets
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import NamedTuple

from cerebro_plpy.database.call_checks import check_constant, check_positive
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.lock_waits import read_wait_limit, wait_for_source
from cerebro_plpy.database.platform_protocol import RULES, Packers, Rules
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sessions.spi import Database, Globals
from cerebro_plpy.errors import InvalidParameter, NullNotAllowed, UndefinedTable
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.packing import fill_buffers, packed_columns, packing_plan
from cerebro_plpy.packing.grouped_buffers import BufferLayout
from cerebro_plpy.packing.packed_columns import Column
from cerebro_plpy.packing.packed_table import PackedTable, find_packed, read_packed
from cerebro_plpy.packing.packing_plan import PackingPlan
from cerebro_plpy.packing.target_classes import (
    encode_as_in_training,
    encode_targets,
    list_class_notices,
)
from cerebro_plpy.records import dataclass, replace
from cerebro_plpy.tables.compatibility import check_order
from cerebro_plpy.trainer_client import argument_checks, settings

TARGET_TYPES = ("class", "float")
MIN_CONSTANT = 1.2e-38
MAX_CONSTANT = 3.4e38
"""The range of a normalizing constant: numbers that a real stores with all its digits."""


@dataclass(frozen=True)
class PackArguments:
    """The unchecked arguments that both preprocessors have."""

    source_table: str | None
    output_table: str | None
    dependent_varname: str | None
    independent_varname: str | None
    buffer_size: int | None
    distribution_rules: str | None


NO_RECIPES: Mapping[str, str] = MappingProxyType({})


class RowProperties(NamedTuple):
    """Properties of the rows to pack."""

    row_count: int
    classes: tuple[str, ...] | None = None  # None: of those in the table
    recipes: Mapping[str, str] = NO_RECIPES  # applied to raw inputs by the packers, by name
    group_layout: BufferLayout | None = None  # buffers of rows that come group by group


@dataclass(frozen=True)
class TrainingOptions:
    """The unchecked further arguments of training_preprocessor_dl."""

    normalizing_const: float | None
    num_classes: list[int | None] | None
    n_segments: int | None
    seed: int | None
    dependent_type: str | None
    sample_weight_varname: str | None
    rows: RowProperties | None = None  # of rows that are in random order already


class PackInputs(NamedTuple):
    """The tables and columns of a call."""

    source: Relation
    output: Relation
    dependent: tuple[Column, ...]
    independent: tuple[Column, ...]
    weight: tuple[Column, ...]  # one column with the weights of rows, or none


def pack_training(
    db: Database, gd: Globals, arguments: PackArguments, options: TrainingOptions
) -> None:
    """Pack a table for training."""
    catalog = Catalog(db, "training_preprocessor_dl")
    rules = _check_arguments(catalog, arguments)
    normalizing_const = _check_options(catalog, options)
    inputs = _find_inputs(catalog, arguments, options.dependent_type, options.sample_weight_varname)
    distribution = db.platform.choose_distribution(db, catalog.module, rules, options.n_segments)
    columns = (*inputs.independent, *inputs.dependent, *inputs.weight)
    with _open_packers(db, gd, inputs.source, columns) as (source, packers):
        packers.begin("counted")
        rows = options.rows or RowProperties(
            packing_plan.count_rows(catalog, source, columns, inputs.weight)
        )
        packers.begin("looked for classes in", rows.row_count)
        dependent = encode_targets(
            catalog, source, inputs.dependent, options.num_classes, rows.classes
        )
        plan = PackingPlan(
            source=source,
            output=inputs.output,
            dependent=dependent,
            independent=inputs.independent,
            weight=inputs.weight,
            rows=rows.row_count,
            buffer_size=arguments.buffer_size,
            normalizing_const=normalizing_const,
            distribution=distribution.take_first(rows.row_count),
            seed=_choose_seed(options),
            packers=packers,
            recipes=rows.recipes,
            group_layout=rows.group_layout,
            saves_segments=_may_save_segments(db, options),
        )
        for text in list_class_notices(plan.dependent, options.dependent_type is not None):
            db.notice(text)
        fill_buffers.pack(db, plan)


def _may_save_segments(db: Database, options: TrainingOptions) -> bool:
    """Return whether rows may go to few segments without a worker that has none.

    Users of MADlib's functions choose the segments themselves.
    """
    if options.rows is None or options.rows.group_layout is not None:
        return False
    if options.n_segments is not None:
        return False
    return not db.platform.binds_workers


def parse_buffer_layout(text: str | None) -> BufferLayout | None:
    """Parse the JSON of the buffers of rows that come group by group; NULL stands for no groups."""
    if text is None:
        return None
    return BufferLayout.from_json(argument_checks.parse_object("grouped", text))


def _choose_seed(options: TrainingOptions) -> int | None:
    """Return the seed that shuffles the rows; None if they keep their order."""
    if options.rows:
        return None
    return secrets.randbits(31) if options.seed is None else options.seed


def _check_options(catalog: Catalog, options: TrainingOptions) -> float:
    """Check what needs no table; return the normalizing constant, rounded to the summary's real."""
    constant = check_constant(catalog.module, options.normalizing_const)
    check_positive(catalog.module, "n_segments", options.n_segments)
    if not MIN_CONSTANT <= constant <= MAX_CONSTANT:
        raise InvalidParameter(
            f"{catalog.module}: normalizing_const is {constant}; expected {MIN_CONSTANT} to "
            f"{MAX_CONSTANT}."
        )
    return float(struct.unpack("f", struct.pack("f", constant))[0])


def _parse_target_types(catalog: Catalog, text: str | None, count: int) -> Sequence[str | None]:
    """Return the type of each target.

    Args:
        text: one type for all targets, or a comma-separated list; NULL for the default.
        count: number of targets.
    """
    if text is None:
        return [None] * count
    types = [word.strip() for word in text.split(",")]
    if not set(types) <= set(TARGET_TYPES) or len(types) not in (1, count):
        hint = None
        if count > 1:
            example = ", ".join(["class"] * count)
            columns = count_nouns(count, "dependent column")
            hint = f"Name a type for each of the {columns}: '{example}'."
        raise InvalidParameter(
            f"{catalog.module} error: dependent_type is {text!r}; expected 'class' or 'float'.",
            hint=hint,
        )
    if len(types) == 1:
        return types * count
    return types


def pack_validation(
    db: Database,
    gd: Globals,
    arguments: PackArguments,
    training: str | None,
    recipes: Mapping[str, str] = NO_RECIPES,
    group_layout: BufferLayout | None = None,
) -> None:
    """Pack a table like its training table, but without a shuffle.

    The classes, the normalizing constant and the segments are the same.
    """
    catalog = Catalog(db, "validation_preprocessor_dl")
    rules = _check_arguments(catalog, arguments)
    model = _read_training_table(catalog, training)
    inputs = _find_inputs(catalog, arguments, None, None)
    targets = inputs.dependent
    independent = inputs.independent
    if len(targets) != len(model.dependent) or len(independent) != len(model.independent):
        raise InvalidParameter(
            f"{catalog.module} error: received {len(targets)} dependent and "
            f"{count_nouns(len(independent), 'independent column')}; expected "
            f"{len(model.dependent)} and {len(model.independent)} as in table '{training}'."
        )
    check_order(catalog, model.independent, [column.name for column in independent], "the inputs")
    check_order(catalog, model.dependent, [column.name for column in targets], "the targets")
    distribution = db.platform.follow_distribution(db, catalog.module, model.segments, rules)
    with _open_packers(db, gd, inputs.source, (*independent, *targets)) as (source, packers):
        packers.begin("looked for classes in")
        dependent = tuple(
            encode_as_in_training(catalog, source, column, model, index)
            for index, column in enumerate(targets)
        )
        packers.begin("counted")
        plan = PackingPlan(
            source=source,
            output=inputs.output,
            dependent=dependent,
            independent=independent,
            weight=(),
            rows=packing_plan.count_rows(catalog, source, (*independent, *dependent)),
            buffer_size=arguments.buffer_size,
            normalizing_const=model.normalizing_const,
            distribution=distribution,
            seed=None,
            packers=packers,
            recipes=recipes,
            group_layout=group_layout,
        )
        fill_buffers.pack(db, plan)


def _read_training_table(catalog: Catalog, training: str | None) -> PackedTable:
    """Read the packed training table that a validation table follows."""
    hint = "Name the packed training table."
    if training is None or not training.strip():
        raise NullNotAllowed(f"{catalog.module} error: NULL/empty input table name!", hint=hint)
    if catalog.find(training) is None:
        raise UndefinedTable(
            f"{catalog.module} error: Input table '{training}' does not exist. Please ensure that "
            f"table '{training}' has been preprocessed using training_preprocessor_dl().",
            hint=hint,
        )
    packed = find_packed(catalog, training, "training")
    return read_packed(catalog, LocalSession(catalog.db), packed)


def _check_arguments(catalog: Catalog, arguments: PackArguments) -> Rules:
    """Check what needs no other table; return the distribution rules."""
    if arguments.buffer_size is not None and arguments.buffer_size < 1:
        raise InvalidParameter(
            f"{catalog.module}: The buffer size has to be a positive integer or NULL.",
            detail=f"Received {arguments.buffer_size}.",
        )
    for name in ("dependent_varname", "independent_varname"):
        if not (getattr(arguments, name) or "").strip():
            raise NullNotAllowed(
                f"{catalog.module} error: {name} is NULL or empty; expected the name of a column."
            )
    rules = arguments.distribution_rules
    keyword = rules.lower() if rules else None
    if rules is None or keyword in RULES:
        return keyword
    return catalog.resolve_input(rules, "distribution rules")


def _find_inputs(
    catalog: Catalog, arguments: PackArguments, dependent_type: str | None, weight_name: str | None
) -> PackInputs:
    """Find the tables and columns that a call names."""
    source = catalog.resolve_input(arguments.source_table, argument="source_table")
    wait_for_source(catalog.db, LocalSession(catalog.db), source, read_wait_limit(catalog.db))
    output = catalog.reserve_output(arguments.output_table, ("_summary",))
    targets = catalog.split_list(source, "dependent_varname", arguments.dependent_varname or "")
    inputs = catalog.split_list(source, "independent_varname", arguments.independent_varname or "")
    weights = _split_weight(catalog, source, weight_name)
    names = targets + inputs + weights
    if len(set(names)) != len(names):
        raise InvalidParameter(
            f"{catalog.module} error: received columns {', '.join(names)}; expected each to be "
            "named once."
        )
    types = _parse_target_types(catalog, dependent_type, len(targets))
    dependent = tuple(
        packed_columns.read_target_column(catalog, source, name, target_type)
        for name, target_type in zip(targets, types)
    )
    independent = tuple(packed_columns.read_input_column(catalog, source, name) for name in inputs)
    weight = tuple(packed_columns.read_weight_column(catalog, source, name) for name in weights)
    packed_columns.check_names(catalog.module, targets, inputs + weights)
    return PackInputs(source, output, dependent, independent, weight)


def _split_weight(catalog: Catalog, source: Relation, text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    names = catalog.split_list(source, "sample_weight_varname", text)
    if len(names) != 1:
        raise InvalidParameter(
            f"{catalog.module} error: sample_weight_varname is {text!r}; expected the name of one "
            "column."
        )
    return names


@contextmanager
def _open_packers(
    db: Database, gd: Globals, source: Relation, columns: Sequence[Column]
) -> Iterator[tuple[Relation, Packers]]:
    """Yield the source as packers read it, and packers that end with the call.

    Packers are trainers without a framework.
    """
    settings.check_trainer(settings.read(db))
    with db.platform.open_packers(db, gd, source, [column.name for column in columns]) as packers:
        yield replace(source, quoted=packers.from_item), packers
