"""What is learned of columns of arrays: of training rows alone, whatever sizes and elements they
have.
"""

from __future__ import annotations

import pytest
from recipes import Session
from workbench import Workbench

from cerebro_plpy.preprocessing.kinds.feature import Feature
from cerebro_plpy.preprocessing.kinds.image import Image
from cerebro_plpy.preprocessing.kinds.left_out import LeftOut
from cerebro_plpy.preprocessing.kinds.long_vector import LongVector
from cerebro_plpy.preprocessing.kinds.series import Series
from cerebro_plpy.preprocessing.kinds.vector import Vector
from cerebro_plpy.preprocessing.learning.fit_recipe import fit_recipe
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.values.columns import read_columns
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.preprocessing.values.families import CAST
from cerebro_plpy.preprocessing.values.scale import Scale

EMBEDDING = """
    CREATE TYPE public.embedding;
    CREATE FUNCTION public.embedding_in(cstring) RETURNS public.embedding
        LANGUAGE internal IMMUTABLE STRICT
        AS 'textin';
    CREATE FUNCTION public.embedding_out(public.embedding) RETURNS cstring
        LANGUAGE internal IMMUTABLE STRICT
        AS 'textout';
    CREATE TYPE public.embedding (INPUT = public.embedding_in, OUTPUT = public.embedding_out,
        LIKE = text);
    CREATE CAST (public.embedding AS real[]) WITH INOUT"""
"""A type of an extension, as pgvector has one."""
LISTS = """
    CREATE DOMAIN pair AS integer[] CHECK (VALUE IS NULL OR cardinality(VALUE) <= 5);
    CREATE TYPE own AS (first real, second real);
    CREATE FUNCTION of_own(own) RETURNS real[] LANGUAGE sql AS 'SELECT ARRAY[$1.first, $1.second]';
    CREATE CAST (own AS real[]) WITH FUNCTION of_own(own);
    CREATE TABLE lists AS
    SELECT n AS id, ARRAY[10 + n % 5, 1000 * (n % 3), 7]::pair AS whole,
           CASE WHEN n = 3 THEN NULL WHEN n = 4 THEN '{}' WHEN n = 5 THEN '{NULL,NaN,NULL,NULL}'
               WHEN n = 6 THEN '{1}'
                WHEN n = 7 THEN '[-3:0]={1,2,3,Infinity}' WHEN n = 8 THEN '{1,2,3,4,5,6,7}'
                WHEN n = 9 THEN '{{1,2},{3,4}}'
                ELSE ARRAY[n % 10, sin(n), NULL, -1e308 * sin(n)] END::numeric[] AS strange,
           (n % 4, n % 8)::own AS own, format('{%s,%s}', n % 4, n % 8)::public.embedding AS cast,
           '{1,2}'::real[] AS same, '{}'::real[] AS empty,
           CASE WHEN n = 1 THEN '{5,6}'::real[] END AS rare
    FROM generate_series(1, 200) AS n"""
LONG = """
    CREATE TABLE long_lists AS
    SELECT n AS id, a.walk, a.noise, a.noise[1:7] AS short,
           CASE WHEN n % 5 > 0 THEN a.walk[1:10 + n % 11] END AS growing,
           ARRAY[a.walk, a.walk] AS across, ARRAY(SELECT ARRAY[x, 100 * x, 7]
               FROM unnest(a.walk) x) AS channels,
           ARRAY(SELECT (100 * x)::integer FROM unnest(a.noise || a.noise) x) AS square,
           ARRAY(SELECT ARRAY[ARRAY[x, x], ARRAY[x, 2 * x]] FROM unnest(a.walk[1:3]) x) AS image
    FROM generate_series(1, 300) AS n, LATERAL (
        SELECT array_agg(sin(s / 4.0 + n)::real ORDER BY s) AS walk,
               array_agg(sin(s * 7919 * (1 + n) % 104729)::real ORDER BY s) AS noise
        FROM generate_series(1, 32) s) AS a"""
EVERYWHERE = Source("lists", Expression("true"), Expression("t.id::bigint << 32"))


@pytest.fixture(scope="module")
def session(bench: Workbench, shared_superuser: Workbench) -> Session:
    shared_superuser.rows(EMBEDDING)
    bench.rows(LISTS)
    bench.rows(LONG)
    return Session(bench)


def learned(session: Session, source: Source = EVERYWHERE, **types: str) -> dict[str, Feature]:
    ((oid,),) = session.run(f"SELECT '{source.table}'::regclass::oid::bigint")
    return {
        each.column: each
        for each in fit_recipe(session, source, read_columns(session, oid), types).features
    }


def test_a_short_array_is_a_number_of_each_place(session: Session) -> None:
    found = learned(session)
    scales = (
        Scale(12.0, 2.0, (10.0, 11.0, 12.0, 13.0, 14.0)),
        Scale(1000.0, 2000.0, (0.0, 1000.0, 2000.0)),
    )
    assert found["whole"] == Vector("whole", "integer[]", (*scales, Scale(0.0, 1.0)), missing=False)
    cast = found["cast"]
    assert (
        isinstance(cast, Vector)
        and cast.family == CAST
        and [each.center for each in cast.scales] == [1.0, 3.0]
    )
    # Its cast is its owner's code.
    assert str(found["own"].explanation).startswith("no input can be made of type own")
    assert found["same"] == LeftOut("same", "it has one value only")
    assert found["empty"] == LeftOut("empty", "it has no element in any row")


def test_arrays_of_other_sizes_and_elements_that_are_no_numbers(session: Session) -> None:
    strange, rare = learned(session)["strange"], learned(session)["rare"]
    assert isinstance(strange, Vector) and strange.missing and len(strange.scales) == 4
    assert strange.scales[0].center in (4.0, 5.0) and strange.scales[3].width > 1e298
    assert isinstance(rare, Vector) and rare.missing and len(rare.scales) == 2


def test_what_is_next_to_each_other_in_a_series_is_alike(session: Session) -> None:
    found = learned(session, EVERYWHERE._replace(table="long_lists"))
    kinds = {name: (each.kind, getattr(each, "shape", None)) for name, each in found.items()}
    assert kinds == {
        "id": ("left out", None), "walk": ("series", (32, 1)), "noise": ("vector", None),
        "short": ("vector", None),
        "growing": ("series", (19, 1)), "across": ("series", (2, 32)), "channels": ("series", (32,
        3)),
        "square": ("vector", None), "image": ("image", (3, 2, 2)),
    }  # fmt: skip
    channels, growing = found["channels"], found["growing"]
    assert isinstance(channels, Series) and isinstance(growing, Series) and growing.missing
    one, hundred, same = channels.scales
    assert hundred.width == pytest.approx(100 * one.width, rel=1e-6) and same == Scale(0.0, 1.0)


def test_the_caller_says_what_an_array_is(session: Session) -> None:
    types = {
        "walk": "vector",
        "square": "image",
        "noise": "series",
        "channels": "vector",
        "growing": "image",
    }
    found = learned(session, EVERYWHERE._replace(table="long_lists"), **types)
    assert isinstance(found["walk"], Vector) and len(found["walk"].scales) == 32
    assert isinstance(found["square"], Image) and found["square"].shape == (8, 8, 1)
    assert isinstance(found["noise"], Series)
    assert isinstance(found["channels"], LongVector) and found["channels"].shape == (96,)
    assert found["growing"] == LeftOut("growing", "no image is made of arrays of the size 19")


def test_rows_that_are_held_back_change_nothing(session: Session, bench: Workbench) -> None:
    source = EVERYWHERE._replace(side=Expression("t.id % 4 > 0"))
    before = learned(session, source)
    with bench.connection.cursor() as cursor:
        cursor.execute(
            "BEGIN; UPDATE lists SET whole = '{1,2,3,4,5}', strange = '{{1}}', same = NULL WHERE "
            "id % 4 = 0"
        )
        try:
            assert learned(session, source) == before != learned(session)
        finally:
            cursor.execute("ROLLBACK")
