"""What is learned of columns of arrays: of training rows alone, whatever sizes and elements they have."""

from __future__ import annotations

import pytest
from recipes import Session
from workbench import Workbench

from cerebro_plpy.features.columns import raw_columns
from cerebro_plpy.features.encoding import CAST, Expression
from cerebro_plpy.features.learn import learn
from cerebro_plpy.features.recipe import Feature, LeftOut, Scale, Vector
from cerebro_plpy.features.statistics import Source

LISTS = """
    CREATE DOMAIN pair AS integer[] CHECK (VALUE IS NULL OR cardinality(VALUE) <= 5);
    CREATE TYPE embedding AS (first real, second real);
    CREATE FUNCTION of_embedding(embedding) RETURNS real[] LANGUAGE sql IMMUTABLE
        AS 'SELECT ARRAY[$1.first, $1.second]';
    CREATE CAST (embedding AS real[]) WITH FUNCTION of_embedding(embedding);
    CREATE TABLE lists AS
    SELECT n AS id, ARRAY[10 + n % 5, 1000 * (n % 3), 7]::pair AS whole,
           CASE WHEN n = 3 THEN NULL WHEN n = 4 THEN '{}' WHEN n = 5 THEN '{NULL,NaN,NULL,NULL}' WHEN n = 6 THEN '{1}'
                WHEN n = 7 THEN '[-3:0]={1,2,3,Infinity}' WHEN n = 8 THEN '{1,2,3,4,5,6,7}'
                WHEN n = 9 THEN '{{1,2},{3,4}}'
                ELSE ARRAY[n % 10, sin(n), NULL, -1e308 * sin(n)] END::numeric[] AS strange,
           (n % 4, n % 8)::embedding AS cast, '{1,2}'::real[] AS same, '{}'::real[] AS empty,
           CASE WHEN n = 1 THEN '{5,6}'::real[] END AS rare
    FROM generate_series(1, 200) AS n"""
EVERYWHERE = Source("lists", Expression("true"), Expression("t.id::bigint << 32"))


@pytest.fixture(scope="module")
def session(bench: Workbench) -> Session:
    bench.rows(LISTS)
    return Session(bench)


def learned(session: Session, source: Source = EVERYWHERE, **types: str) -> dict[str, Feature]:
    ((oid,),) = session.run(f"SELECT '{source.table}'::regclass::oid::bigint")
    return {each.column: each for each in learn(session, source, raw_columns(session, oid), types).features}


def test_a_short_array_is_a_number_of_each_place(session: Session) -> None:
    found = learned(session)
    scales = Scale(12.0, 2.0), Scale(1000.0, 2000.0), Scale(7.0, 1.0)
    assert found["whole"] == Vector("whole", "integer[]", (*scales[:2], Scale(0.0, 1.0)), missing=False)
    cast = found["cast"]
    assert isinstance(cast, Vector) and cast.family == CAST and [each.center for each in cast.scales] == [1.0, 3.0]
    assert found["same"] == LeftOut("same", "it has one value only")
    assert found["empty"] == LeftOut("empty", "it has no element in any row")


def test_arrays_of_other_sizes_and_elements_that_are_no_numbers(session: Session) -> None:
    strange, rare = learned(session)["strange"], learned(session)["rare"]
    assert isinstance(strange, Vector) and strange.missing and len(strange.scales) == 4
    assert strange.scales[0].center in (4.0, 5.0) and strange.scales[3].width > 1e298
    assert isinstance(rare, Vector) and rare.missing and len(rare.scales) == 2


def test_rows_that_are_held_back_change_nothing(session: Session, bench: Workbench) -> None:
    source = EVERYWHERE._replace(side=Expression("t.id % 4 > 0"))
    before = learned(session, source)
    with bench.connection.cursor() as cursor:
        cursor.execute("BEGIN; UPDATE lists SET whole = '{1,2,3,4,5}', strange = '{{1}}', same = NULL WHERE id % 4 = 0")
        try:
            assert learned(session, source) == before != learned(session)
        finally:
            cursor.execute("ROLLBACK")
