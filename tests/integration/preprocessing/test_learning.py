"""What is learned of a table: of its training rows alone, whatever its columns are."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

import pytest
from recipes import Session, encoded
from workbench import Workbench

from cerebro_plpy.configs.templates.layers.model_io import FARTHEST
from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.preprocessing.kinds.category import Category
from cerebro_plpy.preprocessing.kinds.left_out import LeftOut
from cerebro_plpy.preprocessing.kinds.moment import Moment
from cerebro_plpy.preprocessing.kinds.number import Number
from cerebro_plpy.preprocessing.kinds.text import Text
from cerebro_plpy.preprocessing.learning.fit_recipe import fit_recipe
from cerebro_plpy.preprocessing.learning.type_inference import check_types
from cerebro_plpy.preprocessing.recipe.recipe import MISSING, Recipe
from cerebro_plpy.preprocessing.remarks.nested_values import describe_unusable
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.rows.split import (
    naming_columns,
    read_split,
    row_hash,
    side_conditions,
)
from cerebro_plpy.preprocessing.values.columns import RawColumn, read_columns
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.preprocessing.values.families import TEXT

PASSENGERS = """
    CREATE TABLE passengers AS
    SELECT n AS passenger_id, 'name ' || md5(n::text) || ' of the ship' AS name,
           CASE WHEN n % 10 > 0 THEN (n * 7919 % 80)::numeric END AS age,
           (n % 3 + 1)::smallint AS class, (ARRAY['C', 'Q', 'S', NULL])[n % 4 + 1] AS port,
               n % 2 = 0 AS alone,
           CASE WHEN n % 97 = 0 THEN 'Infinity' ELSE exp(n % 40)::text END::double precision AS
               fare,
           NULL::text AS nothing, md5(n::text) AS token,
           'the same' AS ship, timestamp '1912-04-10 12:00' + n * interval '1 minute' AS boarded,
           point(1, 2) AS list,
           CASE WHEN n = 7 THEN 'once' WHEN n % 5 = 0 THEN 'a "b" % {}' ELSE '' END
               AS "odd "" name %s {}"
    FROM generate_series(1, 2000) AS n"""
NAMED = "all of its values differ, and it is called an id or a number: it names a row"
TABLE = Relation("passengers", "public", "passengers", 1, '"public"."passengers"')
EVERYWHERE = Source("passengers", Expression("true"), Expression("t.passenger_id::bigint << 32"))


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.rows(PASSENGERS)


@pytest.fixture(scope="module")
def session(bench: Workbench) -> Session:
    return Session(bench)


@pytest.fixture(scope="module")
def raw(bench: Workbench, session: Session, tables: None) -> tuple[RawColumn, ...]:
    return columns_of(bench, session, "passengers")


def columns_of(bench: Workbench, session: Session, table: str) -> tuple[RawColumn, ...]:
    return read_columns(session, bench.value("SELECT %s::regclass::oid::bigint", table))


def test_columns_of_domains_and_keys(bench: Workbench, session: Session) -> None:
    bench.rows("""
        CREATE DOMAIN cents AS numeric(9, 2) CHECK (VALUE >= 0);
        CREATE DOMAIN price AS cents;
        CREATE TYPE size AS ENUM ('S', 'L');
        CREATE TABLE shirts (a price, b size, gone text, c xml, d varchar(3), k integer, l date,
            PRIMARY KEY (l, k));
        ALTER TABLE shirts DROP gone""")
    assert columns_of(bench, session, "shirts") == (
        RawColumn("a", "price", "numeric", False, "numeric"),
        RawColumn("b", "size", TEXT, False, "public.size"),
        RawColumn("c", "xml", None, False, "xml"),
        RawColumn("d", "character varying(3)", TEXT, False, "text"),
        RawColumn("k", "integer", "integer", True, "integer"),
        RawColumn("l", "date", "date", True, "date"),
    )


def test_only_a_key_of_one_column_names_a_row(bench: Workbench, session: Session) -> None:
    """A part of a key is judged by its values, as the store in a key of stores and receipts."""
    bench.rows("""
        CREATE TABLE receipts AS
            SELECT n % 4 AS store, n AS receipt_no, n % 7 AS amount, n AS key_included
            FROM generate_series(1, 100) n;
        ALTER TABLE receipts ADD PRIMARY KEY (store, receipt_no)""")
    recipe = learned(
        session, columns_of(bench, session, "receipts"), everything("receipts", "receipt_no")
    )
    assert [each.column for each in recipe.inputs] == ["store", "amount", "key_included"]
    bench.rows("""
        ALTER TABLE receipts DROP CONSTRAINT receipts_pkey;
        ALTER TABLE receipts ADD PRIMARY KEY (receipt_no) INCLUDE (store)""")
    raw = columns_of(bench, session, "receipts")
    assert [each.name for each in raw if each.names_row] == ["receipt_no"]


def everything(table: str, key: str) -> Source:
    """All rows of a table, in an order that depends on whole numbers."""
    return Source(table, Expression("true"), Expression(f"t.{key}::bigint << 32"))


def learned(
    session: Session,
    raw: tuple[RawColumn, ...],
    source: Source = EVERYWHERE,
    types: Mapping[str, str] | None = None,
) -> Recipe:
    return fit_recipe(session, source, raw, types or {})


def test_each_column_becomes_what_it_is(session: Session, raw: tuple[RawColumn, ...]) -> None:
    recipe = learned(session, raw)
    found = {each.column: each for each in recipe.features}
    kinds = {name: type(each) for name, each in found.items() if not isinstance(each, LeftOut)}
    assert kinds == {
        "age": Number, "class": Number, "port": Category, "alone": Category, "fare": Number,
        "boarded": Moment,
        'odd " name %s {}': Category, "name": Text,
    }  # fmt: skip
    reasons = {name: each.reason for name, each in found.items() if isinstance(each, LeftOut)}
    assert reasons == {
        "passenger_id": NAMED,
        "token": "all of its values differ: it names a row",
        "nothing": "it is NULL in all rows",
        "ship": "it has one value only",
        "list": describe_unusable(RawColumn("list", "point", None, False)),
    }
    assert isinstance(found["port"], Category) and found["port"].values == ("C", "Q", "S")
    odd = found['odd " name %s {}']
    assert isinstance(odd, Category) and odd.values == ("", 'a "b" % {}')
    age, fare = found["age"], found["fare"]
    assert isinstance(age, Number) and age.missing and 35 <= age.scale.center <= 45
    assert isinstance(fare, Number) and not fare.missing and fare.scale.width < 1e18


def test_it_applies_to_the_rows_that_it_came_of(
    session: Session, raw: tuple[RawColumn, ...]
) -> None:
    recipe = learned(session, raw)
    numbers, codes = encoded(session, recipe, "passengers")
    assert len(numbers) == 2000
    scaled = sum(what != MISSING for _, what in recipe.numbers)
    assert all(len(row) == len(recipe.numbers) and set(row[scaled:]) <= {0, 1} for row in numbers)
    values = [number for row in numbers for number in row[:scaled]]
    assert -0.5 < statistics.median(values) < 0.5 and max(map(abs, values)) <= FARTHEST
    assert all(
        0 <= code < most
        for row in codes
        for code, most in zip(row, recipe.cardinalities, strict=True)
    )


def test_rows_that_are_held_back_change_nothing(
    session: Session, bench: Workbench, raw: tuple[RawColumn, ...]
) -> None:
    split = read_split("train", "random 0.25")
    keyed = [each._replace(key=each.name == "passenger_id") for each in raw]
    source = Source(
        "passengers", side_conditions(split, keyed, 5).training, row_hash(("passenger_id",), 6)
    )
    before = learned(session, raw, source)
    text, values = source.side
    change = f"""
        UPDATE passengers t SET age = 1e9, port = 'X', fare = 'NaN', ship = 'another',
            name = repeat('of words ', 300) WHERE NOT ({text}) RETURNING 1"""
    bench.rows("BEGIN")
    try:
        assert 400 < len(session.run(change, values)) < 600
        assert learned(session, raw, source) == before
    finally:
        bench.rows("ROLLBACK")


def test_the_caller_may_say_what_a_column_is(session: Session, raw: tuple[RawColumn, ...]) -> None:
    types = {"class": "category", "name": "category", "passenger_id": "number", "port": "text"}
    recipe = learned(session, raw, types=types)
    found = {each.column: each for each in recipe.features}
    assert isinstance(found["class"], Category) and sorted(found["class"].values) == ["1", "2", "3"]
    assert isinstance(found["passenger_id"], Number)
    assert found["name"] == LeftOut("name", "no value is there twice")
    port = found["port"]
    assert isinstance(port, Text) and (port.words, port.buckets, len(port.rarities)) == (
        8,
        256,
        256,
    )
    for name, kind in (
        ("nowhere", "number"),
        ("name", "vector"),
        ("list", "category"),
        ("age", "image"),
        ("age", "text"),
    ):
        with pytest.raises(InvalidParameter, match=name):
            check_types("train", raw, {name: kind}, TABLE)


@pytest.mark.parametrize("type_name", ["json", "jsonb"])
def test_json_is_numbers_where_all_of_it_is(
    bench: Workbench, session: Session, type_name: str
) -> None:
    """And else categories; the caller may say it."""
    bench.rows(f"""
        CREATE TABLE {type_name}_values AS
        SELECT to_json(n * 7 % 90)::{type_name} AS number,
               (ARRAY['1.5', 'null', NULL, '-2e3'])[n % 4 + 1]::{type_name} AS gaps,
               (ARRAY['1', '"one"', 'true', '[]', NULL, 'null'])[n % 6 + 1]::{type_name} AS mixed,
               (ARRAY['"null"', 'null'])[n % 2 + 1]::{type_name} AS one,
                   NULL::{type_name} AS nothing,
               (ARRAY['"x"', '3'])[n % 2 + 1]::{type_name} AS settled, 'null'::{type_name} AS null
        FROM generate_series(1, 200) n""")
    raw = columns_of(bench, session, f"{type_name}_values")
    source = Source(
        f"{type_name}_values", Expression("true"), Expression("(t.number::text)::bigint << 32")
    )
    settled = learned(session, raw, source, {"settled": "number", "number": "category"})
    assert {each.column: each.kind for each in settled.inputs} == {
        "number": "category", "gaps": "number", "mixed": "category", "one": "category",
        "settled": "number"
    }  # fmt: skip
    found = {each.column: each for each in learned(session, raw, source).features}
    number, gaps, mixed = found["number"], found["gaps"], found["mixed"]
    assert isinstance(number, Number) and not number.missing and 35 <= number.scale.center <= 55
    assert isinstance(gaps, Number) and gaps.missing and gaps.scale.edges[0] == -2000
    assert isinstance(mixed, Category) and {*mixed.values} == {"1", "one", "true", "[]"}
    assert found["one"] == Category("one", ("null",), "scalar")
    reasons = {name: each.reason for name, each in found.items() if isinstance(each, LeftOut)}
    assert reasons == dict.fromkeys(("nothing", "null"), "it is NULL in all rows")
    with pytest.raises(InvalidParameter, match="mixed"):
        check_types("train", raw, {"mixed": "text"}, TABLE)


def test_a_table_of_five_rows(session: Session, raw: tuple[RawColumn, ...]) -> None:
    five = Source(
        "(SELECT * FROM passengers ORDER BY passenger_id LIMIT 5)",
        Expression("true"),
        EVERYWHERE.hash,
    )
    kinds = {each.column: each.kind for each in learned(session, raw, five).inputs}
    assert {"age", "class", "alone"} <= kinds.keys()


def test_a_table_without_rows(session: Session, raw: tuple[RawColumn, ...]) -> None:
    nobody = Source("passengers", Expression("false"), EVERYWHERE.hash)
    assert not learned(session, raw, nobody).inputs


def test_what_names_a_row() -> None:
    named = [RawColumn("a", "integer", "integer", True), RawColumn("b", "text", "text", False)]
    assert naming_columns(named, read_split("train", None)) == ("a",)
    assert naming_columns(named[1:], read_split("train", None)) == ("b",)
    assert naming_columns(named, read_split("train", "group b")) == ("b",)
