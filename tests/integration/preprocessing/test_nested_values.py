"""Columns of tags, objects and ranges: the reason why they are left out shows what to write."""

from __future__ import annotations

import re

import pytest
from recipes import Session
from workbench import Workbench

from cerebro_plpy.preprocessing.learning.fit_recipe import FittedRecipe, fit_columns
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.values.columns import read_columns
from cerebro_plpy.preprocessing.values.expression import Expression

GOODS = """
    CREATE TABLE goods AS
    SELECT n AS nr, n % 7 AS amount, (ARRAY['sale', 'eco', 'new'])[1:n % 3 + 1] AS tags,
           jsonb_build_object('colour', (ARRAY['red', 'blue'])[n % 2 + 1], 'it''s', n % 40)
               || CASE WHEN n % 2 = 0 THEN '{"rare key": 1}' ELSE '{}' END::jsonb AS "The data",
           json_build_object('a', n) AS plain, to_json((n % 4)::text) AS words,
           int4range(n % 10, n % 10 + 5) AS ages, tsrange(timestamp '2024-01-01'
               + n * interval '1 hour', NULL) AS valid,
           ARRAY[n % 2 = 0, n % 3 = 0] AS flags, ('<a>' || n % 5 || '</a>')::xml AS doc
    FROM generate_series(1, 100) AS n"""
OBJECTS = {"The data": ["colour", "it's", "rare key"], "plain": ["a"]}


@pytest.fixture(scope="module")
def session(bench: Workbench) -> Session:
    bench.rows(GOODS)
    return Session(bench)


def fitted(bench: Workbench, session: Session, table: str) -> FittedRecipe:
    raw = read_columns(session, bench.value("SELECT %s::regclass::oid::bigint", table))
    source = Source(table, Expression("true"), Expression("t.nr::bigint << 32"))
    return fit_columns(session, source, raw, {})


def test_the_expressions_of_a_reason_make_inputs(bench: Workbench, session: Session) -> None:
    recipe, _ = fitted(bench, session, "goods")
    reasons = {each.column: each.explanation or "" for each in recipe.features}
    columns = ("tags", "ages", "valid", "flags", "doc")
    written = [
        part.removeprefix("or for each value that matters, ")
        for name in columns
        for part in reasons[name].partition(" write ")[2].split("; ")
    ]
    assert len(written) == len(columns) + 1
    bench.rows(f"CREATE VIEW opened AS SELECT nr, amount, {', '.join(written)} FROM goods")
    inputs = {each.column for each in fitted(bench, session, "opened").recipe.inputs}
    assert inputs == {
        *("amount", "tags_words", "is_new", "ages_from", "ages_to", "valid_from"),
        *("flags_numbers", "doc_text"),
    }


def test_a_remark_shows_the_keys_of_objects(bench: Workbench, session: Session) -> None:
    recipe, remarked = fitted(bench, session, "goods")
    remarks = {each.column: each.text for each in remarked}
    # The values of a column that is left out all differ, which is no reason.
    remarks |= {each.column: str(each.explanation) for each in recipe.features if not each.is_input}
    assert {*OBJECTS} <= {*remarks} and "words" not in remarks
    for column, keys in OBJECTS.items():
        (written,) = re.findall("write (.*) in a view", remarks[column])
        values = bench.rows(f"SELECT {written} FROM goods")
        expected = [f"""("{column}" ->> %s)"""] * len(keys)
        assert [*map(set, zip(*values, strict=True))] == [
            *map(
                set,
                zip(*bench.rows(f"SELECT {', '.join(expected)} FROM goods", *keys), strict=True),
            )
        ]
