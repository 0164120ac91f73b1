"""Predict: a trained model over the rows of any table or view, into a table that the caller's transaction makes.

A worker reads the rows and passes them through its trainer; meanwhile the caller's session writes what came before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, Union

from cerebro_plpy.architecture import check_architecture
from cerebro_plpy.catalog import Catalog
from cerebro_plpy.columns import IMAGE, Column, as_input
from cerebro_plpy.compatibility import check_input
from cerebro_plpy.db import Database, Row
from cerebro_plpy.dispatch import Session, awaited
from cerebro_plpy.errors import DatatypeMismatch, InvalidParameter, NullNotAllowed, UndefinedColumn
from cerebro_plpy.names import quote_identifier, split_columns
from cerebro_plpy.platform import RawRows
from cerebro_plpy.queries import sql
from cerebro_plpy.records import Relation
from cerebro_plpy.score import ScoreArguments, begin, crew_for, together
from cerebro_plpy.statements import job_result
from cerebro_plpy.trained import TrainedModel, predictable, read_model
from cerebro_plpy.workplace import Workplace, opened

PredType = Union[str, int, float, None]
# Numbers that go into a block of rows or come out of it, and rows: what is on its way is a few MB.
BLOCK_ELEMENTS, BLOCK_ROWS = 1 << 20, 10_000


def predict(
    db: Database,
    session: dict[str, Any],
    given: ScoreArguments,
    columns: tuple[str | None, str | None],
    pred_type: PredType,
) -> None:
    """Make a table of predictions; `columns` are the id column and the input column."""
    catalog, output, relations = begin(db, "madlib_keras_predict", given)
    want = wanted(catalog.module, pred_type)
    id_column = _column(catalog, relations[1], columns[0], "id column")
    input_column = _column(catalog, relations[1], columns[1], "independent_varname")
    sent = _input(catalog, input_column)
    with opened(db, session, relations, None) as place:
        model = predictable(read_model(catalog, place.reader, relations[0], given.mst_key))
        shape = _row_shape(place.reader, relations[1], sent)
        if shape is not None:
            summary = check_architecture(model.architecture)
            check_input(f"mst_key {model.mst_key}", summary, shape, (input_column["name"], relations[1].given))
        labels = _labels(model)
        _create_predictions(db, output, id_column, want)
        elements = max(prod(shape or _known_shape(model)), len(labels))
        block = min(BLOCK_ROWS, max(1, BLOCK_ELEMENTS // max(1, elements)))
        blocks = _blocks(place, model, relations[1], (id_column, sent), (want, block), bool(given.use_gpus))
        with db.configured(enable_nestloop="off"):  # whatever the planner expects of the arrays of a block
            for row in blocks:
                _insert(db, output, id_column, model, labels, want, row)


def _input(catalog: Catalog, found: Row) -> Column:
    """How a column of the catalog is sent as the input."""
    sent = as_input(found)
    if sent is None:
        raise DatatypeMismatch(
            f"{catalog.module} error: independent column '{found['name']}' is of type {found['type']};"
            " expected an array of numbers, a number, or an image (bytea)."
        )
    return sent


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
    rows, segments = _rows(place, table, columns)
    crew = crew_for(place, model.backend, gpu, segments)
    classes = 0 if model.float_target else len(_labels(model))
    width = max(classes, check_architecture(model.architecture).output_units[0] or 0)  # more where classes were padded
    sent = columns[1]
    array = {"kind": sent.kind, "column": sent.name, "divide": model.normalizing_const}
    request = {"arrays": [array], "want": want, "classes": classes}
    asked = {"block": block, "request": request}
    job = {"job": "predict", "program": model.program(model.targets(width)), "result_key": model.state().key,
           "datasets": []}  # fmt: skip
    steps = [crew.platform.predict(worker, rows, model.state(), job, asked) for worker in crew.workers]
    for worker, declare in together(place, crew, steps):
        if declare is not None:
            yield from _fetched(place, worker.session, declare)
            finish = crew.platform.predicted(worker)
            worker.session.run(finish.sql, finish.values)


def _rows(place: Workplace, table: Relation, columns: tuple[Row, Column]) -> tuple[RawRows, Sequence[int]]:
    """How the rows are read; on Greenplum also the keys of the segments that predict."""
    identifier, sent = columns
    name, data = f"t.{quote_identifier(identifier['name'])}::text", sent.sent(f"t.{quote_identifier(sent.name)}")
    if not place.control.greenplum:
        return RawRows(table.quoted, name, data), ()
    places = {key: content for key, content, _ in place.control.run(sql("spread.segments"))}
    if place.control.run(sql("greenplum.lies_on_segments"), (table.oid,))[0][0]:
        return RawRows(table.quoted, name, data, places), list(places)
    return RawRows(table.quoted, name, data), list(places)[:1]


def _fetched(place: Workplace, session: Session, declare: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The blocks of a cursor: while the caller writes one, the worker reads and computes the next."""
    if not place.local:
        session.run(sql("score.begin"))
    session.run(declare)
    session.start(sql("score.fetch"))
    while rows := awaited(session, place.check):
        session.start(sql("score.fetch"))
        yield rows[0][0], job_result([rows[0][1:]])
    session.run(sql("score.close") if place.local else sql("score.commit"))


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
    arrays = (found["row"], found["class"], found["value"], found["rank"])
    db.rows(text, model.dependent[0], *arrays, ids, labels)
