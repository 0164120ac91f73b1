"""Numbers and dates in texts: recognised on a sample, and read alike in SQL and without it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recipes import Session
from trials import trials
from workbench import Workbench

from cerebro_db.export.recipe import text_formats as exported
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.preprocessing.kinds.left_out import LeftOut
from cerebro_plpy.preprocessing.learning.fit_recipe import FittedRecipe, fit_columns
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.values.column_values import unread_text
from cerebro_plpy.preprocessing.values.columns import read_columns
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.preprocessing.values.text_formats import (
    MOMENT_FORMATS,
    NUMBER_FORMATS,
    UNITS,
    text_moment,
    text_number,
)

LOOKS = """
    CREATE TABLE looks AS
    SELECT n, CASE WHEN n % 7 = 0 THEN '  ' ELSE (n * 37 % 1000)::numeric(9, 2)::text END AS plain,
           replace((20 + n % 97 + 0.25)::text, '.', ',') AS comma,
           to_char(1000 + n * 37 % 9000, 'FM$9,999.00') AS dollars,
           '1.' || lpad((n * 7 % 1000)::text, 3, '0') || ',50 €' AS euros,
           '-1 ' || lpad((n * 7 % 1000)::text, 3, '0') || ',5' AS blanks,
           n % 101 || ' %' AS share, (n % 40 + 18)::text AS age,
           (n * 1.5 - 9)::text || 'e-2' AS tiny,
           to_char(date '2023-01-01' + n, 'YYYY-MM-DD') AS iso,
           to_char(date '2023-01-01' + n, 'FMDD.FMMM.YYYY') AS german,
           to_char(date '2023-01-01' + n, 'MM/DD/YYYY') AS american,
           to_char(date '2023-01-01' + n, 'YYYYMMDD') AS compact,
           to_char(timestamp '2023-01-01' + n * interval '1 hour', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
               AS stamp,
           to_char(timestamp '2023-01-01' + n * interval '7 hours', 'MM/DD/YYYY FMHH12:MI AM')
               AS half,
           (n % 10)::text AS few, lpad((n * 7 % 1000)::text, 5, '0') AS zip,
           (10000 + n * 31)::text AS code, CASE WHEN n % 50 = 0 THEN '<100' ELSE (n * 3)::text END
               AS mixed,
           CASE WHEN n % 2 = 0 THEN '1,' || lpad(n::text, 3, '0') ELSE (n % 100)::text END AS two,
           to_char(date '2023-01-01' + n % 10, 'DD/MM/YYYY') AS either,
           to_char(date '2023-01-01' + n, 'DD-Mon-YYYY') AS named,
           to_char(date '2023-01-01' + n, 'FMMon DD, YYYY') AS named_first,
           to_char(date '2023-01-01' + n, 'DD.MM.YY') AS short,
           CASE WHEN n % 9 = 0 THEN '0000-00-00' ELSE to_char(date '2023-01-01' + n, 'YYYY-MM-DD')
               END AS zero,
           md5(n::text) AS token, 'SKU-' || n AS sku
    FROM generate_series(1, 400) AS n"""
READ = {
    "plain": "text as 1,234.50",
    "comma": "text as 1.234,50",
    "dollars": "text as $1,234.50",
    "euros": "text as 1.234,50 €",
    "blanks": "text as 1.234,50",
    "share": "text as 12.5%",
    "age": "text as 1,234.50",
    "tiny": "text as 1,234.50",
    "iso": "text as YYYY-MM-DD",
    "german": "text as DD.MM.YYYY",
    "american": "text as MM/DD/YYYY",
    "compact": "text as YYYYMMDD",
    "stamp": "text as YYYY-MM-DD HH:MM",
    "half": "text as MM/DD/YYYY HH:MM",
}
DOUBTFUL = {
    "named": """to_date(nullif(btrim("named"), ''), 'DD-Mon-YYYY') AS "named\"""",
    "named_first": """to_date(nullif(btrim("named_first"), ''), 'Mon DD, YYYY')""",
    "short": """to_date(nullif(btrim("short"), ''), 'DD.MM.YY') AS "short\"""",
    "zero": """89 % of its texts look like dates (YYYY-MM-DD)""",
    "few": """types => '{"few": "number"}' reads them so""",
    "code": """whole numbers of one length, as codes are""",
    "mixed": """98 % of its texts look like numbers""",
    "two": """nullif(btrim(replace("two", ',', '')), '')::numeric AS "two" (1,234.50) or """,
    "either": """to_date(nullif(btrim("either"), ''), 'DD.MM.YYYY') AS "either" (DD.MM.YYYY) or""",
}
EPOCH = datetime(1970, 1, 1)
DIGITS = st.text("0123456789", min_size=1, max_size=5)
NUMBERS = st.builds(
    "".join,
    st.lists(
        DIGITS | st.sampled_from([*UNITS, *".,+-() '\u2019\u00a0\u202f", "e", "E-", ""]),
        max_size=7,
    ),
)
WRITTEN = st.builds(
    "{}{}{:,.2f}{}{}".format,
    st.sampled_from(["", " ", "-", "+ "]),
    st.sampled_from(["", "$", "€ ", "USD "]),
    st.floats(0, 1e12),
    st.sampled_from(["", " €", "%", "GBP"]),
    st.sampled_from(["", " ", "\t"]),
)
SWAPPED = WRITTEN.map(lambda text: text.translate(str.maketrans(".,", ",.")))
MARKS = st.sampled_from(["-", "/", ".", ""])
CLOCKS = st.sampled_from(
    ["", " 9:05", " 09:05:30", "T23:59:59.999999", " 12:00 AM", " 1:02:03 pm", " 24:00", " 10:00Z",
     "T10:00:00+05:30", "T10:00 -0330", "T00:00+14", " 00:00:60", "T10:00:00.1234567"]
)  # fmt: skip
DATES = st.builds(
    lambda parts, mark, clock, blank: f"{blank}{mark.join(parts)}{clock}{blank}",
    st.permutations(["year", "month", "day"]).flatmap(
        lambda order: st.tuples(
            *(
                {
                    "year": st.sampled_from(["1000", "1900", "2000", "2023", "2024", "2999", "24"]),
                    "month": st.integers(0, 13).flatmap(
                        lambda n: st.sampled_from([str(n), f"{n:02}"])
                    ),
                    "day": st.sampled_from([1, 28, 29, 30, 31, 32, 0]).flatmap(
                        lambda n: st.sampled_from([str(n), f"{n:02}"])
                    ),
                }[part]
                for part in order
            )
        )
    ),
    MARKS,
    CLOCKS,
    st.sampled_from(["", " "]),
)


@pytest.fixture(scope="module")
def session(bench: Workbench) -> Session:
    bench.rows(LOOKS)
    return Session(bench)


def fitted(bench: Workbench, session: Session, **types: str) -> FittedRecipe:
    raw = read_columns(session, bench.value("SELECT 'looks'::regclass::oid::bigint"))
    source = Source("looks", Expression("true"), Expression("t.n::bigint << 32"))
    return fit_columns(session, source, raw, types)


def values_of(session: Session, texts: Sequence[str], expression: str) -> list[object]:
    """An expression over texts `v.x`, in their order."""
    rows = session.run(
        f"SELECT {expression} FROM json_array_elements_text(%s::json) WITH ORDINALITY v (x, n) "
        "ORDER BY v.n",
        (json.dumps(texts),),
    )
    return [value for (value,) in rows]


def unread(session: Session, texts: Sequence[str], family: str) -> list[object]:
    """The texts that are counted as unknown values of a column in a format."""
    return values_of(session, texts, unread_text("x", family, "v").text)


TEXT = '(v.x COLLATE pg_catalog."C")'


@trials(60)
@given(texts=st.lists(NUMBERS | WRITTEN | SWAPPED, min_size=1, max_size=12))
def test_no_text_is_an_error_and_its_number_is_that_of_the_exported_recipe(
    session: Session, texts: list[str]
) -> None:
    for family in NUMBER_FORMATS:
        expression = text_number(TEXT, family)
        found = values_of(session, texts, f"coalesce({expression}, 'NaN')")
        expected = [exported.read_number(text, family) for text in texts]
        assert np.array(found, np.float64).tobytes() == np.array(expected).tobytes(), family
        assert unread(session, texts, family) == [
            text if math.isnan(number) and not exported.is_blank(text) else None
            for text, number in zip(texts, expected, strict=True)
        ]


@pytest.mark.parametrize("style", ["ISO, YMD", "SQL, DMY", "German", "Postgres, MDY"])
@trials(40)
@given(texts=st.lists(DATES, min_size=1, max_size=12))
def test_a_date_is_that_of_the_exported_recipe_under_any_style(
    session: Session, bench: Workbench, style: str, texts: list[str]
) -> None:
    bench.rows(f"SET datestyle = '{style}'; SET timezone = 'America/New_York'")
    try:
        for family in MOMENT_FORMATS:
            expression = f"date_part('epoch', {text_moment(TEXT, family)})"
            expected = [exported.read_moment(text, family) for text in texts]
            assert values_of(session, texts, expression) == [
                point and (point - EPOCH).total_seconds() for point in expected
            ], family
            assert unread(session, texts, family) == [
                None if point or exported.is_blank(text) else text
                for text, point in zip(texts, expected, strict=True)
            ]
    finally:
        bench.rows("RESET datestyle; RESET timezone")


def test_texts_are_read_where_one_format_fits_all(bench: Workbench, session: Session) -> None:
    recipe, remarks = fitted(bench, session)
    families = {each.column: getattr(each, "family", None) for each in recipe.inputs}
    assert {name: families.get(name) for name in READ} == READ
    assert all("read as a" in str(f.explanation) for f in recipe.features if f.column in READ)
    found = {remark.column: remark.text for remark in remarks if remark.column != "n"}
    assert found.keys() == DOUBTFUL.keys()
    assert all(words in found[name] for name, words in DOUBTFUL.items())
    assert [each.column for each in remarks if not each.is_notice] == ["few"]


def test_only_what_looks_like_no_number_names_a_row(bench: Workbench, session: Session) -> None:
    reasons = {
        each.column: each.reason
        for each in fitted(bench, session).recipe.features
        if isinstance(each, LeftOut)
    }
    named = "all of its values differ: it names a row"
    assert {"token": named, "sku": named, "code": "all of its values differ"}.items() <= (
        reasons.items()
    )


def test_types_decide_what_texts_are(bench: Workbench, session: Session) -> None:
    types = {"mixed": "number", "either": "moment", "zip": "number", "age": "category"}
    recipe, remarks = fitted(bench, session, **types, iso="text", two="number")
    kinds = {each.column: each for each in recipe.features}
    assert {name: kinds[name].kind for name in types} == types and kinds["iso"].kind == "text"
    assert kinds["mixed"].has_missing_flag and not kinds["zip"].has_missing_flag
    assert not {remark.column for remark in remarks} & {"mixed", "either", "two"}


@pytest.mark.parametrize(("column", "kind"), [("token", "number"), ("age", "moment")])
def test_a_kind_that_no_text_is_of_is_refused(
    bench: Workbench, session: Session, column: str, kind: str
) -> None:
    with pytest.raises(InvalidParameter, match=f"column '{column}' to be '{kind}'"):
        fitted(bench, session, **{column: kind})


@pytest.mark.parametrize("column", ["two", "either", "mixed", "named", "named_first", "short"])
def test_the_casts_of_a_remark_can_be_typed(
    bench: Workbench, session: Session, column: str
) -> None:
    (text,) = (r.text for r in fitted(bench, session).remarks if r.column == column)
    written = text.split("write ")[1].removesuffix(" in a view")
    casts = [part.split(" (")[0] if " AS " not in part else part for part in written.split(" or ")]
    for cast in casts:
        expression = cast.rpartition(f'AS "{column}"')
        rows = bench.rows(f'SELECT {expression[0]} AS "{column}" FROM looks')
        known = [value for (value,) in rows if value is not None]
        assert len(known) >= 390 and not any(
            isinstance(value, float) and math.isnan(value) for value in known
        )
