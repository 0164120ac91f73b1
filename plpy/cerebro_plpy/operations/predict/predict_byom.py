"""`madlib_keras_predict_byom`: predict with a model that the user loaded with its weights.

The model of the architecture table was not trained here, so the class values and the normalizing
constant are arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from cerebro_plpy.configs.architecture.architecture import (
    Architecture,
    check_architecture,
    read_architecture,
)
from cerebro_plpy.configs.params import frameworks
from cerebro_plpy.database.call_checks import check_constant, check_transaction
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Globals
from cerebro_plpy.database.sql.literals import show_value
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.errors import InvalidParameter, NullNotAllowed, UndefinedObject
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.operations.predict.prediction_output import (
    ColumnNames,
    Labels,
    Output,
    PredictingModel,
    PredType,
    parse_request,
    write_predictions,
)
from cerebro_plpy.packing.packed_summary import strip_padding
from cerebro_plpy.platform.call_context import CallContext, open_context
from cerebro_plpy.platform.job import StateSource
from cerebro_plpy.records import dataclass
from cerebro_plpy.tables.architectures import find_table
from cerebro_plpy.trainer_client import settings

MODULE = "madlib_keras_predict_byom"
COMPILE = {"optimizer": {"class_name": "SGD", "config": {}}, "loss": "mean_squared_error"}
"""A program must be compiled for training; SGD is used because it has no slot variables."""
ClassValues = Sequence[Optional[str]]
"""The class values of one output."""


@dataclass(frozen=True)
class ByomArguments:
    """The arguments of a call but for the columns and pred_type, None for NULL."""

    model_arch_table: str | None
    model_id: int | None
    test_table: str | None
    output_table: str | None
    use_gpus: bool | None
    class_values: list[Any] | None
    normalizing_const: float | None
    dependent_count: int | None
    backend: str | None


def predict_byom(
    db: Database,
    gd: Globals,
    arguments: ByomArguments,
    columns: ColumnNames,
    pred_type: PredType,
) -> None:
    """Create a table of predictions.

    Args:
        columns: the id column and the list of inputs.
    """
    check_transaction(db, MODULE)
    catalog = Catalog(db, MODULE)
    constant, backend = _check_arguments(arguments)
    settings.choose_gpus(settings.read(db), arguments.use_gpus)
    table = find_table(catalog, arguments.model_arch_table)
    test = catalog.resolve_input(arguments.test_table, "test")
    request = parse_request(catalog, test, columns, pred_type)
    output = catalog.reserve_output(arguments.output_table)
    with open_context(db, gd, [table, test], None) as context:
        network = read_weighted_architecture(MODULE, context, table, arguments.model_id)
        architecture = check_architecture(network)
        model = PredictingModel(
            title=f"model_id {arguments.model_id}",
            architecture=architecture,
            program=describe_program(network, architecture),
            state=find_weights(table, arguments.model_id),
            outputs=list_outputs(arguments, architecture),
            normalizing_const=constant,
            backend=backend,
        )
        write_predictions(context, output, model, request, bool(arguments.use_gpus))


def _check_arguments(arguments: ByomArguments) -> tuple[float, str]:
    """Return the checked normalizing constant and backend."""
    backend = arguments.backend or frameworks.BACKENDS[0]
    if backend not in frameworks.BACKENDS:
        raise InvalidParameter(
            f"{MODULE} error: backend is {backend!r}; expected one of "
            f"{', '.join(frameworks.BACKENDS)}."
        )
    return check_constant(MODULE, arguments.normalizing_const), backend


def read_weighted_architecture(
    module: str, context: CallContext, table: Relation, model_id: int | None
) -> object:
    """Read a network that was loaded with its weights.

    Raises:
        UndefinedObject: the table has no such model.
        NullNotAllowed: the architecture or the weights are missing.
    """
    rows = context.reader.run(sql("read.architectures", table=table.quoted), ([model_id],))
    if not rows:
        raise UndefinedObject(
            f"{module} error: no model arch found in table {table.spelling} with id"
            f" {show_value(model_id)}",
            hint=f"SELECT model_id, name FROM {table.quoted};",
        )
    _, text, has_weights = rows[0]
    if text is None or not has_weights:
        raise NullNotAllowed(
            f"{module}: Model weights and architecture should not be NULL.",
            detail=f"Those of model_id {model_id} in table {table.spelling} are.",
            hint="load_keras_model() takes both.",
        )
    return read_architecture(text)


def describe_program(network: object, architecture: Architecture) -> JsonObject:
    """Describe a program that only computes the outputs of a network."""
    return {
        "architecture": network,
        "compile": COMPILE,
        "targets": [{"kind": "float"} for _ in architecture.output_units],
        "dtype_policy": None,
    }


def find_weights(table: Relation, model_id: int | None) -> StateSource:
    """Return the source of the weights of a model of an architecture table."""
    text = sql("visit.weights_source", table=table.quoted)
    return StateSource("weights", f"{table.oid}/{model_id}", 0, text, (model_id,))


def list_outputs(arguments: ByomArguments, architecture: Architecture) -> tuple[Output, ...]:
    """Return the outputs of the model, under the names that MADlib gives them without columns.

    Raises:
        InvalidParameter: dependent_count or class_values do not match the network.
    """
    count = len(architecture.output_units)
    if arguments.dependent_count not in (None, count):
        raise InvalidParameter(
            f"{MODULE} error: dependent_count is {arguments.dependent_count}, but model_id "
            f"{arguments.model_id} has {count_nouns(len(architecture.output_units), 'output')}: "
            f"{', '.join(architecture.output_names)}.",
            hint=f"Write dependent_count => {count}.",
        )
    values_by_output: Sequence[ClassValues | None] = [None] * count
    if arguments.class_values is not None:
        values_by_output = split_by_output(arguments.class_values)
    if len(values_by_output) != count:
        raise _make_mismatch_error(
            f"class_values is for {count_nouns(len(values_by_output), 'output')}, but the model "
            f"has {count}."
        )
    names = [f"dependent_var_{number}" for number in range(count)]
    if count == 1:
        names = ["dependent_var"]
    return tuple(
        Output(name, make_labels(values, units, name))
        for name, values, units in zip(names, values_by_output, architecture.output_units)
    )


def split_by_output(class_values: Sequence[Any]) -> Sequence[ClassValues]:
    """Return the class values of each output.

    Args:
        class_values: an array of one dimension for one output, or of two with a row per output.

    Raises:
        InvalidParameter: the array has more than two dimensions.
    """
    rows = [row for row in class_values if isinstance(row, list)]
    if any(isinstance(value, list) for row in rows for value in row):
        raise InvalidParameter(f"{MODULE} error: class_values has more than two dimensions.")
    if not rows:
        return [class_values]
    return class_values


def make_labels(values: ClassValues | None, units: int | None, name: str) -> Labels:
    """Return the class values of an output; None, which labels classes by position, without any.

    NULLs at the end fill up a row, or stand for padding classes as in `<dependent>_class_values`.

    Args:
        units: units of the output; None if they are not fixed.

    Raises:
        InvalidParameter: the number of values does not match the units.

    >>> make_labels(["a", "b", None], 2, "y"), make_labels([None, "a"], 2, "y")
    (('a', 'b'), (None, 'a'))
    >>> make_labels(["no", "yes"], 1, "y")
    ('no', 'yes')
    """
    if values is None or all(value is None for value in values):
        return None
    labels = strip_padding(list(values))
    is_binary = units == 1 and len(labels) == 2
    if units is None or is_binary or len(labels) <= units <= len(values):
        return labels
    raise _make_mismatch_error(
        f"{name} has {count_nouns(units, 'unit')}, but {len(values)} class values: "
        f"{', '.join(map(str, labels[:100]))}."
    )


def _make_mismatch_error(detail: str) -> InvalidParameter:
    return InvalidParameter(
        f"{MODULE}: The number of class values do not match the provided architecture.",
        detail=detail,
        hint="Give a value for each unit of the last layer (two for a single unit); for several "
        "outputs a row for each, filled up with NULL.",
    )
