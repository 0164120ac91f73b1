"""A column from which the target follows is named; one that helps to predict it is not."""

from __future__ import annotations

import pytest
from recipes import Session
from workbench import Workbench

from cerebro_plpy.preprocessing.learning import target_leakage
from cerebro_plpy.preprocessing.learning.fit_recipe import fit_recipe
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.values.columns import read_columns
from cerebro_plpy.preprocessing.values.expression import Expression

# Of each row drawn numbers, which are the same always: u and v from 0 to 1, z about normal.
PATIENTS = """
    CREATE TABLE patients AS
    SELECT n AS id, d.u, d.v, d.z, d.ill, d.days, d.kind,
           d.ill::integer AS same, CASE WHEN d.ill THEN 'yes ' || n % 3 ELSE 'no' END AS answer,
           CASE WHEN d.ill THEN d.v END AS dose, CASE WHEN d.v > 0.3 THEN d.u END AS risk_of_some,
           CASE WHEN d.v > 0.03 THEN d.ill ELSE NOT d.ill END AS good_test,
               d.z + 3 * d.ill::integer AS good_number,
           'place ' || floor(d.v * 400) AS place,
           exp(d.days / 20) AS power, (d.days * 1.8 + 32)::numeric(9, 2) AS scaled,
               d.days + 3 * d.z AS near_days,
           date '2020-01-01' + d.days::integer AS until, round(d.days / 10) AS tenths
    FROM generate_series(1, 3000) n,
         LATERAL (SELECT ('x' || substr(md5(n::text), 1, 7))::bit(28)::integer / 268435456.0::float8
             AS u,
                         ('x' || substr(md5(n::text), 9, 7))::bit(28)::integer / 268435456.0::float8
                             AS v,
                         ('x' || substr(md5(n::text), 17, 7))::bit(28)::integer /
                             268435456.0::float8 AS w) r,
         LATERAL (SELECT r.u, r.v, (r.v + r.w + (n * 7919 % 1000) / 1000.0 - 1.5) * 2 AS z,
             r.u < 0.3 AS ill,
                         r.w * 100 AS days, (ARRAY['a', 'b', 'c'])[1 + floor(r.u * 3)::integer] AS
                             kind) d"""


@pytest.fixture(scope="module")
def session(bench: Workbench) -> Session:
    bench.rows(PATIENTS)
    return Session(bench)


def given_away(
    bench: Workbench, session: Session, target: str, classes: bool, rows: int = 3000
) -> set[str]:
    columns = read_columns(session, bench.value("SELECT 'patients'::regclass::oid::bigint"))
    # What has the place of a row would hide nothing.
    side, hashed = (
        Expression("t.id <= %s", (rows,)),
        Expression("pg_catalog.hashint8extended(t.id, 1)"),
    )
    source = Source("patients", side, hashed)
    recipe = fit_recipe(
        session, source, [each for each in columns if each.name not in (target, "id")], {}
    )
    label = Expression(f"t.{target}::text" if classes else f"t.{target}::double precision")
    return {
        each.column
        for each in target_leakage.find_leaks(session, source, recipe, rows, label, classes)
    }


@pytest.mark.parametrize("rows", [100, 3000])
def test_classes(bench: Workbench, session: Session, rows: int) -> None:
    assert given_away(bench, session, "ill", True, rows) - {"u", "risk_of_some"} == {
        "same",
        "answer",
        "dose",
    }
    assert {"u", "risk_of_some"} <= given_away(bench, session, "ill", True)


def test_several_classes(bench: Workbench, session: Session) -> None:
    assert given_away(bench, session, "kind", True) == {"u", "risk_of_some"}


@pytest.mark.parametrize("rows", [100, 3000])
def test_numbers(bench: Workbench, session: Session, rows: int) -> None:
    assert given_away(bench, session, "days", False, rows) - {"power"} == {"scaled"}
    assert "power" in given_away(bench, session, "days", False)


def test_of_a_few_rows_nothing_is_said(bench: Workbench, session: Session) -> None:
    assert not given_away(bench, session, "ill", True, 15) and not given_away(
        bench, session, "days", False, 15
    )
