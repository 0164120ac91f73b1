"""Which task a column sets, and what is learned of it."""

from __future__ import annotations

from statistics import fmean, pstdev

import pytest
from recipes import Session
from workbench import Workbench

from cerebro_plpy.configs.templates.layers.model_io import Classes, Floats
from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.errors import DatatypeMismatch, InvalidParameter
from cerebro_plpy.preprocessing.learning.number_targets import TextTarget
from cerebro_plpy.preprocessing.learning.target import (
    Target,
    check_target,
    check_task,
    read_target,
)
from cerebro_plpy.preprocessing.rows.class_counts import SideTables, count_classes, has_many_values
from cerebro_plpy.preprocessing.rows.opened_source import TableOptions
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.rows.split import Sides
from cerebro_plpy.preprocessing.values.columns import RawColumn, read_columns
from cerebro_plpy.preprocessing.values.expression import Expression

HOUSES = """
    CREATE TYPE grade AS ENUM ('poor', 'fair', 'good');
    CREATE TABLE houses AS
    SELECT n AS id, (ARRAY['poor', 'fair', 'good'])[n % 3 + 1]::grade AS grade, n % 2 = 0 AS sold,
           CASE WHEN n % 50 > 0 THEN 1000.5 * n END AS price, (n % 7)::float8 AS rooms,
               (n % 7)::real / 2 AS halves,
           CASE n WHEN 3 THEN 'Infinity' WHEN 4 THEN '-Infinity' WHEN 5 THEN 'NaN' ELSE n::text
               END::float8 AS odd,
           'text ' || n AS name, NULL::integer AS nothing, 1 AS one, 1e300::float8 * n AS huge,
           n % 12 + 1 AS month, now() AS since, (n % 2)::numeric AS "a %s ""b"" c"
    FROM generate_series(1, 500) AS n"""


TABLE = Relation("houses", "public", "houses", 1, '"public"."houses"')


@pytest.fixture(scope="module")
def session(bench: Workbench) -> Session:
    bench.rows(HOUSES)
    return Session(bench)


@pytest.fixture(scope="module")
def columns(bench: Workbench, session: Session) -> dict[str, RawColumn]:
    found = read_columns(session, bench.value("SELECT 'houses'::regclass::oid::bigint"))
    return {column.name: column for column in found}


def target(
    session: Session, column: RawColumn, task: str | None = None, side: str = "true"
) -> Target:
    check_target("train", column, TABLE)
    check_task("train", task)
    options = TableOptions(column.name, task, None, {}, None, None, 1, settled=False)
    source = Source("houses", Expression(side), Expression("t.id::bigint << 32"))
    both, places = Sides(source.side, Expression("false")), SideTables("houses", "houses")
    known = count_classes(session, places, both, column, has_many_values(session, "houses", column))
    return read_target(session, "train", source, TextTarget(column), known, options, TABLE)


@pytest.mark.parametrize(
    ("name", "values"),
    [("grade", ("fair", "good", "poor")), ("sold", ("false", "true")), ("rooms", tuple("0123456")),
     ("month", ("1", "10", "11", "12", *"23456789")),
     ('a %s "b" c', ("0", "1"))],
)  # fmt: skip
def test_classes_are_in_the_order_of_their_texts(
    session: Session, columns: dict[str, RawColumn], name: str, values: tuple[str, ...]
) -> None:
    found = target(session, columns[name])
    assert (found.task, found.values, found.rows) == ("classification", values, 500)
    assert found.head == Classes(len(values))


def test_numbers_have_their_scale(session: Session, columns: dict[str, RawColumn]) -> None:
    found = target(session, columns["price"], side="t.id <= 100")
    assert (found.task, found.values, found.rows) == ("regression", (), 98)
    scale = found.scale
    assert scale is not None and found.head == Floats((scale.measure,))
    assert (scale.low, scale.high) == (1000.5, 1000.5 * 99)
    numbers = [1000.5 * n for n in range(1, 100) if n != 50]
    assert scale.low + scale.offset == pytest.approx(fmean(numbers))
    assert scale.deviation == pytest.approx(pstdev(numbers))
    assert target(session, columns["halves"]).task == "regression", "not whole"
    odd = target(session, columns["odd"])
    assert odd.rows == 497 and odd.scale is not None and odd.scale.high == 500


def test_the_caller_may_say_what_it_is(session: Session, columns: dict[str, RawColumn]) -> None:
    assert target(session, columns["rooms"], "regression").task == "regression"
    assert target(session, columns["halves"], "classification").values[:3] == ("0", "0.5", "1")


WRONG = {
    "a time": ("since", None, "true", "timestamp with time zone"),
    "names of rows": ("name", None, "true", "500 different values"),
    "one value": ("one", None, "true", "one value"),
    "no such task": ("price", "ranking", "true", "'ranking'"),
    "words as numbers": ("grade", "regression", "true", "grade"),
    "numbers beyond float32": ("huge", None, "true", "within 1e+100"),
    "infinite numbers": ("odd", None, "t.id BETWEEN 3 AND 6", "finite"),
}


@pytest.mark.parametrize(("name", "task", "side", "words"), WRONG.values(), ids=WRONG)
def test_what_teaches_nothing_is_refused(
    session: Session,
    columns: dict[str, RawColumn],
    name: str,
    task: str | None,
    side: str,
    words: str,
) -> None:
    with pytest.raises(DatatypeMismatch if name == "since" else InvalidParameter) as refused:
        target(session, columns[name], task, side)
    assert words in refused.value.message
    assert refused.value.hint or "expected one of" in refused.value.message
