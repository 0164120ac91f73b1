"""Evaluate: a trained model over a packed table; and what `predict` shares with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from cerebro_plpy import crews, per_output, resources, settings
from cerebro_plpy.architecture import check_architecture
from cerebro_plpy.catalog import Catalog
from cerebro_plpy.checks import check_transaction
from cerebro_plpy.compatibility import check_inputs, check_order, check_targets
from cerebro_plpy.crews import Crew
from cerebro_plpy.db import Database
from cerebro_plpy.dispatch import Dispatcher, Steps, drive
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.packed import read_packed
from cerebro_plpy.platform import Dataset, Worker
from cerebro_plpy.platform_postgres import PostgresPlatform
from cerebro_plpy.queries import sql
from cerebro_plpy.records import PackedTable, Relation
from cerebro_plpy.standing import added
from cerebro_plpy.trained import TrainedModel, measurable, read_model
from cerebro_plpy.workplace import Workplace, opened

T = TypeVar("T")


@dataclass(frozen=True)
class ScoreArguments:
    """What evaluate and predict have in common."""

    model_table: str | None
    test_table: str | None
    output_table: str | None
    use_gpus: bool | None
    mst_key: int | None


def evaluate(db: Database, session: dict[str, Any], given: ScoreArguments) -> None:
    """Make a table of one row with loss and metric of a model over a packed table."""
    catalog, output, relations = begin(db, "madlib_keras_evaluate", given)
    with opened(db, session, relations, None) as place:
        model = measurable(catalog, read_model(catalog, place.reader, relations[0], given.mst_key))
        test = read_packed(catalog, place.reader, given.test_table, "test")
        _check_test(catalog, model, test)
        found = _measure(place, model, test, bool(given.use_gpus))
    db.rows(sql("score.evaluation", output=output.quoted))
    metric = found["metrics"][0] if found["metrics"] else None
    outputs = check_architecture(model.architecture).output_names
    names = per_output.in_order(model.compile.metrics_given, outputs) or None
    db.rows(sql("score.add_evaluation", output=output.quoted), found["loss"], metric, names, model.compile.loss_given)


def begin(db: Database, module: str, given: ScoreArguments) -> tuple[Catalog, Relation, list[Relation]]:
    """Check what needs no other session; the tables that will be read, the model table first."""
    check_transaction(db, module)
    catalog = Catalog(db, module)
    settings.devices(settings.read(db), given.use_gpus)
    output = catalog.output(given.output_table)
    relations = [catalog.relation(given.model_table, "model"), catalog.relation(given.test_table, "test")]
    companions = [catalog.companion(r, suffix) for r in relations for suffix in ("_info", "_summary", "_state")]
    return catalog, output, relations + [c for c in companions if c]


def _measure(place: Workplace, model: TrainedModel, test: PackedTable, gpu: bool) -> dict[str, Any]:
    """Loss and metrics from those of the segments, added up in the order of these."""
    crew = crew_for(place, model.backend, gpu, test.segments)
    program = model.program(test.targets())
    job = {"job": "evaluate", "program": program, "result_key": model.state().key}
    parts: dict[str, dict[str, Any]] = {}
    shares = [test.segments[worker.number :: len(crew.workers)] for worker in crew.workers]
    steps = [_parts(crew, w, [Dataset(test, s) for s in share], model, job) for w, share in zip(crew.workers, shares)]
    for _, found in together(place, crew, steps):
        parts.update(found or {})
    in_order = ({"test": parts[Dataset(test, segment).key]} for segment in test.segments)
    request = {"program": program, **added(in_order)}
    worker = crew.workers[0]
    return dict(drive(worker.session, crew.platform.results(worker, request))["test"])


def _parts(
    crew: Crew, worker: Worker, share: Sequence[Dataset], model: TrainedModel, job: dict[str, Any]
) -> Steps[dict[str, dict[str, Any]]]:
    """Rows and sums of a worker's segments, one after another."""
    parts: dict[str, dict[str, Any]] = {}
    for dataset in share:
        parts.update((yield from crew.platform.measure(worker, (dataset,), model.state(), job)))
    return parts


def together(place: Workplace, crew: Crew, steps: Sequence[Steps[T]]) -> Iterator[tuple[Worker, T | None]]:
    """What the steps of each worker come to, as they end; the first error ends it."""
    dispatcher: Dispatcher[T] = Dispatcher(place.check)
    for index, (worker, its) in enumerate(zip(crew.workers, steps)):
        dispatcher.begin(index, worker.session, its)
    while dispatcher.busy():
        for outcome in dispatcher.wait():
            if outcome.error is not None:
                raise outcome.error
            yield crew.workers[outcome.worker], outcome.value


def crew_for(place: Workplace, framework: str, gpu: bool, segments: Sequence[int]) -> Crew:
    """On Greenplum a worker for each of these segments; elsewhere one that does all."""
    if place.control.greenplum:
        workers = place.workers(len(segments), (framework,), segments)
        return Crew(workers, crews.platform_of(place, workers, settings.devices(place.settings, gpu), None))
    worker = place.workers(1, (framework,))[0]
    cache = settings.cache_bytes(place.settings, 1)
    # As many threads as in a fit of the usual size, so that its trainers can be used again.
    request = settings.TrainerRequest(
        trainers=1 if place.local else resources.parallel_trainers(),
        gpu=settings.device_of(settings.devices(place.settings, gpu), 0),
    )
    return Crew([worker], PostgresPlatform((request,), cache, place.db.info))


def _check_test(catalog: Catalog, model: TrainedModel, test: PackedTable) -> None:
    summary = check_architecture(model.architecture)
    check_order(catalog, model.independent, test.independent, f"the inputs in table '{test.relation.given}'")
    check_order(catalog, model.dependent, test.dependent, f"the targets in table '{test.relation.given}'")
    check_inputs(model.title, summary, test.input_shapes, (test.independent, test.relation.given))
    check_targets(model.title, summary, test, model.compile)
    for known, found in zip(model.class_values, test.class_values):
        if known is not None and found != known:
            raise InvalidParameter(
                f"{catalog.module} error: table '{test.relation.given}' has other classes than the model was trained"
                " on.",
                detail=f"{found} against {known}.",
                hint="Pack it with validation_preprocessor_dl() against the training table.",
            )
