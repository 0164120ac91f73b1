"""Bring your own model: predictions with a model of an architecture table that was loaded with its
weights.

Nothing was trained here, so classes and the normalizing constant come as arguments.
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
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import InvalidParameter, NullNotAllowed, UndefinedObject
from cerebro_plpy.operations.predict.prediction_output import (
    Labels,
    Output,
    Predictor,
    PredType,
    question,
    write,
)
from cerebro_plpy.packing.packed_summary import strip_padding
from cerebro_plpy.platform.call_context import CallContext, open_context
from cerebro_plpy.platform.job import StateSource
from cerebro_plpy.records import dataclass
from cerebro_plpy.tables.architectures import find_table
from cerebro_plpy.tables.compatibility import format_count
from cerebro_plpy.trainer_client import settings

MODULE = "madlib_keras_predict_byom"
# A program has to be compiled for something; this keeps nothing beside the weights.
COMPILE = {"optimizer": {"class_name": "SGD", "config": {}}, "loss": "mean_squared_error"}
Row = Sequence[Optional[str]]


@dataclass(frozen=True)
class ByomArguments:
    """The arguments of a call as they came, None for NULL; those that say what is predicted are
    apart.
    """

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
    gd: dict[str, Any],
    arguments: ByomArguments,
    columns: tuple[str | None, str | None],
    pred_type: PredType,
) -> None:
    """Make a table of predictions; `columns` are the id column and the list of inputs."""
    check_transaction(db, MODULE)
    catalog = Catalog(db, MODULE)
    constant, backend = _check_arguments(arguments)
    settings.choose_gpus(settings.read(db), arguments.use_gpus)
    relations = [
        find_table(catalog, arguments.model_arch_table),
        catalog.resolve_input(arguments.test_table, "test"),
    ]
    asked = question(catalog, relations[1], columns, pred_type)
    output = catalog.reserve_output(arguments.output_table)
    with open_context(db, gd, relations, None) as workplace:
        architecture = weighted_architecture(MODULE, workplace, relations[0], arguments.model_id)
        summary = check_architecture(architecture)
        predictor = Predictor(
            title=f"model_id {arguments.model_id}",
            architecture=summary,
            program=program_of(architecture, summary),
            state=weights_of(relations[0], arguments.model_id),
            outputs=outputs(arguments, summary),
            normalizing_const=constant,
            backend=backend,
        )
        write(workplace, output, predictor, asked, bool(arguments.use_gpus))


def _check_arguments(arguments: ByomArguments) -> tuple[float, str]:
    """The normalizing constant and the framework, checked."""
    backend = arguments.backend or frameworks.BACKENDS[0]
    if backend not in frameworks.BACKENDS:
        raise InvalidParameter(
            f"{MODULE} error: backend is {backend!r}; expected one of "
            f"{', '.join(frameworks.BACKENDS)}."
        )
    return check_constant(MODULE, arguments.normalizing_const), backend


def weighted_architecture(
    module: str, workplace: CallContext, table: Relation, model_id: int | None
) -> object:
    """A network that was loaded with its weights."""
    rows = workplace.reader.run(sql("read.architectures", table=table.quoted), ([model_id],))
    if not rows:
        raise UndefinedObject(
            f"{module} error: no model arch found in table {table.spelling} with id"
            f" {'NULL' if model_id is None else model_id}",
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


def program_of(architecture: object, summary: Architecture) -> dict[str, Any]:
    """A program that does no more than to give the outputs of a network."""
    targets = [{"kind": "float"} for _ in summary.output_units]
    return {
        "architecture": architecture,
        "compile": COMPILE,
        "targets": targets,
        "dtype_policy": None,
    }


def weights_of(table: Relation, model_id: int | None) -> StateSource:
    """Those of an architecture table."""
    text = sql("visit.weights_source", table=table.quoted)
    return StateSource("weights", f"{table.oid}/{model_id}", 0, text, (model_id,))


def outputs(arguments: ByomArguments, summary: Architecture) -> tuple[Output, ...]:
    """What is told of each output of the model, under the names that MADlib gives where there are
    no columns.
    """
    count = len(summary.output_units)
    if arguments.dependent_count not in (None, count):
        raise InvalidParameter(
            f"{MODULE} error: dependent_count is {arguments.dependent_count}, but model_id "
            f"{arguments.model_id} has {format_count(summary.output_units, 'output')}: "
            f"{', '.join(summary.output_names)}.",
            hint=f"Pass dependent_count => {count}.",
        )
    rows: Sequence[Row | None] = (
        [None] * count if arguments.class_values is None else by_output(arguments.class_values)
    )
    if len(rows) != count:
        raise _mismatch(
            f"class_values is for {format_count(rows, 'output')}, but the model has {count}."
        )
    names = (
        ["dependent_var"] if count == 1 else [f"dependent_var_{number}" for number in range(count)]
    )
    return tuple(
        Output(name, labels(row, units, name))
        for name, row, units in zip(names, rows, summary.output_units)
    )


def by_output(class_values: Sequence[Any]) -> Sequence[Row]:
    """The class values of each output: an array of one dimension is for one output, the rows of
    another for several.
    """
    deep = [
        isinstance(row, list) and any(isinstance(value, list) for value in row)
        for row in class_values
    ]
    if any(deep):
        raise InvalidParameter(f"{MODULE} error: class_values has more than two dimensions.")
    return class_values if any(isinstance(row, list) for row in class_values) else [class_values]


def labels(row: Row | None, units: int | None, name: str) -> Labels:
    """The class values of an output of so many units; None, and so their places, where there are
    none.

    NULLs at the end fill up a row, or stand for classes that only pad, as in
    `<dependent>_class_values`.

    >>> labels(["a", "b", None], 2, "y"), labels([None, "a"], 2, "y"), labels(["no", "yes"], 1, "y")
    (('a', 'b'), (None, 'a'), ('no', 'yes'))
    """
    if row is None or all(value is None for value in row):
        return None
    found = strip_padding(list(row))
    binary = units == 1 and len(found) == 2
    if units is None or binary or len(found) <= units <= len(row):
        return found
    raise _mismatch(
        f"{name} has {units} units, but {len(row)} class values: "
        f"{', '.join(map(str, found[:100]))}."
    )


def _mismatch(detail: str) -> InvalidParameter:
    return InvalidParameter(
        f"{MODULE}: The number of class values do not match the provided architecture.",
        detail=detail,
        hint="Give a value for each unit of the last layer (two for a single unit); for several "
        "outputs a row for each, filled up with NULL.",
    )
