"""Checks before training that architectures, packed tables and configurations fit each other.

The inputs and outputs of a model are matched with the columns of a table by their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.configs.architecture.architecture import (
    Architecture,
    check_architecture,
    read_architecture,
)
from cerebro_plpy.configs.architecture.boosted_trees import check_any_architecture
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
from cerebro_plpy.limits import Poll, poll_between
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.packing.packed_summary import ClassValues
from cerebro_plpy.packing.packed_table import PackedTable, Shape
from cerebro_plpy.packing.target_classes import FRACTIONS, format_classes
from cerebro_plpy.records import replace
from cerebro_plpy.tables.architectures import StoredModel

MULTI_UNIT_LOSSES = ("categorical_crossentropy", "categorical_focal_crossentropy")
"""Losses that are always 0 for an output with one unit."""
PACK_AGAIN_HINT = "Pack it with validation_preprocessor_dl() against the training table."


class InputColumns(NamedTuple):
    """Columns of a table that are the inputs of a model."""

    table: str
    names: Sequence[str]
    shapes: Sequence[Shape | None]  # of a row; None if the shape is not known yet


def check_configs(
    configs: Sequence[Config],
    architectures: Mapping[int, StoredModel],
    source: PackedTable,
    table: Relation,
    poll: Poll,
) -> tuple[Config, ...]:
    """Check that configurations fit their architectures and the table.

    Args:
        table: architecture table, for error messages.

    Returns:
        The configurations with the names of their metrics.
    """
    for config in configs:
        if config.model_id not in architectures:
            raise UndefinedObject(
                f"no model arch found in table {table.spelling} with id {config.model_id}",
                detail=f"mst_key {config.mst_key} names it.",
            )
    summaries = {}
    for architecture in poll_between(architectures.values(), poll):
        summary = check_architecture(read_architecture(architecture.json))
        check_inputs(f"model_id {architecture.model_id}", summary, get_input_columns(source))
        summaries[architecture.model_id] = summary
    for config in poll_between(configs, poll):
        summary = summaries[config.model_id]
        name = f"model_id {config.model_id}"
        output_losses.check_outputs(config.mst_key, config.compile, name, summary.output_names)
        check_targets(name, summary, source, config.compile)
        check_class_weight(config, summary, source)
    return _name_metrics(poll_between(configs, poll), summaries, source)


def name_metrics(
    configs: Iterable[Config],
    architectures: Mapping[int, StoredModel],
    source: PackedTable,
    poll: Poll,
) -> tuple[Config, ...]:
    """Return the configurations with the names of their metrics."""
    summaries = {
        model_id: check_any_architecture(read_architecture(model.json))
        for model_id, model in poll_between(architectures.items(), poll)
    }
    return _name_metrics(poll_between(configs, poll), summaries, source)


def _name_metrics(
    configs: Iterable[Config], summaries: Mapping[int, Architecture], source: PackedTable
) -> tuple[Config, ...]:
    named_configs = []
    for config in configs:
        outputs = summaries[config.model_id].output_names
        metrics = output_losses.name_metrics(config.compile.metrics, outputs, source.dependent)
        named_configs.append(replace(config, metrics=metrics))
    return tuple(named_configs)


def get_input_columns(packed: PackedTable) -> InputColumns:
    """Return the inputs of a packed table."""
    return InputColumns(packed.relation.spelling, packed.independent, packed.input_shapes)


def check_inputs(name: str, summary: Architecture, inputs: InputColumns) -> None:
    """Check that a model's inputs fit the columns of a table."""
    if len(summary.input_shapes) != len(inputs.names):
        raise DatatypeMismatch(
            f"model_keras error: {name} has {count_nouns(len(summary.input_shapes), 'input')}; "
            f"received {count_nouns(len(inputs.names), 'independent column')} of table "
            f"{inputs.table}: {', '.join(inputs.names)}.",
            hint="Name a column for each input of the model, in the order of the inputs.",
        )
    for expected, shape, column in zip(summary.input_shapes, inputs.shapes, inputs.names):
        if shape is not None and not is_same_shape(expected, shape):
            raise DatatypeMismatch(
                f"model_keras error: Input shape {list(expected)} in the model architecture does "
                f"not match the input shape {list(shape)} of column {column} in table "
                f"{inputs.table}.",
                detail=f"It is {name}.",
                hint="Give the first layer the shape of the rows, or reshape the column.",
            )


def check_targets(
    name: str, summary: Architecture, source: PackedTable, compile_params: CompileParams
) -> None:
    """Check that a model's outputs have the width of the packed targets.

    Outputs for a loss that takes class numbers may have any width.
    """
    table = source.relation.spelling
    dependent = source.dependent
    if len(summary.output_units) != len(dependent):
        raise DatatypeMismatch(
            f"model_keras error: {name} has {count_nouns(len(summary.output_units), 'output')}; "
            f"received {count_nouns(len(dependent), 'dependent column')} of table {table}: "
            f"{', '.join(dependent)}.",
            hint="Pack a column for each output of the model, in the order of the outputs.",
        )
    losses = output_losses.list_losses_by_output(compile_params, summary.output_names)
    for number, (units, loss) in enumerate(zip(summary.output_units, losses)):
        if units is not None and not _fits_target(units, loss, source, number):
            raise DatatypeMismatch(
                f"model_keras error: the model with {name} ends in {count_nouns(units, 'unit')}, "
                f"but column {dependent[number]} of table {table} has "
                f"{count_nouns(source.target_shapes[number][-1], 'value')} a row.",
                hint="Give the last layer as many units as there are classes (or target values)."
                + _suggest_regression(source, number),
            )


def _fits_target(units: int, loss: str | None, source: PackedTable, number: int) -> bool:
    width = source.target_shapes[number][-1]
    if units == width:
        return True
    if source.float_targets[number]:
        return output_losses.expects_class_numbers(loss)
    return units == 1 and width == 2  # binary classification


def _suggest_regression(source: PackedTable, number: int) -> str:
    """Return a hint if a target was encoded as classes, but has a type of measurements."""
    types = source.dependent_types[number : number + 1]
    if source.class_values[number] is None or not types or types[0] not in FRACTIONS:
        return ""
    return (
        f" For regression, pack column {source.dependent[number]}, which is of type {types[0]}, "
        "with dependent_type => 'float'."
    )


def list_idle_losses(config: Config, model: StoredModel) -> Iterator[str]:
    """Yield notices about losses from which a model cannot learn."""
    summary = check_architecture(read_architecture(model.json))
    losses = output_losses.list_losses_by_output(config.compile, summary.output_names)
    for units, loss, name in zip(summary.output_units, losses, summary.output_names):
        if units == 1 and loss in MULTI_UNIT_LOSSES:
            yield (
                f"{loss} of output {name!r}, which has one unit, is 0 whatever it gives, so "
                "nothing is learned: give it a unit for each class, or use binary_crossentropy"
            )


def check_class_weight(config: Config, summary: Architecture, source: PackedTable) -> None:
    """Check that class weights are for classes of the target."""
    if config.fit.class_weight is None:
        return
    if len(source.dependent) > 1:
        raise FeatureNotSupported(
            f"class_weight of mst_key {config.mst_key} is for models with one output, but model_id "
            f"{config.model_id} has {len(source.dependent)}.",
            hint="Leave class_weight out; loss_weights in the compile parameters weighs outputs.",
        )
    table = source.relation.spelling
    shape = source.target_shapes[0]
    if len(shape) > 1:
        raise FeatureNotSupported(
            f"class_weight of mst_key {config.mst_key} needs one class per row, but column "
            f"{source.dependent[0]} of table {table} has rows of shape {list(shape)}.",
        )
    classes = _count_weighted_classes(config, summary, source)
    largest = config.fit.class_weight[-1][0]
    if classes is not None and largest >= classes:
        detail = None
        names = source.class_values[0]
        if names:
            detail = f"Numbered from 0 they are: {', '.join(map(str, names[:100]))}."
        raise InvalidParameter(
            f"class_weight of mst_key {config.mst_key} names class {largest}, but column "
            f"{source.dependent[0]} of table {table} has {count_nouns(classes, 'class')}.",
            detail=detail,
            hint=f"Give weights for classes 0 to {classes - 1}; those left out have weight 1.",
        )


def _count_weighted_classes(
    config: Config, summary: Architecture, source: PackedTable
) -> int | None:
    """Return the number of classes of the only target; None if it is unknown."""
    width = source.target_shapes[0][0]
    if width != 1 or source.class_values[0] is not None:
        return width
    # The target holds class numbers, or a float.
    (loss,) = output_losses.list_losses_by_output(config.compile, summary.output_names)
    if not output_losses.expects_class_numbers(loss):
        return None
    return summary.output_units[0]


def list_notices(config: Config, source: PackedTable) -> Iterator[str]:
    """Yield notices about a configuration's parameters."""
    yield from config.compile.notices
    yield from config.fit.notices
    board = config.fit.callbacks.tensorboard
    if board and board.ignored:
        yield (
            f"TensorBoard is given {', '.join(board.ignored)}, without effect: scalars are written "
            "for each visit and each evaluation"
        )
    rows = -(-source.rows // len(source.segments))
    buffer_rows = max(1, min(source.buffer_size, rows))
    batches = -(-rows // buffer_rows) * -(-buffer_rows // config.fit.batch_size)
    if config.fit.steps_per_epoch is not None and config.fit.steps_per_epoch > batches:
        yield (
            f"steps_per_epoch={config.fit.steps_per_epoch}, but a segment has about "
            f"{count_nouns(batches, 'batch')}; a pass ends with the last one"
        )


def is_same_shape(expected: Sequence[int | None], shape: Shape) -> bool:
    """Return whether rows of a shape fit an input; None in its shape stands for any length.

    >>> is_same_shape((None, 3), (7, 3)), is_same_shape((4,), (5,))
    (True, False)
    """
    if len(expected) != len(shape):
        return False
    return all(length in (None, actual) for length, actual in zip(expected, shape))


def check_order(
    catalog: Catalog, expected: Sequence[str], columns: Sequence[str], role: str
) -> None:
    """Check that the expected columns are not passed in another order.

    Args:
        role: subject of the error message, such as "the inputs".
    """
    if tuple(columns) != tuple(expected) and sorted(columns) == sorted(expected):
        raise InvalidParameter(
            f"{catalog.module} error: {role} are {', '.join(columns)}; expected "
            f"{', '.join(expected)}, in this order.",
            hint="The inputs and outputs of a model are matched with columns by their order.",
        )


def check_validation(catalog: Catalog, source: PackedTable, other: PackedTable) -> None:
    """Check that a validation or test table is packed like the training table."""
    source_name = f"'{source.relation.spelling}'"
    other_name = f"table '{other.relation.spelling}'"
    inputs_name = f"the inputs in {other_name}"
    targets_name = f"the targets in {other_name}"
    check_order(catalog, source.independent, other.independent, inputs_name)
    check_order(catalog, source.dependent, other.dependent, targets_name)
    if (source.input_shapes, source.target_shapes) != (other.input_shapes, other.target_shapes):
        raise DatatypeMismatch(
            f"{catalog.module} error: rows of {other_name} have shapes "
            f"{_format_shapes(other)}; expected {_format_shapes(source)} as in {source_name}.",
            hint=PACK_AGAIN_HINT,
        )
    if source.float_targets != other.float_targets:
        raise DatatypeMismatch(
            f"{catalog.module} error: targets of {other_name} are floats "
            f"where those of {source_name} are classes, or the reverse.",
            hint=PACK_AGAIN_HINT,
        )
    if not set(other.segments) <= set(source.segments):
        raise InvalidParameter(
            f"{catalog.module} error: {other_name} has "
            f"{count_nouns(len(other.segments), 'segment')}, not those of {source_name}.",
            detail=f"{list(other.segments)} against {list(source.segments)}.",
            hint=PACK_AGAIN_HINT,
        )
    check_classes(catalog, other, source.class_values, source_name)


def _format_shapes(packed: PackedTable) -> str:
    inputs = ", ".join(str(list(shape)) for shape in packed.input_shapes)
    targets = ", ".join(str(list(shape)) for shape in packed.target_shapes)
    return f"{inputs} and {targets}"


def check_classes(
    catalog: Catalog, packed: PackedTable, expected: Sequence[ClassValues | None], owner: str
) -> None:
    """Check that targets have the expected classes; the shapes suffice for encoded targets.

    Args:
        owner: table or model with the expected classes, for the error message.
    """
    for name, actual, classes in zip(packed.dependent, packed.class_values, expected):
        if actual is not None and classes is not None and actual != classes:
            raise InvalidParameter(
                f"{catalog.module} error: table '{packed.relation.spelling}' has other classes "
                f"than {owner}.",
                detail=f"Column {name} has {format_classes(actual)}; "
                f"expected {format_classes(classes)}.",
                hint=PACK_AGAIN_HINT,
            )
