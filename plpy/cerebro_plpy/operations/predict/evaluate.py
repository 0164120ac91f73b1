"""`madlib_keras_evaluate`: measure a trained model on a packed table."""

from __future__ import annotations

from collections.abc import Sequence

from cerebro_plpy.configs.architecture.architecture import check_architecture
from cerebro_plpy.configs.params import output_losses
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Steps, drive
from cerebro_plpy.database.sessions.spi import Database, Globals
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.operations.predict.scoring_arguments import ScoreArguments, resolve_arguments
from cerebro_plpy.packing.packed_table import PackedTable, read_packed, resolve_packed
from cerebro_plpy.platform.call_context import CallContext, open_context
from cerebro_plpy.platform.job import Dataset, Job, Sums
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.run.state.config_state import add_parts
from cerebro_plpy.run.workers.workers import (
    WorkerSet,
    open_scoring_workers,
    run_on_workers,
    score_with_retry,
)
from cerebro_plpy.tables.compatibility import (
    check_classes,
    check_inputs,
    check_order,
    check_targets,
    get_input_columns,
)
from cerebro_plpy.tables.models.trained_model import TrainedModel, load_functions, read_model


def evaluate(db: Database, gd: Globals, arguments: ScoreArguments) -> None:
    """Create a table of one row with the loss and the metric of a model on a packed table."""
    catalog, tables = resolve_arguments(db, "madlib_keras_evaluate", arguments)
    output = catalog.reserve_output(arguments.output_table)
    with open_context(db, gd, tables.relations, None) as context:
        model = read_model(catalog, context.reader, tables.model, arguments.mst_key)
        model = load_functions(catalog, model)
        test = read_packed(catalog, context.reader, resolve_packed(catalog, tables.test, "test"))
        _check_test_table(catalog, model, test)
        use_gpus = bool(arguments.use_gpus)
        metrics = score_with_retry(
            context,
            lambda: open_scoring_workers(context, model.backend, use_gpus, test.segments),
            lambda crew: _measure(context, crew, model, test),
            may_retry=not model.find_state().sealed,
        )
    db.rows(sql("score.evaluation", output=output.quoted, **db.platform.clauses))
    outputs = check_architecture(model.architecture).output_names
    names = output_losses.order_metrics(model.compile.metrics_as_written, outputs) or None
    db.rows(
        sql("score.add_evaluation", output=output.quoted),
        metrics["loss"],
        next(iter(metrics["metrics"]), None),
        names,
        model.compile.loss_text,
    )


def _measure(
    context: CallContext, crew: WorkerSet, model: TrainedModel, test: PackedTable
) -> JsonObject:
    """Compute loss and metrics from the sums of all segments, added in the segments' order."""
    program = model.describe_program(test.targets())
    job = Job("evaluate", program, model.find_state().key)
    steps = []
    for worker in crew.workers:
        segments = test.segments[worker.number :: len(crew.workers)]
        datasets = [Dataset(test, segment) for segment in segments]
        steps.append(_measure_datasets(crew, worker, datasets, model, job))
    parts: dict[str, JsonObject] = {}
    for _, measured in run_on_workers(context, crew, steps):
        parts.update(measured or {})
    ordered_parts = ({"test": parts[Dataset(test, segment).key]} for segment in test.segments)
    total = add_parts(ordered_parts)
    sums = Sums(program, total["sums"], total["rows"])
    worker = crew.workers[0]
    metrics = drive(worker.session, crew.visits.compute_metrics(worker, sums))
    return dict(metrics["test"])


def _measure_datasets(
    crew: WorkerSet, worker: Worker, datasets: Sequence[Dataset], model: TrainedModel, job: Job
) -> Steps[dict[str, JsonObject]]:
    """Measure the datasets of a worker in sequence; return rows and sums by dataset."""
    parts: dict[str, JsonObject] = {}
    for dataset in datasets:
        measured = yield from crew.visits.measure(worker, (dataset,), model.find_state(), job)
        parts.update(measured)
    return parts


def _check_test_table(catalog: Catalog, model: TrainedModel, test: PackedTable) -> None:
    architecture = check_architecture(model.architecture)
    table = f"in table '{test.relation.spelling}'"
    check_order(catalog, model.independent, test.independent, f"the inputs {table}")
    check_order(catalog, model.dependent, test.dependent, f"the targets {table}")
    check_inputs(model.title, architecture, get_input_columns(test))
    check_targets(model.title, architecture, test, model.compile)
    check_classes(catalog, test, model.class_values, "the model was trained on")
