"""What is made of a row depends on no setting of the session, so that a version predicts alike in
all of them.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from drawn_recipes import SCALES, moments
from drawn_settings import TIME_FORMATS
from hypothesis import given
from hypothesis import strategies as st
from recipes import Session
from trials import trials
from workbench import Workbench

from cerebro_plpy.database.reading import TEXTS
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.preprocessing.kinds.category import Category
from cerebro_plpy.preprocessing.kinds.feature import Feature
from cerebro_plpy.preprocessing.kinds.number import Number
from cerebro_plpy.preprocessing.recipe.encoding import encode
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.recipe.split_encoding import raw_inputs
from cerebro_plpy.preprocessing.rows.value_comparison import comparable, compare
from cerebro_plpy.preprocessing.values import canonical_text
from cerebro_plpy.preprocessing.values.column_values import styled_text
from cerebro_plpy.preprocessing.values.columns import RawColumn, read_columns
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.preprocessing.values.families import MOMENTS, NUMBERS
from cerebro_plpy.records import replace

VALUES = {
    "date": (
        "2024-02-03",
        "1999-12-31",
        "infinity",
        "-infinity",
        "0044-03-15 BC",
        "12024-01-01",
        None,
    ),
    "timestamp": (
        "2024-02-03 04:05:06",
        "2024-12-31 23:59:59.9999",
        "infinity",
        "0044-03-15 01:00 BC",
        "12024-01-01 01:00",
    ),
    "timestamptz": (
        "2024-02-03 23:30:00+00",
        "1900-01-01 00:00:00.5+05",
        "-infinity",
        "0044-03-15 01:00+00 BC",
        None,
    ),
    "time": ("04:05:06.789", "24:00", "00:00"),
    "timetz": ("04:05:06.789+05:30", "23:00-08", None),
    "interval": (
        "1 year -2 mons +3 days -04:05:06.7",
        "-1 days",
        "-00:00:01",
        "13 mons",
        "1 day 2 hours",
        "0",
    ),
    "money": ("1234567.89", "-0.05", "0", "92233720368547758.07", "-92233720368547758.08", None),
    "numeric": ("1234.5", "NaN", "-1e-20"),
    "real": ("0.1", "-Infinity", "1e20"),
    "bytea": ("\\x00ff", None),
    "boolean": ("t", "f"),
}
"""Texts of values, by types."""
LOCALES = st.sampled_from(
    subprocess.run(["locale", "-a"], capture_output=True, text=True, check=True).stdout.split()
)
SETTINGS = st.fixed_dictionaries(
    TIME_FORMATS | {f"lc_{what}": LOCALES for what in ("monetary", "numeric", "time")}
)


@pytest.fixture(scope="module")
def session(bench: Workbench) -> Session:
    """A table with a column of each type."""
    bench.rows("SET lc_monetary = 'C'")
    lists = ", ".join(f"%s::text[]::{name}[]" for name in VALUES)
    columns = ", ".join(f'"the {name}"' for name in VALUES)
    bench.rows(
        f"CREATE TABLE kept AS SELECT * FROM ROWS FROM (unnest({lists})) AS v ({columns})",
        *map(list, VALUES.values()),
    )
    bench.rows("RESET lc_monetary")
    return Session(bench)


@pytest.fixture(scope="module")
def columns(bench: Workbench, session: Session) -> tuple[RawColumn, ...]:
    return read_columns(session, bench.value("SELECT 'kept'::regclass::oid::bigint"))


@contextmanager
def under(session: Session, settings: dict[str, str]) -> Iterator[None]:
    session.run("BEGIN")
    try:
        session.run(
            "SELECT set_config(s.key, s.value, true) FROM json_each_text(%s::json) s",
            (json.dumps(settings),),
        )
        yield
    finally:
        session.run("ROLLBACK")


def rows(
    session: Session, settings: dict[str, str], *expressions: Expression, source: str = "kept"
) -> Any:
    with under(session, {"extra_float_digits": "1", "bytea_output": "hex", **settings}):
        statement = f"SELECT {', '.join(each.text for each in expressions)} FROM {source} t"
        return repr(
            session.run(statement, [value for each in expressions for value in each.values])
        )


def features(column: RawColumn, known: list[str]) -> st.SearchStrategy[Feature]:
    """What may become of a column that has these values."""
    values = st.lists(
        st.sampled_from(known) | st.text("a1:-", max_size=5), min_size=1, max_size=5, unique=True
    )
    found: list[st.SearchStrategy[Feature]] = [
        st.builds(Category, st.just(column.name), values.map(tuple), st.just(column.family))
    ]
    if column.family in MOMENTS:
        found.append(moments(column.family).map(lambda moment: replace(moment, column=column.name)))
    if column.family in NUMBERS:
        found.append(
            st.builds(
                Number, st.just(column.name), st.just(column.family), SCALES, st.just(value=True)
            )
        )
    return st.one_of(found)


@trials(100)
@given(data=st.data(), settings=SETTINGS)
def test_a_recipe_gives_the_same_under_all_settings(
    session: Session, columns: tuple[RawColumn, ...], data: st.DataObject, settings: dict[str, str]
) -> None:
    drawn = [
        data.draw(features(each, [text for text in VALUES[each.name[4:]] if text]))
        for each in columns
        if each.family != "bytea"
    ]
    recipe = Recipe(tuple(drawn))
    expressions = [*encode(recipe), *(each.value for each in raw_inputs(recipe))]
    assert rows(session, settings, *expressions) == rows(session, dict(TEXTS), *expressions)


@trials(60)
@given(settings=SETTINGS)
def test_values_have_the_texts_that_recipes_know(
    session: Session, columns: tuple[RawColumn, ...], settings: dict[str, str]
) -> None:
    """They are the plain ones under those settings, and they are read again under all others."""
    names = {each: f"t.{quote_identifier(each.name)}" for each in columns}
    plain = [
        Expression(
            f"({name} AT TIME ZONE 'UTC')::text"
            if column.family == "timestamptz"
            else f"{name}::text"
        )
        for column, name in names.items()
    ]
    told = [styled_text(column.name, column.family) for column in columns]
    told.append(Expression(canonical_text.amount('t."the money"')))
    plain.append(Expression('t."the money"::numeric'))
    assert rows(session, settings, *told) == rows(session, dict(TEXTS), *plain)
    objects = ", ".join(
        f"{canonical_text.as_json(name, each.family)}" for each, name in names.items()
    )
    written = Expression(
        f'jsonb_build_array({objects}, cerebro_internal.canonical_json(ARRAY[t."the date"]))::text'
    )
    objects = ", ".join(names.values())
    expected = Expression(f'jsonb_build_array({objects}, ARRAY[t."the date"])::text')
    assert rows(session, settings, written) == rows(session, dict(TEXTS), expected)


@trials(60)
@given(settings=SETTINGS, others=SETTINGS)
def test_a_value_that_is_written_is_read_again(
    session: Session,
    columns: tuple[RawColumn, ...],
    settings: dict[str, str],
    others: dict[str, str],
) -> None:
    """Such as where the rows that are held back begin, which another session compares with."""
    for column in columns:
        text = Expression(canonical_text.comparable_text(comparable(column), column.family))
        with under(session, settings):
            kept = [text for (text,) in session.run(f"SELECT {text.text} FROM kept t")]
        for place, value in enumerate(kept):
            equal = compare(column, "=", value)
            numbered = "(SELECT v.*, row_number() OVER () AS place FROM kept v)"
            with under(session, others):
                statement = f"SELECT {equal.text} FROM {numbered} t WHERE t.place = %s"
                assert session.run(statement, (*equal.values, place + 1)) == [
                    (None if value is None else True,)
                ]


def test_an_amount_of_money_as_it_was_written_before(
    session: Session, columns: tuple[RawColumn, ...]
) -> None:
    (money,) = (each for each in columns if each.family == canonical_text.MONEY)
    for text, count in (("$1,234,567.89", 4), ("-$0.05", 2)):
        less = compare(money, "<=", text)
        assert session.run(f"SELECT count(*) FROM kept t WHERE {less.text}", less.values) == [
            (count,)
        ]
