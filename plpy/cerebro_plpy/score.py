"""Evaluate: a trained model over a packed table; and what `predict` shares with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cerebro_plpy import resources, settings
from cerebro_plpy.architecture import check_architecture
from cerebro_plpy.catalog import Catalog
from cerebro_plpy.checks import check_transaction
from cerebro_plpy.compatibility import check_input, check_output
from cerebro_plpy.db import Database
from cerebro_plpy.dispatch import drive
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.packed import read_packed
from cerebro_plpy.platform import Dataset, Worker
from cerebro_plpy.platform_postgres import PostgresPlatform
from cerebro_plpy.queries import sql
from cerebro_plpy.records import PackedTable, Relation
from cerebro_plpy.trained import TrainedModel, read_model
from cerebro_plpy.workplace import Workplace, opened


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
        model = read_model(catalog, place.reader, relations[0], given.mst_key)
        test = read_packed(catalog, place.reader, given.test_table, "test")
        _check_test(catalog, model, test)
        found = _measure(place, model, test, bool(given.use_gpus))
    db.rows(sql("score.evaluation", output=output.quoted))
    metric = found["metrics"][0] if found["metrics"] else None
    names = list(model.compile.metrics_given) or None
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
    """Loss and metrics, segment after segment."""
    worker, platform = one_worker(place, model.backend, gpu)
    program = model.program(test.targets())
    job = {"job": "evaluate", "program": program, "result_key": model.state().key}
    sums: list[list[float]] = []
    rows = 0
    for segment in test.segments:
        dataset = Dataset(test, segment)
        part = drive(worker.session, platform.measure(worker, (dataset,), model.state(), job))[dataset.key]
        rows += part["rows"]
        before = sums or [[0.0] * len(v) for v in part["sums"]]
        sums = [[a + b for a, b in zip(x, y)] for x, y in zip(before, part["sums"])]
    request = {"program": program, "sums": {"test": sums}, "rows": {"test": rows}}
    return dict(drive(worker.session, platform.results(worker, request))["test"])


def one_worker(place: Workplace, framework: str, gpu: bool) -> tuple[Worker, PostgresPlatform]:
    """A worker that does all, with its platform."""
    worker = place.workers(1, (framework,))[0]
    cache = settings.cache_bytes(place.settings, 1)
    # As many threads as in a fit of the usual size, so that its trainers can be used again.
    request = settings.TrainerRequest(
        trainers=1 if place.local else resources.parallel_trainers(),
        gpu=settings.device_of(settings.devices(place.settings, gpu), 0),
    )
    return worker, PostgresPlatform((request,), cache, place.db.info)


def _check_test(catalog: Catalog, model: TrainedModel, test: PackedTable) -> None:
    summary = check_architecture(model.architecture)
    check_input(f"mst_key {model.mst_key}", summary, test.input_shapes[0], (test.independent[0], test.relation.given))
    check_output(f"mst_key {model.mst_key}", summary, test, model.compile)
    if model.class_values is not None and test.class_values[0] != model.class_values:
        raise InvalidParameter(
            f"{catalog.module} error: table '{test.relation.given}' has other classes than the model was trained on.",
            detail=f"{test.class_values[0]} against {model.class_values}.",
            hint="Pack it with validation_preprocessor_dl() against the training table.",
        )
