"""The texts by which equal values are recognized, whatever their types are.

Categories, classes and groups are remembered as texts of one *form*. A form is a family of types
whose equal values have one text: numbers without trailing zeros, `true` and `false`, dates as in
ISO 8601. A column of another family is converted by value; it does not fit if that could mistake
one value for another. The exported recipe computes the same texts in
`cerebro_db/export/recipe/value_texts.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from cerebro_plpy.preprocessing.values import json_scalars
from cerebro_plpy.preprocessing.values.canonical_text import MONEY, amount, styled_text
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.families import (
    BIT,
    BOOLEAN,
    CITEXT,
    JSON,
    NUMBERS,
    POINTS,
    SCALAR,
    TEXT,
)

NUMBER = "number"
"""The form of numbers: all digits, without an exponent, trailing zeros or a sign of 0."""
SINGLE = "single"
"""The form of numbers of type real: those that round to one value of it have one text."""
TIMES = ("date", "timestamp", "timestamptz", "time", "interval")
FORMS = (TEXT, CITEXT, BOOLEAN, NUMBER, SINGLE, SCALAR, *TIMES)
OLD_FORMS = (*NUMBERS, JSON)
"""Forms of earlier recipes: the text of a column as PostgreSQL writes it."""
FAMILY_OF_FORM = {NUMBER: "numeric", SINGLE: "real"}
"""Families of columns that have a form if no column is known; other forms are named like them."""
FORM_OF_FAMILY = {
    TEXT: TEXT,
    CITEXT: CITEXT,
    BOOLEAN: BOOLEAN,
    BIT: BOOLEAN,
    JSON: SCALAR,
    SCALAR: SCALAR,
    **dict.fromkeys(NUMBERS, NUMBER),
    **{family: family for family in TIMES},
}
WRITTEN = (TEXT, CITEXT)
UNWRITTEN = ("timestamptz", "interval", BIT)
"""Families whose values have several texts in use."""
TRUTHS = (BOOLEAN, BIT)
JSONS = (JSON, SCALAR)
TRUE_WORDS = ("t", "true", "y", "yes", "on", "1")
FALSE_WORDS = ("f", "false", "n", "no", "off", "0")
"""Texts that PostgreSQL reads as a boolean."""
NUMBER_PATTERN = r"^-?(0|[1-9][0-9]{0,254})([.][0-9]{1,254})?([eE][-+]?[0-9]{1,3})?$"
"""Texts that are a number: a leading zero, as in 0042, makes a code of it."""
SMALLEST_SINGLE = "'1e-37'::numeric"
LARGEST_SINGLE = "'3.4e38'::numeric"
"""Absolute values beyond these do not fit into real."""
TEXTS_OF_FAMILIES = {
    **dict.fromkeys(NUMBERS, re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?")),
    **dict.fromkeys(TRUTHS, re.compile("true|false")),
    "date": re.compile("[0-9]{4,}-[0-9]{2}-[0-9]{2}"),
    "timestamp": re.compile("[0-9]{4,}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}.*"),
    "time": re.compile("[0-9]{2}:[0-9]{2}:[0-9]{2}.*"),
}
"""The texts that values of families have in their own form."""


def find_form(column: RawColumn) -> str:
    """Return the form in which values of a column are remembered."""
    family = column.family or TEXT
    if family == "real" and column.compared == "real":
        return SINGLE
    return FORM_OF_FAMILY.get(family, TEXT)


def own_text(name: str, family: str | None) -> str:
    """Return the text of a value in the form of its family; NULL for NaN and the null of JSON."""
    if family == BIT:
        return f"({name}::text = '1')::text"
    if family == CITEXT:
        return lower_text(name)
    if family in NUMBERS:
        return _number_text(name, family)
    if family in JSONS:
        return scalar_text(name)
    return styled_text(name, family)


def text_in_form(name: str, family: str | None, form: str) -> str | None:
    """Return the text of a value in a form, NULL if it has none there.

    The result is None if values of the family cannot be converted to the form.
    """
    converter = CONVERTERS.get(form)
    if converter is not None:
        return converter(name, family)
    return _same_family(name, family, form)


def fits(family: str | None, form: str, known: Collection[str]) -> bool:
    """Return whether texts in a form can be compared with those of a family, by value.

    A text is more than a value of another type: '0042' is not 42. So another type takes the place
    of a text only if all known texts are texts of that type.
    """
    if text_in_form("", family, form) is None:
        return False
    if form not in WRITTEN or family in (*WRITTEN, *JSONS):
        return True
    pattern = TEXTS_OF_FAMILIES.get(family or "")
    return pattern is not None and all(pattern.fullmatch(text) for text in known)


def zone_cast(name: str, family: str | None, wanted: str) -> str | None:
    """Return SQL that gives a point in time a zone, or takes it away; None for other families."""
    if family not in POINTS or wanted not in POINTS:
        return None
    if family == "date":
        name = f"{name}::timestamp"
    cast = f"{name} AT TIME ZONE 'UTC'"
    if wanted == "date":
        return f"({cast})::date"
    return cast


def lower_text(name: str) -> str:
    """Return a text in the small letters of the database, as citext compares it."""
    return f'pg_catalog.lower({name}::text COLLATE pg_catalog."default")'


def scalar_text(name: str) -> str:
    """Return the text of a value of JSON: a string without quotes, a number as any number."""
    json = f"({name})::json"
    number = _numeric_text(json_scalars.number(name))
    is_number = f"pg_catalog.json_typeof({json}) = 'number'"
    text = f"{json} #>> '{{}}'::text[]"
    return f"(CASE WHEN {is_number} THEN coalesce({number}, {text}) ELSE {text} END)"


def _numeric_text(number: str) -> str:
    """Return the text of a numeric without trailing zeros; NULL for NaN."""
    digits = f"pg_catalog.rtrim(({number} + '0.0'::numeric)::text, '0')"
    return f"nullif(pg_catalog.rtrim({digits}, '.'), 'NaN')"


def finite_text(number: str) -> str:
    """Return the text of a floating-point number that is finite, in the form of numbers."""
    # Its text has all its digits; a cast to numeric has 15.
    return _numeric_text(f"{number}::text::numeric")


def _number_text(name: str, family: str) -> str:
    if family == "integer":
        return f"{name}::text"
    if family == "real":
        finite = finite_text(name)
        return f"(CASE WHEN {_is_infinite(name)} THEN {name}::text ELSE {finite} END)"
    return _numeric_text(_numeric(name, family))


def _numeric(name: str, family: str) -> str:
    if family == "real":
        return f"{name}::text::numeric"
    if family == MONEY:
        return amount(name)
    return f"{name}::numeric"


def _is_infinite(name: str) -> str:
    infinity = "'Infinity'::double precision"
    return f"pg_catalog.abs({name}::double precision) = {infinity}"


def _single_of_numeric(number: str) -> str:
    """Return the text of a numeric as the value of type real that is next to it."""
    bounded = f"least(greatest({number}, -{LARGEST_SINGLE}), {LARGEST_SINGLE})::real"
    is_tiny = f"pg_catalog.abs({number}) < {SMALLEST_SINGLE}"
    is_number = f"{number} <> 'NaN'::numeric"
    text = _numeric_text(f"{bounded}::text::numeric")
    return f"(CASE WHEN {is_tiny} THEN '0' WHEN {is_number} THEN {text} END)"


def _numeric_of_text(text: str) -> str:
    """Return the number that a text is; NULL for other texts."""
    trimmed = f"pg_catalog.btrim({text})"
    return f"(CASE WHEN {trimmed} ~ '{NUMBER_PATTERN}' THEN {trimmed}::numeric END)"


def _truth_as_number(truth: str) -> str:
    return f"(CASE {truth} WHEN 'true' THEN '1' WHEN 'false' THEN '0' END)"


def _as_number(name: str, family: str | None) -> str | None:
    if family in NUMBERS:
        return _number_text(name, family or "")
    if family in TRUTHS:
        return _truth_as_number(own_text(name, family))
    return _number_of_written(name, family, _numeric_text)


def _as_single(name: str, family: str | None) -> str | None:
    if family == "real":
        single = _single_of_numeric(f"{name}::text::numeric")
        return f"(CASE WHEN {_is_infinite(name)} THEN {name}::text ELSE {single} END)"
    if family in NUMBERS:
        return _single_of_numeric(_numeric(name, family or ""))
    if family in TRUTHS:
        return _truth_as_number(own_text(name, family))
    return _number_of_written(name, family, _single_of_numeric)


def _number_of_written(name: str, family: str | None, form: Callable[[str], str]) -> str | None:
    """Return the number in a text or a value of JSON, written by `form`."""
    if family in WRITTEN:
        return form(_numeric_of_text(f"{name}::text"))
    if family in JSONS:
        text = scalar_text(name)
        truth = _truth_as_number(text)
        is_truth = f"pg_catalog.json_typeof(({name})::json) = 'boolean'"
        return f"(CASE WHEN {is_truth} THEN {truth} ELSE {form(_numeric_of_text(text))} END)"
    return None


def _as_truth(name: str, family: str | None) -> str | None:
    if family in TRUTHS:
        return own_text(name, family)
    if family in NUMBERS:
        number = _number_text(name, family or "")
        return f"(CASE {number} WHEN '1' THEN 'true' WHEN '0' THEN 'false' END)"
    if family in (*WRITTEN, *JSONS):
        text = own_text(name, family)
        word = f"pg_catalog.lower(pg_catalog.btrim({text}))"
        return (
            f"(CASE WHEN {word} = ANY ({_array(TRUE_WORDS)}) THEN 'true' "
            f"WHEN {word} = ANY ({_array(FALSE_WORDS)}) THEN 'false' END)"
        )
    return None


def _array(words: Collection[str]) -> str:
    return f"'{{{','.join(words)}}}'::text[]"


def _as_written(name: str, family: str | None) -> str | None:
    if family in WRITTEN:
        return f"{name}::text"
    if family in UNWRITTEN or family not in FORM_OF_FAMILY:
        return None
    return own_text(name, family)


def _as_lower(name: str, family: str | None) -> str | None:
    if family in WRITTEN:
        return lower_text(name)
    text = _as_written(name, family)
    return text and lower_text(text)


def _as_scalar(name: str, family: str | None) -> str | None:
    return _as_written(name, family)


def _as_date(name: str, family: str | None) -> str | None:
    if family == "timestamp":
        return f"pg_catalog.substring({styled_text(name, family)}, '^(.*) 00:00:00$')"
    if family in WRITTEN:
        return f"pg_catalog.btrim({name}::text)"
    return _same_family(name, family, "date")


def _as_timestamp(name: str, family: str | None) -> str | None:
    if family == "date":
        return f"({styled_text(name, family)} || ' 00:00:00')"
    if family in WRITTEN:
        return f"pg_catalog.replace(pg_catalog.btrim({name}::text), 'T', ' ')"
    return _same_family(name, family, "timestamp")


def _as_time(name: str, family: str | None) -> str | None:
    return _as_span(name, family, "time")


def _as_interval(name: str, family: str | None) -> str | None:
    return _as_span(name, family, "interval")


def _as_span(name: str, family: str | None, form: str) -> str | None:
    if family in WRITTEN:
        return f"pg_catalog.btrim({name}::text)"
    return _same_family(name, family, form)


def _same_family(name: str, family: str | None, form: str) -> str | None:
    """Return the text of a value if its family is called like the form."""
    if family != form:
        return None
    return styled_text(name, family)


Converter = Callable[[str, "str | None"], "str | None"]
CONVERTERS: dict[str, Converter] = {
    TEXT: _as_written,
    CITEXT: _as_lower,
    BOOLEAN: _as_truth,
    NUMBER: _as_number,
    "integer": _as_number,  # an earlier recipe has the same texts
    SINGLE: _as_single,
    SCALAR: _as_scalar,
    "date": _as_date,
    "timestamp": _as_timestamp,
    "time": _as_time,
    "interval": _as_interval,
}
"""The text of a value in a form by the form; other forms take their own family only."""
