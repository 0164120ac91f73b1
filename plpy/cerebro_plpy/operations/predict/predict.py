"""Predict: a trained model over the rows of any table or view."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.configs.architecture.architecture import Architecture, check_architecture
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.operations.predict.prediction_output import (
    Output,
    Predictor,
    PredType,
    question,
    write,
)
from cerebro_plpy.operations.predict.scoring_arguments import ScoreArguments, begin
from cerebro_plpy.platform.call_context import open_context
from cerebro_plpy.tables.compatibility import check_order
from cerebro_plpy.tables.models.trained_model import TrainedModel, read_model, remove_functions


def predict(
    db: Database,
    gd: dict[str, Any],
    arguments: ScoreArguments,
    columns: tuple[str | None, str | None],
    pred_type: PredType,
) -> None:
    """Make a table of predictions; `columns` are the id column and the list of inputs."""
    catalog, tables = begin(db, "madlib_keras_predict", arguments)
    asked = question(catalog, tables.test, columns, pred_type)
    output = catalog.reserve_output(arguments.output_table)
    with open_context(db, gd, tables.relations, None) as workplace:
        model = remove_functions(
            read_model(catalog, workplace.reader, tables.model, arguments.mst_key)
        )
        check_order(
            catalog, model.independent, [column.name for column in asked.inputs], "the inputs"
        )
        write(workplace, output, predictor(model), asked, bool(arguments.use_gpus))


def predictor(model: TrainedModel) -> Predictor:
    """A trained model as one that predicts."""
    summary = check_architecture(model.architecture)
    targets = [_target(model, number, units) for number, units in enumerate(summary.output_units)]
    return Predictor(
        title=model.title,
        architecture=summary,
        program=model.describe_program(targets),
        state=model.find_state(),
        outputs=_outputs(model, summary),
        normalizing_const=model.normalizing_const,
        backend=model.backend,
    )


def _target(model: TrainedModel, number: int, units: int | None) -> dict[str, Any]:
    """A target as it was in training, so that the trainer may have the program; classes that pad
    count.
    """
    classes = max(len(model.class_values[number] or ()), units or 0)
    return (
        {"kind": "float"}
        if model.float_targets[number] or not classes
        else {"kind": "onehot", "classes": classes}
    )


def _outputs(model: TrainedModel, summary: Architecture) -> tuple[Output, ...]:
    """What is told of each output: a single float has no label, and encoded classes have their
    places.
    """
    targets = zip(model.dependent, model.class_values, model.float_targets, summary.output_units)
    return tuple(
        Output(name, (None,) if is_float and units == 1 else values, is_float)
        for name, values, is_float, units in targets
    )
