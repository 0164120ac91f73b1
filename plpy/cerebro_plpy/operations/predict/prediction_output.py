"""Predictions with any model over the rows of any table or view, into a table that the caller's
transaction makes.

A worker reads the rows and passes them through its trainer; meanwhile the caller's session writes
what came before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, Optional, Union

from cerebro_plpy.configs.architecture.architecture import Architecture
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session, await_rows
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.sql.identifiers import quote_identifier, split_columns
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
from cerebro_plpy.run.workers.workers import Crew, crew_for, score, together
from cerebro_plpy.tables.compatibility import InputColumns, check_inputs

PredType = Union[str, int, float, None]
Labels = Optional[tuple[Optional[str], ...]]
Block = tuple[str, dict[str, str]]
# Numbers that go into a block of rows or come out of it, and rows: what is on its way is a few MB.
BLOCK_ELEMENTS, BLOCK_ROWS = 1 << 20, 10_000


@dataclass(frozen=True)
class Output:
    """What is told of an output: its name, and its class values, by place; None where the place
    itself is the label.

    Of floats all are told, without a look at which is the largest.
    """

    name: str
    labels: Labels
    is_float: bool = False

    @property
    def classes(self) -> int | None:
        """How many classes the trainer is to report: 0 for floats, None for as many as the output
        has units.
        """
        return 0 if self.is_float else None if self.labels is None else len(self.labels)


@dataclass(frozen=True)
class Predictor:
    """A model that predicts; `title` names it in messages, `program` is as the trainer wants it
    described.
    """

    title: str
    architecture: Architecture
    program: dict[str, Any]
    state: StateSource
    outputs: tuple[Output, ...]
    normalizing_const: float
    backend: str


@dataclass(frozen=True)
class Question:
    """What is asked: of which rows, by which column they are told apart, their inputs, and which
    classes are wanted.
    """

    table: Relation
    id_column: Row
    inputs: tuple[Column, ...]
    want: dict[str, object]

    @property
    def unranked(self) -> bool:
        """Whether one class of a row is wanted alone."""
        return self.want["kind"] == "response"


def question(
    catalog: Catalog, table: Relation, columns: tuple[str | None, str | None], pred_type: PredType
) -> Question:
    """The arguments of a call as they are understood; `columns` are the id column and the list of
    inputs.
    """
    want = prediction_kind(catalog.module, pred_type)
    found = _columns(catalog, table, columns[0], "id column")
    if len(found) != 1:
        raise _no_column(catalog, table, columns[0], "id column")
    inputs = _columns(catalog, table, columns[1], "independent_varname")
    return Question(
        table, found[0], tuple(_input(catalog, table, column) for column in inputs), want
    )


def prediction_kind(module: str, pred_type: PredType) -> dict[str, object]:
    """What the trainer is asked for, from pred_type.

    >>> prediction_kind("m", 2)
    {'kind': 'top', 'n': 2}
    """
    if pred_type is None or (
        isinstance(pred_type, str) and pred_type.lower() in ("prob", "response")
    ):
        return {"kind": "prob" if pred_type is None else str(pred_type).lower()}
    if isinstance(pred_type, int) and pred_type >= 1:
        return {"kind": "top", "n": pred_type}
    if isinstance(pred_type, float) and 0.0 <= pred_type < 1.0:
        return {"kind": "threshold", "threshold": pred_type}
    raise InvalidParameter(
        f"{module}: Invalid value for pred_type param ({pred_type}). Must be integer>0, double "
        "precision in the range [0.0,1.0), 'response' or 'prob'."
    )


def _columns(catalog: Catalog, table: Relation, given: str | None, what: str) -> list[Row]:
    if given is None or not given.strip():
        raise NullNotAllowed(
            f"{catalog.module} error: {what} is NULL or empty; expected the name of a column."
        )
    columns = catalog.read_columns(table)
    try:
        return [columns[name] for name in split_columns(given)]
    except (KeyError, InvalidName) as error:
        raise _no_column(catalog, table, given, what) from error


def _no_column(catalog: Catalog, table: Relation, given: str | None, what: str) -> UndefinedColumn:
    return UndefinedColumn(
        f"{catalog.module} error: invalid {what} ('{given}') for test table ({table.spelling}).",
        hint=f"Its columns are: {', '.join(catalog.read_columns(table))}.",
    )


def _input(catalog: Catalog, table: Relation, found: Row) -> Column:
    """How a column of the catalog is sent as an input."""
    sent = make_input_column(found)
    if sent is None:
        raise DatatypeMismatch(
            f"{catalog.module} error: independent column '{found['name']}' is of type "
            f"{found['type']}; expected an array of numbers, a number, or an image (bytea).",
            hint=suggest_numeric_view(table, found).replace("Pack", "Predict from", 1),
        )
    return sent


def write(
    workplace: CallContext, output: Relation, predictor: Predictor, asked: Question, gpu: bool
) -> None:
    """Make a table of predictions."""
    db, summary = workplace.db, predictor.architecture
    shapes = [_row_shape(workplace.reader, asked.table, column) for column in asked.inputs]
    names = [column.name for column in asked.inputs]
    check_inputs(predictor.title, summary, InputColumns(asked.table.spelling, names, shapes))
    _create(db, output, asked)
    known = [
        shape or tuple(n or 1 for n in expected)
        for shape, expected in zip(shapes, summary.input_shapes)
    ]
    given = sum(units or 1 for units in summary.output_units)
    elements = max(sum(map(prod, known)), given, sum(o.classes or 0 for o in predictor.outputs), 1)
    block = min(BLOCK_ROWS, max(1, BLOCK_ELEMENTS // elements))
    told = _told(predictor.outputs)
    rows = workplace.platform.raw_rows(workplace.control, asked.table.oid, _rows(asked))

    def predict(crew: Crew) -> None:
        with db.atomic(
            enable_nestloop="off"
        ):  # whatever the planner expects of the arrays of a block
            for found in _blocks(workplace, crew, predictor, (asked, rows), block):
                _insert(db, output, told, asked, found)

    score(
        workplace,
        lambda: crew_for(workplace, predictor.backend, gpu, rows.segments),
        predict,
        again=not predictor.state.sealed,
    )


def _blocks(
    workplace: CallContext,
    crew: Crew,
    predictor: Predictor,
    of: tuple[Question, RawRows],
    block: int,
) -> Iterator[Block]:
    """Per block of so many rows: the identifiers as an array literal, and the predictions."""
    asked, rows = of
    arrays = [
        {"kind": c.kind, "column": c.name, "divide": predictor.normalizing_const}
        for c in asked.inputs
    ]
    request = {
        "arrays": arrays,
        "want": asked.want,
        "classes": [output.classes for output in predictor.outputs],
    }
    job = Job("predict", predictor.program, predictor.state.key)
    told = {"block": block, "request": request}
    steps = [
        crew.visits.predict(worker, rows, predictor.state, job, told) for worker in crew.workers
    ]
    for worker, declare in together(workplace, crew, steps):
        if declare is not None:
            yield from fetched(workplace, worker.session, declare)
            finish = crew.visits.end_prediction(worker)
            worker.session.run(finish.sql, finish.values)


def _rows(asked: Question) -> RawRows:
    """How the rows are read."""
    name = f"t.{quote_identifier(asked.id_column['name'])}::text"
    data = f"ARRAY[{', '.join(c.bytes_sql(f't.{quote_identifier(c.name)}') for c in asked.inputs)}]"
    return RawRows(asked.table.quoted, name, data)


def fetched(workplace: CallContext, session: Session, declare: str) -> Iterator[Block]:
    """The blocks of a cursor: while the caller writes one, the worker reads and computes the
    next.
    """
    if not workplace.is_local:
        session.run(sql("session.begin", isolation="READ COMMITTED"))
    session.run(declare)
    session.start(sql("score.fetch"))
    while rows := await_rows(session, workplace.check):
        session.start(sql("score.fetch"))
        yield rows[0][0], parse_result([rows[0][1:]])
    session.run(sql("score.close") if workplace.is_local else sql("session.commit"))


def _row_shape(reader: Session, table: Relation, column: Column) -> tuple[int, ...] | None:
    """The shape of an input in the first row; None for an image, and where there is no row, or it
    is NULL or empty.
    """
    if column.kind == IMAGE:
        return None
    array = column.array_sql(f"t.{quote_identifier(column.name)}")
    rows = reader.run(sql("score.shape", table=table.quoted, input=array))
    return tuple(rows[0][0]) if rows and rows[0][0] else None


def _create(db: Database, output: Relation, asked: Question) -> None:
    name, kind = quote_identifier(asked.id_column["name"]), asked.id_column["type"]
    rank = "" if asked.unranked else ", rank integer"
    db.rows(
        sql(
            "score.predictions",
            output=output.quoted,
            id=name,
            id_type=kind,
            rank=rank,
            **db.platform.clauses,
        )
    )


def _insert(
    db: Database, output: Relation, told: Sequence[object], asked: Question, found: Block
) -> None:
    rank = "" if asked.unranked else ", p.rank"
    text = sql(
        "score.add_predictions", output=output.quoted, id_type=asked.id_column["type"], rank=rank
    )
    ids, values = found
    long = [*(values[name] for name in ("row", "output", "class", "value", "rank")), ids]
    db.rows(text, *(value.encode() for value in long), *told)


def _told(outputs: Sequence[Output]) -> Sequence[object]:
    """Of each output the name, and whether its classes go by place; of each class value the output,
    place and label.
    """
    labels = [
        (number, workplace, label)
        for number, output in enumerate(outputs)
        for workplace, label in enumerate(output.labels or ())
    ]
    by_place = [output.labels is None for output in outputs]
    return (
        [output.name for output in outputs],
        by_place,
        *([label[n] for label in labels] for n in range(3)),
    )
