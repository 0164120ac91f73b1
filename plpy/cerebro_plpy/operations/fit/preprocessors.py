"""The two preprocessors: check the arguments, find the classes, pack, and describe the result."""

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
from cerebro_plpy.database.sql.identifiers import split_columns
from cerebro_plpy.errors import InvalidParameter, NullNotAllowed, UndefinedTable
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
LEAST, MOST = 1.2e-38, 3.4e38  # what a real holds with all its digits


@dataclass(frozen=True)
class PackArguments:
    """The arguments that both preprocessors have, as they came."""

    source_table: str | None
    output_table: str | None
    dependent_varname: str | None
    independent_varname: str | None
    buffer_size: int | None
    distribution_rules: str | None


class PreparedRows(NamedTuple):
    """What nobody needs to look for of rows that are in random order already: how many there are,
    and their classes.

    `recipes` are what the packer applies to raw values, by the names of inputs; `grouped` are the
    buffers of rows that come group by group.
    """

    rows: int
    classes: tuple[str, ...]
    recipes: Mapping[str, str]
    grouped: BufferLayout | None = None


@dataclass(frozen=True)
class TrainingOptions:
    """The further arguments of training_preprocessor_dl, as they came."""

    normalizing_const: float | None
    num_classes: list[int | None] | None
    n_segments: int | None
    seed: int | None
    dependent_type: str | None
    sample_weight_varname: str | None
    known: PreparedRows | None = None


def pack_training(
    db: Database, gd: Globals, arguments: PackArguments, options: TrainingOptions
) -> None:
    """Pack a table for training."""
    catalog = Catalog(db, "training_preprocessor_dl")
    rules = check_arguments(catalog, arguments)
    constant = check_options(catalog, options)
    source, output, dependent, independent, weight = find_inputs(
        catalog, arguments, options.dependent_type, options.sample_weight_varname
    )
    chosen = db.platform.choose_distribution(db, catalog.module, rules, options.n_segments)
    read = (*independent, *dependent, *weight)
    with open_packers(db, gd, source, read) as (source, packers):
        packers.begin("counted")
        known = options.known
        rows = known.rows if known else packing_plan.count_rows(db, catalog, source, read, weight)
        packers.begin("looked for classes in", rows)
        plan = PackingPlan(
            source=source,
            output=output,
            dependent=encode_targets(
                catalog, source, dependent, options.num_classes, known.classes if known else None
            ),
            independent=independent,
            weight=weight,
            rows=rows,
            buffer_size=arguments.buffer_size,
            normalizing_const=constant,
            distribution=chosen.take_first(rows),
            seed=_seed(options),
            packers=packers,
            recipes=known.recipes if known else {},
            group_layout=known.grouped if known else None,
        )
        for text in list_class_notices(plan.dependent, options.dependent_type is not None):
            db.notice(text)
        fill_buffers.pack(db, plan)


def parse_buffer_layout(text: str | None) -> BufferLayout | None:
    """The buffers of rows that come group by group, from JSON."""
    return (
        None
        if text is None
        else BufferLayout.from_json(argument_checks.parse_object("grouped", text))
    )


def _seed(options: TrainingOptions) -> int | None:
    """What the places of rows are hashed with; None where they stay in their order."""
    if options.known:
        return None
    return secrets.randbits(31) if options.seed is None else options.seed


def check_options(catalog: Catalog, options: TrainingOptions) -> float:
    """The normalizing constant, as the real that the summary keeps; what else needs no table is
    checked too.
    """
    constant = check_constant(catalog.module, options.normalizing_const)
    check_positive(catalog.module, "n_segments", options.n_segments)
    if not LEAST <= constant <= MOST:
        raise InvalidParameter(
            f"{catalog.module}: normalizing_const is {constant}; expected {LEAST} to {MOST}."
        )
    return float(struct.unpack("f", struct.pack("f", constant))[0])


def target_types(catalog: Catalog, given: str | None, count: int) -> list[str | None]:
    """What becomes of each of so many targets: one word for all of them, or a list of words."""
    words: list[str | None] = (
        [None] if given is None else [word.strip() for word in given.split(",")]
    )
    if not {*words} <= {None, *TARGET_TYPES} or len(words) not in (1, count):
        raise InvalidParameter(
            f"{catalog.module} error: dependent_type is {given!r}; expected 'class' or 'float'.",
            hint=(
                f"Of {count} dependent columns it may name each one's type: "
                f"'{', '.join(['class'] * count)}'."
            )
            if count > 1
            else None,
        )
    return words * count if len(words) == 1 else words


def pack_validation(
    db: Database,
    gd: Globals,
    arguments: PackArguments,
    training: str | None,
    recipes: Mapping[str, str] = MappingProxyType({}),
    grouped: BufferLayout | None = None,
) -> None:
    """Pack a table as its training table was packed: same classes, constant and segments; not
    shuffled.
    """
    catalog = Catalog(db, "validation_preprocessor_dl")
    rules = check_arguments(catalog, arguments)
    model = read_training(catalog, training)
    source, output, dependent, independent, _ = find_inputs(catalog, arguments, None, None)
    if len(dependent) != len(model.dependent) or len(independent) != len(model.independent):
        raise InvalidParameter(
            f"{catalog.module} error: received {len(dependent)} dependent and {len(independent)} "
            f"independent columns; expected {len(model.dependent)} and {len(model.independent)} as "
            f"in table '{training}'."
        )
    check_order(catalog, model.independent, [column.name for column in independent], "the inputs")
    check_order(catalog, model.dependent, [column.name for column in dependent], "the targets")
    along = db.platform.follow_distribution(db, catalog.module, model.segments, rules)
    with open_packers(db, gd, source, (*independent, *dependent)) as (source, packers):
        packers.begin("looked for classes in")
        dependent = tuple(
            encode_as_in_training(catalog, source, c, model, i) for i, c in enumerate(dependent)
        )
        packers.begin("counted")
        plan = PackingPlan(
            source=source,
            output=output,
            dependent=dependent,
            independent=independent,
            weight=(),
            rows=packing_plan.count_rows(db, catalog, source, (*independent, *dependent)),
            buffer_size=arguments.buffer_size,
            normalizing_const=model.normalizing_const,
            distribution=along,
            seed=None,
            packers=packers,
            recipes=recipes,
            group_layout=grouped,
        )
        fill_buffers.pack(db, plan)


def read_training(catalog: Catalog, training: str | None) -> PackedTable:
    """The packed training table that a validation table follows."""
    hint = "Name the packed training table."
    if training is None or not training.strip():
        raise NullNotAllowed(f"{catalog.module} error: NULL/empty input table name!", hint=hint)
    if catalog.find(training) is None:
        raise UndefinedTable(
            f"{catalog.module} error: Input table '{training}' does not exist. Please ensure that "
            f"table '{training}' has been preprocessed using training_preprocessor_dl().",
            hint=hint,
        )
    return read_packed(
        catalog, LocalSession(catalog.db), find_packed(catalog, training, "training")
    )


def check_arguments(catalog: Catalog, arguments: PackArguments) -> Rules:
    """The rules of distribution; all that needs no other table is checked."""
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
    word = rules.lower() if rules else None
    return (
        word
        if rules is None or word in RULES
        else catalog.resolve_input(rules, "distribution rules")
    )


class PackInputs(NamedTuple):
    """What a preprocessor's call names: the table that is packed, the one that is made, targets,
    inputs, and weights.

    There is one column of weights, or none.
    """

    source: Relation
    output: Relation
    dependent: tuple[Column, ...]
    independent: tuple[Column, ...]
    weight: tuple[Column, ...]


def find_inputs(
    catalog: Catalog, arguments: PackArguments, dependent_type: str | None, weight_name: str | None
) -> PackInputs:
    """The tables and columns of the call."""
    source = catalog.resolve_input(arguments.source_table)
    wait_for_source(catalog.db, LocalSession(catalog.db), source, read_wait_limit(catalog.db))
    output = catalog.reserve_output(arguments.output_table, ("_summary",))
    targets, inputs = (
        split_columns(arguments.dependent_varname or ""),
        split_columns(arguments.independent_varname or ""),
    )
    weights = _weight_names(catalog.module, weight_name)
    named = targets + inputs + weights
    if len(set(named)) != len(named):
        raise InvalidParameter(
            f"{catalog.module} error: received columns {', '.join(named)}; expected each to be "
            "named once."
        )
    types = target_types(catalog, dependent_type, len(targets))
    dependent = tuple(
        packed_columns.read_target_column(catalog, source, name, kind)
        for name, kind in zip(targets, types)
    )
    independent = tuple(packed_columns.read_input_column(catalog, source, name) for name in inputs)
    weight = tuple(packed_columns.read_weight_column(catalog, source, name) for name in weights)
    packed_columns.check_names(catalog.module, targets, inputs + weights)
    return PackInputs(source, output, dependent, independent, weight)


def _weight_names(module: str, text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    names = split_columns(text)
    if len(names) != 1:
        raise InvalidParameter(
            f"{module} error: sample_weight_varname is {text!r}; expected the name of one column."
        )
    return names


@contextmanager
def open_packers(
    db: Database, gd: Globals, source: Relation, columns: Sequence[Column]
) -> Iterator[tuple[Relation, Packers]]:
    """What packing takes: trainers that have numpy only, and end with the call; and the source as
    they read it.
    """
    settings.check_trainer(settings.read(db))
    with db.platform.open_packers(db, gd, source, [column.name for column in columns]) as packers:
        yield replace(source, quoted=packers.from_item), packers
