"""`madlib_keras_predict`: predict the rows of any table or view with a trained model."""

from __future__ import annotations

from cerebro_plpy.configs.architecture.architecture import Architecture, check_architecture
from cerebro_plpy.database.sessions.spi import Database, Globals
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.operations.predict.prediction_output import (
    ColumnNames,
    Output,
    PredictingModel,
    PredType,
    parse_request,
    write_predictions,
)
from cerebro_plpy.operations.predict.scoring_arguments import ScoreArguments, resolve_arguments
from cerebro_plpy.platform.call_context import open_context
from cerebro_plpy.tables.compatibility import check_order
from cerebro_plpy.tables.models.trained_model import TrainedModel, read_model, remove_functions
from cerebro_plpy.trainer_client.request_schema import describe_target


def predict(
    db: Database,
    gd: Globals,
    arguments: ScoreArguments,
    columns: ColumnNames,
    pred_type: PredType,
) -> None:
    """Create a table of predictions.

    Args:
        columns: the id column and the list of inputs.
    """
    catalog, tables = resolve_arguments(db, "madlib_keras_predict", arguments)
    request = parse_request(catalog, tables.test, columns, pred_type)
    output = catalog.reserve_output(arguments.output_table)
    with open_context(db, gd, tables.relations, None) as context:
        model = read_model(catalog, context.reader, tables.model, arguments.mst_key)
        model = remove_functions(model)
        inputs = [column.name for column in request.inputs]
        check_order(catalog, model.independent, inputs, "the inputs")
        write_predictions(
            context, output, make_predicting_model(model), request, bool(arguments.use_gpus)
        )


def make_predicting_model(model: TrainedModel) -> PredictingModel:
    """Describe a trained model for predictions."""
    architecture = check_architecture(model.architecture)
    targets = [
        _describe_target(model, number, units)
        for number, units in enumerate(architecture.output_units)
    ]
    return PredictingModel(
        title=model.title,
        architecture=architecture,
        program=model.describe_program(targets),
        state=model.find_state(),
        outputs=_list_outputs(model, architecture),
        normalizing_const=model.normalizing_const,
        backend=model.backend,
    )


def _describe_target(model: TrainedModel, number: int, units: int | None) -> JsonObject:
    """Describe a target as in training, so that a trainer may have the program in its cache.

    Padding classes are counted.
    """
    classes = max(len(model.class_values[number] or ()), units or 0)
    return describe_target(classes, model.float_targets[number])


def _list_outputs(model: TrainedModel, architecture: Architecture) -> tuple[Output, ...]:
    """Return the outputs: a single float has no label, and one-hot classes have their positions."""
    outputs = []
    for name, values, is_float, units in zip(
        model.dependent, model.class_values, model.float_targets, architecture.output_units
    ):
        if is_float and units == 1:
            values = (None,)
        outputs.append(Output(name, values, is_float))
    return tuple(outputs)
