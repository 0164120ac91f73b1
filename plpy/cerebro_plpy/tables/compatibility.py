"""Whether architectures, packed tables and configurations fit each other, told before training
starts.

The inputs and outputs of a model and the columns of a table are matched by their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Optional

from cerebro_plpy.configs.architecture.architecture import (
    Architecture,
    check_architecture,
    read_architecture,
)
from cerebro_plpy.configs.params import output_losses
from cerebro_plpy.configs.params.compile_params import CompileParams
from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
    InvalidParameter,
    UndefinedObject,
)
from cerebro_plpy.limits import Poll, polled
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.packing.target_classes import FRACTIONS, show
from cerebro_plpy.records import replace
from cerebro_plpy.tables.architectures import StoredModel

Shape = tuple[int, ...]
Classes = Optional[tuple[Optional[str], ...]]
NEED_CLASSES = ("categorical_crossentropy", "categorical_focal_crossentropy")


def check_configs(
    configs: Sequence[Config],
    architectures: Mapping[int, StoredModel],
    source: PackedTable,
    table: Relation,
    poll: Poll,
) -> tuple[Config, ...]:
    """The configurations, which know what their metrics are called; the architecture of each is
    there and fits.
    """
    for config in configs:
        if config.model_id not in architectures:
            raise UndefinedObject(
                f"no model arch found in table {table.spelling} with id {config.model_id}",
                detail=f"mst_key {config.mst_key} names it.",
            )
    summaries = {}
    for architecture in polled(architectures.values(), poll):
        summary = check_architecture(read_architecture(architecture.json))
        name = f"model_id {architecture.model_id}"
        check_inputs(name, summary, input_columns(source))
        summaries[architecture.model_id] = summary
    for config in polled(configs, poll):
        summary, name = summaries[config.model_id], f"model_id {config.model_id}"
        output_losses.check_outputs(config.mst_key, config.compile, name, summary.output_names)
        check_targets(name, summary, source, config.compile)
        check_class_weight(config, summary, source)
    return _measured(polled(configs, poll), summaries, source)


def with_metrics(
    configs: Iterable[Config],
    architectures: Mapping[int, StoredModel],
    source: PackedTable,
    poll: Poll,
) -> tuple[Config, ...]:
    """Configurations that know what their metrics are called."""
    models = polled(architectures.items(), poll)
    summaries = {key: check_architecture(read_architecture(model.json)) for key, model in models}
    return _measured(polled(configs, poll), summaries, source)


def _measured(
    configs: Iterable[Config], summaries: Mapping[int, Architecture], source: PackedTable
) -> tuple[Config, ...]:
    return tuple(
        replace(
            c,
            metrics=output_losses.logged_metrics(
                c.compile.metrics, summaries[c.model_id].output_names, source.dependent
            ),
        )
        for c in configs
    )


class InputColumns(NamedTuple):
    """Columns whose rows enter a model: their names, the shapes of their rows, None for one that
    shows later.
    """

    table: str
    names: Sequence[str]
    shapes: Sequence[Shape | None]


def input_columns(packed: PackedTable) -> InputColumns:
    """The inputs of a packed table."""
    return InputColumns(packed.relation.spelling, packed.independent, packed.input_shapes)


def check_inputs(name: str, summary: Architecture, inputs: InputColumns) -> None:
    """A model's inputs against the columns that enter it."""
    table, columns, shapes = inputs
    if len(summary.input_shapes) != len(columns):
        raise DatatypeMismatch(
            f"model_keras error: {name} has {count_text(summary.input_shapes, 'input')}; received"
            f" {count_text(columns, 'independent column')} of table {table}: {', '.join(columns)}.",
            hint="Name a column for each input of the model, in the order of the inputs.",
        )
    for wanted, shape, column in zip(summary.input_shapes, shapes, columns):
        if shape is not None and not same_shape(wanted, shape):
            raise DatatypeMismatch(
                f"model_keras error: Input shape {list(wanted)} in the model architecture does not "
                f"match the input shape {list(shape)} of column {column} in table {table}.",
                detail=f"It is {name}.",
                hint="Give the first layer the shape of the rows, or reshape the column.",
            )


def check_targets(
    name: str, summary: Architecture, source: PackedTable, compiled: CompileParams
) -> None:
    """The widths of a model's outputs against those of the packed targets; class numbers may have
    any width.
    """
    table, dependent = source.relation.spelling, source.dependent
    if len(summary.output_units) != len(dependent):
        raise DatatypeMismatch(
            f"model_keras error: {name} has {count_text(summary.output_units, 'output')}; received "
            f"{count_text(dependent, 'dependent column')} of table {table}: "
            f"{', '.join(dependent)}.",
            hint="Pack a column for each output of the model, in the order of the outputs.",
        )
    losses = output_losses.losses_of(compiled, summary.output_names)
    for number, (units, loss, column) in enumerate(zip(summary.output_units, losses, dependent)):
        width, is_float = source.target_shapes[number][-1], source.float_targets[number]
        numbers = is_float and output_losses.wants_numbers(loss)
        binary = units == 1 and width == 2 and not is_float
        if units is not None and units != width and not binary and not numbers:
            raise DatatypeMismatch(
                f"model_keras error: the model with {name} ends in {units} units, but column "
                f"{column} of table {table} has {width} values a row.",
                hint="Give the last layer as many units as there are classes (or target values)."
                + _regression(source, number),
            )


def _regression(source: PackedTable, number: int) -> str:
    """The other way, where a target's type is one of measures."""
    kind = source.dependent_types[number] if number < len(source.dependent_types) else None
    if source.class_values[number] is None or kind not in FRACTIONS:
        return ""
    return (
        f" Column {source.dependent[number]} is of type {kind}: for regression pack with "
        "dependent_type => 'float'."
    )


def idle(config: Config, model: StoredModel) -> Iterator[str]:
    """What the caller should know of losses by which nothing is learned."""
    summary = check_architecture(read_architecture(model.json))
    for units, loss, name in zip(
        summary.output_units,
        output_losses.losses_of(config.compile, summary.output_names),
        summary.output_names,
    ):
        if units == 1 and loss in NEED_CLASSES:
            yield (
                f"{loss} of output {name!r}, which has one unit, is 0 whatever it gives, so "
                "nothing is learned: give it a unit for each class, or use binary_crossentropy"
            )


def check_class_weight(config: Config, summary: Architecture, source: PackedTable) -> None:
    """The classes that are given weights against those that the targets have."""
    if config.fit.class_weight is None:
        return
    if len(source.dependent) > 1:
        raise FeatureNotSupported(
            f"class_weight of mst_key {config.mst_key} is for models with one output, but model_id "
            f"{config.model_id} has {len(source.dependent)}.",
            hint="Leave class_weight out; loss_weights in the compile parameters weighs outputs.",
        )
    shape, table = source.target_shapes[0], source.relation.spelling
    if len(shape) > 1:
        raise FeatureNotSupported(
            f"class_weight of mst_key {config.mst_key} needs one class per row, but column "
            f"{source.dependent[0]} of table {table} has rows of shape {list(shape)}.",
        )
    numbers = shape[0] == 1 and source.class_values[0] is None
    (loss,) = output_losses.losses_of(config.compile, summary.output_names)
    classes = (
        (summary.output_units[0] if output_losses.wants_numbers(loss) else None)
        if numbers
        else shape[0]
    )
    largest = config.fit.class_weight[-1][0]
    if classes is not None and largest >= classes:
        names = source.class_values[0]
        raise InvalidParameter(
            f"class_weight of mst_key {config.mst_key} names class {largest}, but column "
            f"{source.dependent[0]} of table {table} has {classes} classes.",
            detail=f"Numbered from 0 they are: {', '.join(map(str, names[:100]))}."
            if names
            else None,
            hint=f"Give weights for classes 0 to {classes - 1}; those left out have weight 1.",
        )


def notices(config: Config, source: PackedTable) -> Iterator[str]:
    """What the caller should know of a configuration's parameters."""
    yield from (*config.compile.notices, *config.fit.notices)
    board = config.fit.callbacks.board
    if board and board.ignored:
        yield (
            f"TensorBoard is given {', '.join(board.ignored)}, without effect: scalars are written "
            "for each visit and each evaluation"
        )
    rows = -(-source.rows // len(source.segments))
    buffer = max(1, min(source.buffer_size, rows))
    batches = -(-rows // buffer) * -(-buffer // config.fit.batch_size)
    if config.fit.steps_per_epoch is not None and config.fit.steps_per_epoch > batches:
        yield (
            f"steps_per_epoch={config.fit.steps_per_epoch}, but a segment has about {batches} "
            "batches; a pass ends with them"
        )


def same_shape(wanted: Sequence[int | None], given: Shape) -> bool:
    """Whether rows of a shape can enter a layer that wants another, in which None stands for any
    length.

    >>> same_shape((None, 3), (7, 3)), same_shape((4,), (5,))
    (True, False)
    """
    return len(wanted) == len(given) and all(w is None or w == g for w, g in zip(wanted, given))


def count_text(things: Sequence[object], what: str) -> str:
    """How many there are, in words.

    >>> count_text([1], "input"), count_text([1, 2], "input")
    ('1 input', '2 inputs')
    """
    return f"{len(things)} {what}" + ("" if len(things) == 1 else "s")


def check_order(catalog: Catalog, expected: Sequence[str], given: Sequence[str], what: str) -> None:
    """Raises where the columns are those of before in another order, for inputs and outputs go by
    it.
    """
    if tuple(given) != tuple(expected) and sorted(given) == sorted(expected):
        raise InvalidParameter(
            f"{catalog.module} error: {what} are {', '.join(given)}; expected "
            f"{', '.join(expected)}, in this order.",
            hint="The inputs and outputs of a model are matched with columns by their order.",
        )


def check_validation(catalog: Catalog, source: PackedTable, other: PackedTable) -> None:
    """A validation or test table is packed as the training table was."""
    check_order(
        catalog,
        source.independent,
        other.independent,
        f"the inputs in table '{other.relation.spelling}'",
    )
    check_order(
        catalog,
        source.dependent,
        other.dependent,
        f"the targets in table '{other.relation.spelling}'",
    )
    if (source.input_shapes, source.target_shapes) != (other.input_shapes, other.target_shapes):
        raise DatatypeMismatch(
            f"{catalog.module} error: rows of table '{other.relation.spelling}' have shapes "
            f"{_shapes_text(other)}; expected {_shapes_text(source)} as in "
            f"'{source.relation.spelling}'.",
            hint="Pack it with validation_preprocessor_dl() against the training table.",
        )
    if source.float_targets != other.float_targets:
        raise DatatypeMismatch(
            f"{catalog.module} error: targets of table '{other.relation.spelling}' are floats "
            f"where those of '{source.relation.spelling}' are classes, or the reverse.",
            hint="Pack it with validation_preprocessor_dl() against the training table.",
        )
    if not set(other.segments) <= set(source.segments):
        raise InvalidParameter(
            f"{catalog.module} error: table '{other.relation.spelling}' has {len(other.segments)} "
            f"segments, not those of '{source.relation.spelling}'.",
            detail=f"{list(other.segments)} against {list(source.segments)}.",
            hint="Pack it with validation_preprocessor_dl() against the training table.",
        )
    check_classes(catalog, other, source.class_values, f"'{source.relation.spelling}'")


def _shapes_text(packed: PackedTable) -> str:
    inputs, targets = (
        ", ".join(str(list(s)) for s in shapes)
        for shapes in (packed.input_shapes, packed.target_shapes)
    )
    return f"{inputs} and {targets}"


def check_classes(
    catalog: Catalog, packed: PackedTable, known: Sequence[Classes], owner: str
) -> None:
    """Raises where targets have other classes than those that are known. Of encoded ones shapes
    tell enough.
    """
    for name, found, expected in zip(packed.dependent, packed.class_values, known):
        if found is not None and expected is not None and found != expected:
            raise InvalidParameter(
                f"{catalog.module} error: table '{packed.relation.spelling}' has other classes "
                f"than {owner}.",
                detail=f"Column {name} has {show(found)}; expected {show(expected)}.",
                hint="Pack it with validation_preprocessor_dl() against the training table.",
            )
