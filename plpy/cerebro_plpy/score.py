"""Evaluate and predict: a trained model over a packed table, or over raw rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, Union

from cerebro_plpy import resources, settings
from cerebro_plpy.architecture import check_architecture
from cerebro_plpy.catalog import Catalog
from cerebro_plpy.columns import IMAGE, Column, as_input
from cerebro_plpy.compatibility import check_input, check_output
from cerebro_plpy.db import Database, Row
from cerebro_plpy.dispatch import Session, Statement, drive
from cerebro_plpy.errors import DatatypeMismatch, InvalidParameter, NullNotAllowed, UndefinedColumn
from cerebro_plpy.names import quote_identifier, split_columns
from cerebro_plpy.packed import read_packed
from cerebro_plpy.platform import Dataset, Worker
from cerebro_plpy.platform_postgres import PostgresPlatform, job_result
from cerebro_plpy.queries import sql
from cerebro_plpy.records import PackedTable, Relation
from cerebro_plpy.trained import TrainedModel, read_model
from cerebro_plpy.workplace import Workplace, check_transaction, opened

PredType = Union[str, int, float, None]
BLOCK_ELEMENTS = 2 << 20  # numbers in a block of rows: 16 MB on their way to the trainer


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
    catalog, output, relations = _begin(db, "madlib_keras_evaluate", given)
    with opened(db, session, relations, None) as place:
        model = read_model(catalog, place.reader, relations[0], given.mst_key)
        test = read_packed(catalog, place.reader, given.test_table, "test")
        _check_test(catalog, model, test)
        found = _measure(place, model, test, bool(given.use_gpus))
    db.rows(sql("score.evaluation", output=output.quoted))
    metric = found["metrics"][0] if found["metrics"] else None
    names = list(model.compile.metrics_given) or None
    db.rows(sql("score.add_evaluation", output=output.quoted), found["loss"], metric, names, model.compile.loss_given)


def _begin(db: Database, module: str, given: ScoreArguments) -> tuple[Catalog, Relation, list[Relation]]:
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
    worker, platform = _worker(place, gpu, len(test.segments))
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


def _worker(place: Workplace, gpu: bool, partitions: int) -> tuple[Worker, PostgresPlatform]:
    worker = place.workers(1)[0]
    cache = settings.cache_bytes(place.settings, 1, partitions)
    # As many threads as in a fit of the usual size, so that its trainers can be used again.
    request = settings.TrainerRequest(
        trainers=1 if place.local else resources.parallel_trainers(),
        gpu=settings.device_of(settings.devices(place.settings, gpu), 0),
    )
    return worker, PostgresPlatform((request,), cache)


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


def predict(
    db: Database,
    session: dict[str, Any],
    given: ScoreArguments,
    columns: tuple[str | None, str | None],
    pred_type: PredType,
) -> None:
    """Make a table of predictions; `columns` are the id column and the input column."""
    catalog, output, relations = _begin(db, "madlib_keras_predict", given)
    want = wanted(catalog.module, pred_type)
    id_column = _column(catalog, relations[1], columns[0], "id column")
    input_column = _column(catalog, relations[1], columns[1], "independent_varname")
    sent = as_input(input_column)
    if sent is None:
        raise DatatypeMismatch(
            f"{catalog.module} error: independent column '{input_column['name']}' is of type {input_column['type']};"
            " expected an array of numbers, a number, or an image (bytea)."
        )
    with opened(db, session, relations, None) as place:
        model = read_model(catalog, place.reader, relations[0], given.mst_key)
        shape = _row_shape(place.reader, relations[1], sent)
        if shape is not None:
            summary = check_architecture(model.architecture)
            check_input(f"mst_key {model.mst_key}", summary, shape, (input_column["name"], relations[1].given))
        labels = _labels(model)
        _create_predictions(db, output, id_column, want)
        block = max(1, BLOCK_ELEMENTS // max(1, prod(shape or _known_shape(model))))
        for row in _blocks(place, model, relations[1], (id_column, sent), (want, block), bool(given.use_gpus)):
            _insert(db, output, id_column, model, labels, want, row)


def wanted(module: str, pred_type: PredType) -> dict[str, object]:
    """What the trainer is asked for, from pred_type.

    >>> wanted("m", 2)
    {'kind': 'top', 'n': 2}
    """
    if pred_type is None or (isinstance(pred_type, str) and pred_type.lower() in ("prob", "response")):
        return {"kind": "prob" if pred_type is None else str(pred_type).lower()}
    if isinstance(pred_type, int) and pred_type >= 1:
        return {"kind": "top", "n": pred_type}
    if isinstance(pred_type, float) and 0.0 <= pred_type < 1.0:
        return {"kind": "threshold", "threshold": pred_type}
    raise InvalidParameter(
        f"{module}: Invalid value for pred_type param ({pred_type}). Must be integer>0, double precision in the range"
        " [0.0,1.0), 'response' or 'prob'."
    )


def _column(catalog: Catalog, table: Relation, given: str | None, what: str) -> Row:
    if given is None or not given.strip():
        raise NullNotAllowed(f"{catalog.module} error: {what} is NULL or empty; expected the name of a column.")
    names = split_columns(given)
    columns = catalog.columns(table)
    if len(names) != 1 or names[0] not in columns:
        raise UndefinedColumn(
            f"{catalog.module} error: invalid {what} ('{given}') for test table ({table.given}).",
            hint=f"Its columns are: {', '.join(columns)}.",
        )
    return columns[names[0]]


def _labels(model: TrainedModel) -> list[str | None]:
    """The class values of the output, by position."""
    if model.class_values is not None:
        return list(model.class_values)
    units = check_architecture(model.architecture).output_units[0]
    return [None] if model.float_target and units == 1 else [str(i) for i in range(units or 1)]


def _blocks(
    place: Workplace, model: TrainedModel, table: Relation, columns: tuple[Row, Column],
    how: tuple[dict[str, object], int], gpu: bool,
) -> Iterator[tuple[str, dict[str, str]]]:  # fmt: skip
    """Per block of rows: the identifiers as an array literal, and the predictions.

    `how` says which classes are wanted, and how many rows make a block.
    """
    want, block = how
    worker, platform = _worker(place, gpu, 1)
    classes = 0 if model.float_target else len(_labels(model))
    width = max(classes, check_architecture(model.architecture).output_units[0] or 0)  # more where classes were padded
    identifier, sent = columns
    array = {"kind": sent.kind, "column": sent.name, "divide": model.normalizing_const}
    spec = {"arrays": [array], "want": want, "classes": classes}
    names = {"id": quote_identifier(identifier["name"]), "input": _as_array(sent), "table": table.quoted}
    text = sql("score.declare", **names, block=str(block))
    program = model.program(model.targets(width))
    job = {"job": "predict", "program": program, "result_key": model.state().key, "datasets": []}
    drive(worker.session, platform.predict(worker, model.state(), job, Statement(text, (json.dumps(spec),))))
    while rows := worker.session.run(sql("score.fetch")):
        yield rows[0][0], job_result([rows[0][1:]])
    worker.session.run(sql("score.close"))
    worker.session.run(sql("visit.job_finish"))


def _as_array(column: Column) -> str:
    return column.array(f"t.{quote_identifier(column.name)}")


def _known_shape(model: TrainedModel) -> tuple[int, ...]:
    """The shape of the model's input as far as its architecture tells."""
    return tuple(size or 1 for size in check_architecture(model.architecture).input_shapes[0])


def _row_shape(reader: Session, table: Relation, column: Column) -> tuple[int, ...] | None:
    """The shape of the input in the first row; None for an image, and where there is no row, or it is NULL or empty."""
    if column.kind == IMAGE:
        return None
    rows = reader.run(sql("score.shape", table=table.quoted, input=_as_array(column)))
    return tuple(rows[0][0]) if rows and rows[0][0] else None


def _create_predictions(db: Database, output: Relation, id_column: Row, want: dict[str, object]) -> None:
    db.rows(sql(
        "score.predictions", output=output.quoted, id=quote_identifier(id_column["name"]), id_type=id_column["type"],
        rank="" if want["kind"] == "response" else ", rank integer",
    ))  # fmt: skip


def _insert(
    db: Database,
    output: Relation,
    id_column: Row,
    model: TrainedModel,
    labels: list[str | None],
    want: dict[str, object],
    row: tuple[str, dict[str, str]],
) -> None:
    text = sql(
        "score.add_predictions",
        output=output.quoted,
        id_type=id_column["type"],
        rank="" if want["kind"] == "response" else ", p.rank",
    )
    ids, found = row
    db.rows(text, ids, model.dependent[0], labels, found["row"], found["class"], found["value"], found["rank"])
