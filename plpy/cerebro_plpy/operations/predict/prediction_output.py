"""Predictions with any model for the rows of any table or view, written into a new table.

A worker reads the rows and passes them through its trainer. Meanwhile the caller's session writes
the previous predictions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Optional, Union

from cerebro_plpy.configs.architecture.architecture import Architecture
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session, await_rows
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.sql.identifiers import quote_identifier, split_columns
from cerebro_plpy.database.sql.spelling import suggest_columns
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.errors import (
    DatatypeMismatch,
    InvalidName,
    InvalidParameter,
    NullNotAllowed,
    UndefinedColumn,
)
from cerebro_plpy.packing.packed_columns import (
    IMAGE,
    Column,
    make_input_column,
    suggest_numeric_view,
)
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.platform.job import Job, RawRows, StateSource
from cerebro_plpy.platform.statements import parse_result
from cerebro_plpy.records import dataclass
from cerebro_plpy.run.workers.workers import (
    WorkerSet,
    open_scoring_workers,
    run_on_workers,
    score_with_retry,
)
from cerebro_plpy.tables.compatibility import InputColumns, check_inputs

PredType = Union[str, int, float, None]
ColumnNames = tuple[Optional[str], Optional[str]]
"""The id column and the list of inputs, None for NULL."""
Labels = Optional[tuple[Optional[str], ...]]
Block = tuple[str, dict[str, str]]
"""The ids of some rows as a JSON array, and arrays of predictions as texts, by name."""
BLOCK_ROWS = 10_000
BLOCK_ELEMENTS = 1 << 20
"""Numbers in the inputs or the outputs of a block, so that a block takes a few MB."""


@dataclass(frozen=True)
class Output:
    """An output of a model; all values of a float output are predicted, without a ranking."""

    name: str
    labels: Labels  # class values by position; None if the position is the label
    is_float: bool = False

    @property
    def classes(self) -> int | None:
        """Classes that the trainer reports: 0 for floats, None for all units of the output."""
        if self.is_float:
            return 0
        if self.labels is None:
            return None
        return len(self.labels)


@dataclass(frozen=True)
class PredictingModel:
    """A model that can predict."""

    title: str  # its name in messages
    architecture: Architecture
    program: JsonObject  # described as a trainer needs it
    state: StateSource
    outputs: tuple[Output, ...]
    normalizing_const: float
    backend: str


@dataclass(frozen=True)
class PredictionRequest:
    """The rows to predict and the predictions to report."""

    table: Relation
    id_column: Row
    inputs: tuple[Column, ...]
    want: dict[str, object]  # see `parse_pred_type`

    def make_rank(self, text: str) -> str:
        """Return a text about ranks for a statement; '' if one class of each row is reported."""
        if self.want["kind"] == "response":
            return ""
        return text


def parse_request(
    catalog: Catalog, table: Relation, columns: ColumnNames, pred_type: PredType
) -> PredictionRequest:
    """Check the arguments of a call.

    Args:
        columns: the id column and the list of inputs.
    """
    want = parse_pred_type(catalog.module, pred_type)
    id_columns = _find_columns(catalog, table, columns[0], "id column")
    if len(id_columns) != 1:
        raise _make_column_error(catalog, table, columns[0], "id column")
    input_columns = _find_columns(catalog, table, columns[1], "independent_varname")
    inputs = tuple(_make_input(catalog, table, column) for column in input_columns)
    return PredictionRequest(table, id_columns[0], inputs, want)


def parse_pred_type(module: str, pred_type: PredType) -> dict[str, object]:
    """Return the predictions that a trainer reports, from pred_type.

    >>> parse_pred_type("m", 2)
    {'kind': 'top', 'n': 2}
    """
    if pred_type is None:
        return {"kind": "prob"}
    if isinstance(pred_type, str) and pred_type.lower() in ("prob", "response"):
        return {"kind": pred_type.lower()}
    if isinstance(pred_type, int) and pred_type >= 1:
        return {"kind": "top", "n": pred_type}
    if isinstance(pred_type, float) and 0.0 <= pred_type < 1.0:
        return {"kind": "threshold", "threshold": pred_type}
    raise InvalidParameter(
        f"{module}: Invalid value for pred_type param ({pred_type}). Must be integer>0, double "
        "precision in the range [0.0,1.0), 'response' or 'prob'."
    )


def _find_columns(catalog: Catalog, table: Relation, names: str | None, argument: str) -> list[Row]:
    if names is None or not names.strip():
        raise NullNotAllowed(
            f"{catalog.module} error: {argument} is NULL or empty; expected the name of a column."
        )
    columns = catalog.read_columns(table)
    try:
        return [columns[name] for name in split_columns(names)]
    except (KeyError, InvalidName) as error:
        raise _make_column_error(catalog, table, names, argument) from error


def _make_column_error(
    catalog: Catalog, table: Relation, names: str | None, argument: str
) -> UndefinedColumn:
    return UndefinedColumn(
        f"{catalog.module} error: invalid {argument} ('{names}') for test table "
        f"({table.spelling}).",
        hint=suggest_columns(argument, names or "", catalog.read_columns(table)),
    )


def _make_input(catalog: Catalog, table: Relation, column: Row) -> Column:
    """Return how a column of the catalog is sent as an input.

    Raises:
        DatatypeMismatch: the type of the column cannot be an input.
    """
    input_column = make_input_column(column)
    if input_column is None:
        raise DatatypeMismatch(
            f"{catalog.module} error: independent column '{column['name']}' is of type "
            f"{column['type']}; expected an array of numbers, a number, or an image (bytea).",
            hint=suggest_numeric_view(table, column).replace("Pack", "Predict from", 1),
        )
    return input_column


def write_predictions(
    context: CallContext,
    output: Relation,
    model: PredictingModel,
    request: PredictionRequest,
    use_gpus: bool,
) -> None:
    """Create a table of predictions."""
    db = context.db
    shapes = [_read_shape(context.reader, request.table, column) for column in request.inputs]
    names = [column.name for column in request.inputs]
    inputs = InputColumns(request.table.spelling, names, shapes)
    check_inputs(model.title, model.architecture, inputs)
    _create_table(db, output, request)
    trainer_request = _describe_request(model, request, _choose_block_rows(model, shapes))
    output_values = _list_output_values(model.outputs)
    rows = context.platform.raw_rows(context.control, request.table.oid, _make_raw_rows(request))

    def predict(crew: WorkerSet) -> None:
        # The planner cannot know how long the arrays of a block are.
        with db.atomic(enable_nestloop="off"):
            for block in _predict_blocks(context, crew, model, rows, trainer_request):
                _insert_block(db, output, request, block, output_values)

    score_with_retry(
        context,
        lambda: open_scoring_workers(context, model.backend, use_gpus, rows.segments),
        predict,
        may_retry=not model.state.sealed,
    )


def _choose_block_rows(model: PredictingModel, shapes: Sequence[tuple[int, ...] | None]) -> int:
    """Return the rows of a block, from the numbers in a row's inputs, outputs and classes."""
    input_elements = sum(
        prod(shape or [size or 1 for size in expected])
        for shape, expected in zip(shapes, model.architecture.input_shapes)
    )
    output_elements = sum(units or 1 for units in model.architecture.output_units)
    classes = sum(output.classes or 0 for output in model.outputs)
    elements = max(input_elements, output_elements, classes, 1)
    return min(BLOCK_ROWS, max(1, BLOCK_ELEMENTS // elements))


def _describe_request(
    model: PredictingModel, request: PredictionRequest, block_rows: int
) -> JsonObject:
    """Describe the blocks of rows and their predictions for a trainer."""
    arrays = [
        {"kind": column.kind, "column": column.name, "divide": model.normalizing_const}
        for column in request.inputs
    ]
    classes = [output.classes for output in model.outputs]
    fields = {"arrays": arrays, "want": request.want, "classes": classes}
    return {"block": block_rows, "request": fields}


def _predict_blocks(
    context: CallContext,
    crew: WorkerSet,
    model: PredictingModel,
    rows: RawRows,
    trainer_request: JsonObject,
) -> Iterator[Block]:
    """Yield the predictions of all workers."""
    job = Job("predict", model.program, model.state.key)
    steps = [
        crew.visits.predict(worker, rows, model.state, job, trainer_request)
        for worker in crew.workers
    ]
    for worker, declare in run_on_workers(context, crew, steps):
        if declare is not None:
            yield from fetch_blocks(context, worker.session, declare)
            finish = crew.visits.end_prediction(worker)
            worker.session.run(finish.sql, finish.values)


def _make_raw_rows(request: PredictionRequest) -> RawRows:
    """Return the SQL that reads the ids and the inputs of the rows."""
    id_text = f"t.{quote_identifier(request.id_column['name'])}::text"
    arrays = [column.bytes_sql(f"t.{quote_identifier(column.name)}") for column in request.inputs]
    return RawRows(request.table.quoted, id_text, f"ARRAY[{', '.join(arrays)}]")


def fetch_blocks(context: CallContext, session: Session, declare: str) -> Iterator[Block]:
    """Yield the blocks of a cursor; the worker computes the next one while the caller writes.

    Args:
        declare: the statement that declares the cursor.
    """
    end = "score.close"
    if not context.is_local:
        end = "session.commit"
        session.run(sql("session.begin", isolation="READ COMMITTED"))
    session.run(declare)
    session.start(sql("score.fetch"))
    while rows := await_rows(session, context.check):
        session.start(sql("score.fetch"))
        yield rows[0][0], parse_result([rows[0][1:]])
    session.run(sql(end))


def _read_shape(reader: Session, table: Relation, column: Column) -> tuple[int, ...] | None:
    """Return the shape of an input in the first row.

    None for an image, and if there is no row, or its value is NULL or empty.
    """
    if column.kind == IMAGE:
        return None
    array = column.array_sql(f"t.{quote_identifier(column.name)}")
    rows = reader.run(sql("score.shape", table=table.quoted, input=array))
    if not rows or not rows[0][0]:
        return None
    return tuple(rows[0][0])


def _create_table(db: Database, output: Relation, request: PredictionRequest) -> None:
    statement = sql(
        "score.predictions",
        output=output.quoted,
        id=quote_identifier(request.id_column["name"]),
        id_type=request.id_column["type"],
        rank=request.make_rank(", rank integer"),
        **db.platform.clauses,
    )
    db.rows(statement)


def _insert_block(
    db: Database,
    output: Relation,
    request: PredictionRequest,
    block: Block,
    output_values: Sequence[object],
) -> None:
    ids, predictions = block
    statement = sql(
        "score.add_predictions",
        output=output.quoted,
        id_type=request.id_column["type"],
        rank=request.make_rank(", p.rank"),
    )
    texts = [predictions[name] for name in ("row", "output", "class", "value", "rank")]
    texts.append(ids)
    db.rows(statement, *(text.encode() for text in texts), *output_values)


def _list_output_values(outputs: Sequence[Output]) -> Sequence[object]:
    """Return the values of `score.add_predictions` that describe the outputs.

    The first arrays contain the name of each output and a flag for labels by position. The others
    contain the output, the position and the label of each class value.
    """
    output_numbers = []
    positions = []
    labels = []
    for number, output in enumerate(outputs):
        for position, label in enumerate(output.labels or ()):
            output_numbers.append(number)
            positions.append(position)
            labels.append(label)
    names = [output.name for output in outputs]
    by_position = [output.labels is None for output in outputs]
    return names, by_position, output_numbers, positions, labels
