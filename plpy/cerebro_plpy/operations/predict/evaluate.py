"""Evaluate: a trained model over a packed table; and what `predict` shares with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cerebro_plpy.configs.architecture.architecture import check_architecture
from cerebro_plpy.configs.params import output_losses
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Steps, drive
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.operations.predict.scoring_arguments import ScoreArguments, begin
from cerebro_plpy.packing.packed_table import PackedTable, read_packed, resolve_packed
from cerebro_plpy.platform.call_context import CallContext, open_context
from cerebro_plpy.platform.job import Dataset, Job, Sums
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.run.state.config_state import add_parts
from cerebro_plpy.run.workers.workers import Crew, crew_for, score, together
from cerebro_plpy.tables.compatibility import (
    check_classes,
    check_inputs,
    check_order,
    check_targets,
    get_input_columns,
)
from cerebro_plpy.tables.models.trained_model import TrainedModel, load_functions, read_model


def evaluate(db: Database, gd: dict[str, Any], arguments: ScoreArguments) -> None:
    """Make a table of one row with loss and metric of a model over a packed table."""
    catalog, tables = begin(db, "madlib_keras_evaluate", arguments)
    output = catalog.reserve_output(arguments.output_table)
    with open_context(db, gd, tables.relations, None) as workplace:
        model = load_functions(
            catalog, read_model(catalog, workplace.reader, tables.model, arguments.mst_key)
        )
        test = read_packed(catalog, workplace.reader, resolve_packed(catalog, tables.test, "test"))
        _check_test(catalog, model, test)
        found = score(
            workplace,
            lambda: crew_for(workplace, model.backend, bool(arguments.use_gpus), test.segments),
            lambda crew: _measure(workplace, crew, model, test),
            again=not model.find_state().sealed,
        )
    db.rows(sql("score.evaluation", output=output.quoted, **db.platform.clauses))
    metric = found["metrics"][0] if found["metrics"] else None
    outputs = check_architecture(model.architecture).output_names
    names = output_losses.order_metrics(model.compile.metrics_as_written, outputs) or None
    db.rows(
        sql("score.add_evaluation", output=output.quoted),
        found["loss"],
        metric,
        names,
        model.compile.loss_text,
    )


def _measure(
    workplace: CallContext, crew: Crew, model: TrainedModel, test: PackedTable
) -> dict[str, Any]:
    """Loss and metrics from those of the segments, added up in the order of these."""
    program = model.describe_program(test.targets())
    job = Job("evaluate", program, model.find_state().key)
    parts: dict[str, dict[str, Any]] = {}
    shares = [test.segments[worker.number :: len(crew.workers)] for worker in crew.workers]
    steps = [
        _parts(crew, w, [Dataset(test, s) for s in share], model, job)
        for w, share in zip(crew.workers, shares)
    ]
    for _, found in together(workplace, crew, steps):
        parts.update(found or {})
    in_order = ({"test": parts[Dataset(test, segment).key]} for segment in test.segments)
    total, worker = add_parts(in_order), crew.workers[0]
    return dict(
        drive(
            worker.session,
            crew.visits.compute_metrics(worker, Sums(program, total["sums"], total["rows"])),
        )["test"]
    )


def _parts(
    crew: Crew, worker: Worker, share: Sequence[Dataset], model: TrainedModel, job: Job
) -> Steps[dict[str, dict[str, Any]]]:
    """Rows and sums of a worker's segments, one after another."""
    parts: dict[str, dict[str, Any]] = {}
    for dataset in share:
        parts.update((yield from crew.visits.measure(worker, (dataset,), model.find_state(), job)))
    return parts


def _check_test(catalog: Catalog, model: TrainedModel, test: PackedTable) -> None:
    summary = check_architecture(model.architecture)
    check_order(
        catalog,
        model.independent,
        test.independent,
        f"the inputs in table '{test.relation.spelling}'",
    )
    check_order(
        catalog, model.dependent, test.dependent, f"the targets in table '{test.relation.spelling}'"
    )
    check_inputs(model.title, summary, get_input_columns(test))
    check_targets(model.title, summary, test, model.compile)
    check_classes(catalog, test, model.class_values, "the model was trained on")
