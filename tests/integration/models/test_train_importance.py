"""Importances of columns as a part of every train: kept with the version, for its owner alone,
where there is time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from followed_hints import read_statements
from roles import another_role, refused
from workbench import Workbench

pytestmark = pytest.mark.long
SALES = """
    CREATE FUNCTION made(first integer, last integer) RETURNS TABLE (
        id integer, shop text, noise float8, moment timestamp, fixed integer, taken float8,
            much boolean)
    LANGUAGE sql AS $$
    SELECT n, (ARRAY['a', 'b', 'c'])[n * 7919 % 3 + 1], sin(n * n),
           CASE WHEN n % 5 > 0 THEN timestamp '2020-01-01' + (n * 7919 % 1460) * interval '1 day'
               END, 5,
           n * 7919 % 3 * 10 + cos(n), n * 7919 % 3 = 1
    FROM generate_series(first, last) n $$;
    CREATE TABLE sales AS SELECT * FROM made(1, 900);
    CREATE TABLE later AS SELECT * FROM made(901, 1500)"""
SPACE = '{"lr": 0.1, "batch_size": 16}'
QUICK = (
    f"models => '{{linear}}', epochs => 20, workers => 1, space => '{SPACE}', split => 'table "
    "later'"
)
STORED = "SELECT column_name, importance, importance_error FROM cerebro.feature WHERE model = %s"
Found = dict[str, tuple[float | None, float | None]]


@pytest.fixture(scope="module")
def models(bench: Workbench) -> Iterator[Workbench]:
    """A model of a number, and an ensemble of classes, both without what is in the target of the
    other.
    """
    with bench.connection.cursor() as cursor:
        cursor.execute(SALES)
    bench.rows(
        "SELECT * FROM cerebro.train('sales', 'taken', 'taken', columns => '* except much', "
        f"configs => 1, {QUICK})"
    )
    several = f"columns => '* except taken', configs => 2, ensemble => 3, {QUICK}"
    bench.rows(f"SELECT * FROM cerebro.train('sales', 'much', 'much', {several}, seed => 3)")
    yield bench


def found(session: Workbench, model: str, query: str = STORED, *more: object) -> Found:
    return {column: (value, error) for column, value, error in session.rows(query, model, *more)}


@pytest.mark.parametrize("model", ["taken", pytest.param("much", marks=pytest.mark.long)])
def test_what_is_kept_is_what_the_function_says_of_these_rows(
    models: Workbench, model: str
) -> None:
    kept = found(models, model)
    told = found(
        models,
        model,
        "SELECT column_name, importance, importance_error FROM cerebro.importance(%s, 'later')",
    )
    assert (
        {name for name, (value, _) in kept.items() if value is not None}
        == set(told)
        == {"shop", "noise", "moment"}
    )
    for name, numbers in told.items():
        assert kept[name] == pytest.approx(numbers, rel=1e-4, abs=1e-6), name
    assert kept["fixed"] == kept["id"] == (None, None)
    shop, noise = kept["shop"], kept["noise"]
    assert None not in (*shop, *noise)
    assert (
        float(shop[0] or 0) > 10 * abs(float(noise[0] or 0))
        and float(shop[0] or 0) > 10 * float(shop[1] or 0) > 0
    )


@pytest.mark.parametrize("column", ["id", "moment", "noise"])
def test_rows_that_are_held_back_may_be_the_last_of_any_column(
    models: Workbench, column: str
) -> None:
    """The plan and the importances are of the same rows as the run: they are found in the caller's
    own session.
    """
    split = f"split => 'last 0.3 by {column}'"
    rows = (
        "SELECT name, (data -> 'rows')::integer FROM cerebro.plan('sales', 'much', {}) WHERE "
        "section = 'rows'"
    )
    planned: dict[str, int] = dict(models.rows(rows.format(split)))
    call = (
        "SELECT * FROM cerebro.train('sales', 'much', 'spare', columns => 'shop, fixed', configs "
        f"=> 1, {QUICK})"
    )
    models.rows(call.replace("split => 'table later'", split))
    known = (
        "SELECT training_rows, validation_rows FROM cerebro.model_version WHERE model = 'spare' "
        "AND deployed"
    )
    training, validation = models.row(known)
    assert (planned["training"], planned["validation"]) == (training, validation)
    value, error = found(models, "spare")["shop"]
    assert value is not None and error is not None and value > 10 * error > 0
    models.rows("SELECT cerebro.drop_model('spare')")


def test_nobody_but_the_owner_reads_them(models: Workbench, shared_superuser: Workbench) -> None:
    query = "SELECT * FROM cerebro_internal.version_importance('taken', 1, 60)"
    assert models.row(query)
    with another_role(models, shared_superuser, "onlooker") as other:
        models.rows(
            "SELECT cerebro.grant_predict('taken', 'onlooker'); GRANT SELECT ON sales, later TO "
            "onlooker"
        )
        assert other.rows(
            "SELECT FROM cerebro.predict('taken', 'sales', owner => 'cerebro') LIMIT 1"
        )
        for table in ("feature", "version_log"):
            assert not other.rows(f"SELECT importance, importance_error FROM cerebro.{table}")
        refused(other, query, code="55000", words="importance error")
        refused(other, "SELECT * FROM cerebro.importance('taken', 'later')", code="42704")


def test_there_are_none_where_there_is_no_time(models: Workbench) -> None:
    values, errors = models.row("SELECT * FROM cerebro_internal.version_importance('taken', 1, 0)")
    assert len(values) == len(errors) == len(found(models, "taken")) and {*values, *errors} == {
        None
    }


def test_a_version_stays_without_those_that_cannot_be_computed(
    models: Workbench, shared_superuser: Workbench
) -> None:
    name = "cerebro_internal.version_importance(text, integer, double precision)"
    body: Any = shared_superuser.value("SELECT pg_get_functiondef(%s::regprocedure)", name)
    broken = body.replace("from cerebro_plpy.api", "raise ValueError('lost') #")
    assert broken != body
    models.messages()
    shared_superuser.rows(broken)
    try:
        models.rows(f"SELECT * FROM cerebro.train('sales', 'taken', 'bare', configs => 1, {QUICK})")
    finally:
        shared_superuser.rows(body)
    assert set(found(models, "bare").values()) == {(None, None)}
    assert models.value("SELECT version FROM cerebro.model WHERE model = 'bare'") == 1
    assert any(
        "version 1 has no importances" in text and "lost" in text for text in models.messages()
    )


def test_rows_that_were_removed_are_read_from_the_source(models: Workbench) -> None:
    """The last test: the packed rows of all runs are removed."""
    models.rows("SELECT cerebro.vacuum_runs('0 s')")
    query = "SELECT * FROM cerebro_internal.version_importance('taken', 1, 60)"
    template = "SELECT * FROM cerebro.importance({}, {}); takes the rows of its source."
    (statement,) = read_statements(refused(models, query, code="55000"), template)
    assert models.rows(statement)
