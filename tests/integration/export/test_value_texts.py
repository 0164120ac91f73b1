"""A value has the same text in the database and in an exported recipe, in every form."""

from __future__ import annotations

import string
from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from trials import trials
from workbench import Workbench

from cerebro_db.export.recipe.rows import RawRows
from cerebro_db.export.recipe.value_texts import FORMS as EXPORTED_FORMS
from cerebro_db.export.recipe.value_texts import encode_categories
from cerebro_plpy.preprocessing.values import value_texts
from cerebro_plpy.preprocessing.values.value_texts import FORMS, fits, own_text, text_in_form

pytestmark = pytest.mark.postgresql("texts are the same on Greenplum")

WORDS = ("yes", "No ", "T", "off", "1", "0", "0042", "1.50", "-0", "1e3", "a b", "ÄÖ", "2024-01-31")
TEXTS = st.sampled_from(WORDS) | st.text(string.ascii_letters + string.digits + " .-+", max_size=9)
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))
ZONES = st.integers(-15 * 60, 15 * 60).map(lambda m: timezone(timedelta(minutes=m)))
SINGLES = st.floats(width=32, allow_nan=False, allow_subnormal=False)
NUMERICS = st.decimals(-(10**20), 10**20, allow_nan=False, places=6) | st.sampled_from(
    [Decimal(text) for text in ("1.00", "0.0", "-0.00", "1e-20", "100", "1e15")]
)
LARGEST = 2**63 - 1
TYPES: dict[str, tuple[str, str, st.SearchStrategy[Any]]] = {
    "text": ("text", "text", TEXTS),
    "citext": ("citext", "text", TEXTS),
    "boolean": ("boolean", "boolean", st.booleans()),
    "bit": ("bit", "bit(1)", st.sampled_from("01")),
    "bigint": ("integer", "bigint", st.integers(-LARGEST, LARGEST)),
    "numeric": ("numeric", "numeric", NUMERICS),
    "double": ("real", "double precision", st.floats(allow_nan=False)),
    "single": ("real", "real", SINGLES.map(np.float32)),
    "date": ("date", "date", st.dates()),
    "timestamp": ("timestamp", "timestamp", MOMENTS),
    "midnight": ("timestamp", "timestamp", st.dates().map(lambda d: datetime.combine(d, time()))),
    "timestamptz": ("timestamptz", "timestamptz", MOMENTS.map(lambda m: m.replace(tzinfo=UTC))),
    "time": ("time", "time", st.times()),
    "timetz": ("time", "timetz", st.builds(time.replace, st.times(), tzinfo=ZONES)),
    "interval": (
        "interval",
        "interval",
        st.timedeltas(timedelta(days=-999), timedelta(days=999)),
    ),
}
"""The family, the type and values of it by name."""
VALUES = st.sampled_from(sorted(TYPES)).flatmap(
    lambda name: st.tuples(st.just(name), TYPES[name][2])
)


def test_both_have_the_same_forms_and_words() -> None:
    assert {*EXPORTED_FORMS} == {*FORMS, "integer"}
    for name in ("TRUE_WORDS", "FALSE_WORDS"):
        exported = __import__("cerebro_db.export.recipe.value_texts", fromlist=[name])
        assert getattr(exported, name) == getattr(value_texts, name)


@trials(300)
@given(VALUES)
@example(("numeric", Decimal("1.00")))
@example(("double", -0.0))
@example(("double", 3.417974314635595e16))
@example(("single", np.float32(33554434)))
@example(("double", 1e300))
@example(("double", float("-inf")))
@example(("double", 1e-300))
@example(("single", np.float32(0.1)))
@example(("interval", timedelta(days=1, hours=-25)))
@example(("time", time(23, 59, 59, 999999)))
def test_a_value_has_one_text_in_each_form(bench: Workbench, drawn: tuple[str, Any]) -> None:
    name, value = drawn
    family, type_, _ = TYPES[name]
    texts = {form: text_in_form("v.v", family, form) for form in FORMS}
    possible = {form: text for form, text in texts.items() if text is not None}
    literal = str(value) if isinstance(value, np.floating) else value
    if isinstance(value, timedelta):  # all of it has one sign, as in most tables
        days = int(value.total_seconds() / 86400)
        literal = f"{days} days {(value - timedelta(days)) / timedelta(microseconds=1)} us"
    selected = ", ".join([own_text("v.v", family), *possible.values()])
    ((own, *rows),) = bench.rows(f"SELECT {selected} FROM (SELECT %s::{type_} AS v) v", literal)
    for form, text in zip(possible, rows, strict=True):
        assert EXPORTED_FORMS[form](value) == text, form
    assert own is not None


@trials(200)
@given(VALUES, st.lists(TEXTS, min_size=1, max_size=3, unique=True))
def test_both_refuse_the_same_values(drawn: tuple[str, Any], known: list[str]) -> None:
    """A text is more than a value of another type, unless all known texts are such values."""
    name, value = drawn
    for form in FORMS:
        try:
            encode_categories(known, form, [value])
            is_accepted = True
        except ValueError:
            is_accepted = False
        if name == "bit":
            continue  # a driver returns a bit as a text
        assert is_accepted == fits(TYPES[name][0], form, known), (form, name)


@trials(60)
@given(st.integers(-(10**6), 10**6), st.integers(0, 4))
def test_equal_numbers_have_one_text(bench: Workbench, number: int, places: int) -> None:
    """Of every type that has the number."""
    literal = f"{number / 4:.6f}"
    types = {"numeric": "numeric", "double precision": "real", "real": "real", "jsonb": "json"}
    texts = [own_text(f"(%s::{type_})", family) for type_, family in types.items()]
    padded = literal + "0" * places
    count = sum(text.count("%s") for text in texts)
    ((*rows,),) = bench.rows(f"SELECT {', '.join(texts)}", *[padded] * count)
    assert len({*rows}) == 1


def test_nothing_is_known_of_nan_and_null(bench: Workbench) -> None:
    values = {"real": "'NaN'::real", "numeric": "'NaN'::numeric", "json": "'null'::jsonb"}
    for family, value in values.items():
        assert bench.value(f"SELECT {own_text(value, family)}") is None
        for form in FORMS:
            text = text_in_form(value, family, form)
            assert text is None or bench.value(f"SELECT {text}") is None, (family, form)


def test_the_end_of_a_day_is_not_its_beginning(bench: Workbench) -> None:
    assert bench.value(f"SELECT {own_text(chr(39) + '24:00' + chr(39) + '::time', 'time')}") == (
        "24:00:00"
    )
    assert encode_categories(["00:00:00", "24:00:00"], "time", ["24:00:00", time()]) == [2, 1]


def test_unknown_values_are_counted_once_a_column() -> None:
    feature = {"kind": "category", "column": "shop", "family": "number", "values": ["1", "2"]}
    rows = RawRows({"features": [feature]})
    with pytest.warns(UserWarning, match="column shop has 3 values, such as '7', '8'") as warned:
        codes = rows.inputs({"shop": [1.0, 7, None, "2", 8, 7]})["codes"]
    assert codes.ravel().tolist() == [1, 0, 0, 2, 0, 0]
    assert len(warned) == 1
