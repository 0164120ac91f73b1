"""A model knows values, not how they are written: rows with equal values of other types have the
same predictions, or a type is refused by the name of its column.
"""

from __future__ import annotations

import json
import re
from typing import Any

import psycopg2
import pytest
from followed_hints import read_statements
from hypothesis import given
from hypothesis import strategies as st
from trials import trials
from workbench import Workbench

pytestmark = pytest.mark.postgresql("values are compared alike on Greenplum")

TABLE = """
    CREATE EXTENSION citext;
    CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    CREATE TABLE given AS
    SELECT n AS id, n % 2 = 0 AS flag, (n % 2)::bit(1) AS bit, (n * 7 % 5) AS size,
           (n % 4 * 0.25)::numeric(6,2) AS price,
           (n % 3 * 1.5)::numeric::money AS paid, (n % 3 / 4.0)::real AS ratio,
           (n % 3 / 10.0)::float8 AS share, ('s' || n % 4)::char(6) AS shop,
           ('W' || n % 3)::text AS word, (n % 4)::text AS digit, ('00' || n % 5)::text AS code,
           (CASE n % 3 WHEN 0 THEN 'Mr' WHEN 1 THEN 'MR' ELSE 'Dr' END)::citext AS title,
           date '2024-01-01' + n % 3 AS day,
           timestamp '2024-01-01' + n % 3 * interval '1 day' AS at,
           timestamptz '2024-01-01 00:00+00' + n % 3 * interval '1 hour' AS zoned,
           to_jsonb(n % 3 * 1.5) AS json, (n % 3)::numeric(4,1) AS class, n % 2 AS shelf
    FROM generate_series(1, 400) n;
    ALTER TABLE given ADD PRIMARY KEY (id)"""
CATEGORIES = (
    "size",
    "price",
    "paid",
    "ratio",
    "share",
    "day",
    "at",
    "zoned",
    "json",
    "digit",
    "code",
)
COLUMNS = (*CATEGORIES, "flag", "bit", "shop", "word", "title")
TYPES = "{" + ", ".join(f'"{name}": "category"' for name in CATEGORIES) + "}"
TRAIN = (
    "SELECT validation FROM cerebro.train('given', 'class', 'known', models => '{linear}', configs "
    "=> 1, epochs => 1, ensemble => 1, seed => 1, workers => 1, task => 'classification', types => "
    "%s, columns => %s, group_by => 'shelf', min_group_rows => 30)"
)
NUMBERS = (
    "{0}::numeric(9,4)",
    "{0}::float8",
    "{0}::real",
    "{0}::text",
    "to_jsonb({0})",
    "' ' || {0}",
)
TRUTHS = ("{0}", "{0}::text", "to_jsonb({0})")
TIMES = ("{0}", "{0}::text", "to_jsonb({0}) #>> '{{}}'")
FORMS: dict[str, tuple[str, ...]] = {
    "flag": (
        *TRUTHS, "{0}::integer", "{0}::integer::numeric(3,1)", "{0}::integer::float8",
        "CASE WHEN {0} THEN 'yes' ELSE 'No ' END", "{0}::integer::bit(1)", "left({0}::text, 1)",
    ),
    "bit": ("{0}", "({0}::text = '1')", "{0}::integer", "{0}::text"),
    "size": ("{0}", "{0}::smallint", *NUMBERS, "{0} || '.00'"),
    "price": ("{0}", *NUMBERS, "{0}::money"),
    "paid": ("{0}", "{0}::numeric"),
    "ratio": ("{0}", "{0}::float8", "{0}::numeric", "{0}::text", "to_jsonb({0})"),
    "share": ("{0}", "{0}::numeric(5,3)", "{0}::text", "to_jsonb({0})"),
    "shop": ("{0}", "{0}::text", "{0}::varchar(9)", "{0}::char(20)", "{0}::text COLLATE any_case"),
    "word": ("{0}", "{0}::varchar", "{0}::name", "{0}::citext", "to_jsonb({0})"),
    "digit": ("{0}", "{0}::integer", "{0}::numeric(5,2)", "to_jsonb({0}::integer)"),
    "code": ("{0}", "{0}::varchar(5)", "{0}::char(9)"),
    "title": ("{0}", "{0}::text", "lower({0}::text)", "upper({0}::text)::varchar"),
    "day": (*TIMES, "{0}::timestamp"),
    "at": (*TIMES, "{0}::date"),
    "zoned": ("{0}", "{0}::timestamptz(3)"),
    "json": ("{0}", "({0} #>> '{{}}')::numeric(9,3)", "{0}::json"),
    "class": ("{0}", "{0}::integer", "{0}::text", "{0}::float8"),
    "shelf": ("{0}", "{0}::numeric(5,2)", "{0}::text", "{0}::bigint"),
}  # fmt: skip
"""Equal values of other types, by column."""
REFUSED = {
    "code": "code::integer",
    "word": "id",
    "day": "day::timestamptz",
    "at": "at::timestamptz",
    "zoned": "zoned::timestamp",
    "size": "day",
    "flag": "day",
    "shelf": "day",
}
"""Values that stand for others, by column."""


class Known:
    """The predictions of a model for the rows of `given`, by id."""

    def __init__(self, by_id: dict[str, tuple[Any, ...]]) -> None:
        self.by_id = by_id


@pytest.fixture(scope="module")
def known(bench: Workbench) -> Known:
    """The predictions of a model of all of these columns, and of groups, by id."""
    bench.rows(TABLE)
    bench.rows("SET timezone = 'UTC'")
    bench.rows(TRAIN, TYPES, ", ".join(COLUMNS))
    return Known(predictions(bench, "given"))


def predictions(bench: Workbench, source: str) -> dict[str, tuple[Any, ...]]:
    rows = bench.rows(
        "SELECT id, prediction, probability, probabilities::text FROM cerebro.predict('known', %s, "
        "'id')",
        source,
    )
    return {name: tuple(rest) for name, *rest in rows}


def make_view(bench: Workbench, forms: dict[str, str]) -> None:
    """Make the view `other`, in which columns have these forms."""
    expressions = ", ".join(
        f"{forms.get(name, '{0}').format(name)} AS {name}" for name in ("id", *FORMS)
    )
    bench.rows(f"DROP VIEW IF EXISTS other; CREATE VIEW other AS SELECT {expressions} FROM given")


def test_every_column_is_learned_as_a_category(bench: Workbench, known: Known) -> None:
    recipe = bench.value("SELECT recipe FROM cerebro.version_log WHERE model = 'known'")
    kinds = {feature["column"]: feature["kind"] for feature in recipe["features"]}
    assert kinds == dict.fromkeys(COLUMNS, "category")
    assert len({tuple(rest) for rest in known.by_id.values()}) > 50
    groups = bench.rows("SELECT group_value FROM cerebro.model_group ORDER BY 1")
    assert [value for (value,) in groups] == [*"01"]


@pytest.mark.parametrize("place", range(max(map(len, FORMS.values()))))
def test_each_form_has_the_predictions_of_the_table(
    bench: Workbench, known: Known, place: int
) -> None:
    forms = {name: forms[place] for name, forms in FORMS.items() if place < len(forms)}
    different = []
    for name, form in forms.items():
        make_view(bench, {name: form})
        if predictions(bench, "other") != known.by_id:
            different.append((name, form))
    assert different == []


@trials(60)
@given(st.fixed_dictionaries({name: st.sampled_from(forms) for name, forms in FORMS.items()}))
def test_equal_values_have_equal_predictions(
    bench: Workbench, known: Known, forms: dict[str, str]
) -> None:
    make_view(bench, forms)
    bench.messages()
    assert predictions(bench, "other") == known.by_id
    assert bench.messages() == []
    # In JSON, a text of char(n) keeps its blanks, and an amount of money its currency.
    record = "to_jsonb(o) || jsonb_build_object('code', o.code::text, 'price', o.price::numeric)"
    row = f"SELECT cerebro.predict_row('known', {record}) FROM other o WHERE id = 7"
    assert bench.value(row)["probabilities"] == json.loads(known.by_id["7"][2])


@pytest.mark.parametrize("column", REFUSED)
def test_what_stands_for_another_value_is_refused(
    bench: Workbench, known: Known, column: str
) -> None:
    make_view(bench, {column: REFUSED[column]})
    with pytest.raises(psycopg2.errors.DatatypeMismatch, match=f"'{column}'") as refused:
        predictions(bench, "other")
    hint = re.search(r"a view that has (.*) in its place", str(refused.value))
    if hint is not None:  # it is taken
        others = ", ".join(name for name in ("id", *FORMS) if name != column)
        bench.rows(f"CREATE VIEW hinted AS SELECT {others}, {hint[1]} FROM other")
        assert len(predictions(bench, "hinted")) == 400
        bench.rows("DROP VIEW hinted")


def test_a_missing_column_may_be_null(bench: Workbench, known: Known) -> None:
    """In the view that the hint shows."""
    bench.rows("CREATE TABLE ids AS SELECT id, shelf FROM given")
    with pytest.raises(psycopg2.errors.UndefinedColumn) as refused:
        predictions(bench, "ids")
    template = (
        "Name a view that has all of these. If nothing is known of them: SELECT t.*, {} FROM {} t;"
    )
    (query,) = read_statements(refused.value, template)
    bench.rows(f"CREATE VIEW nothing AS {query}")
    assert len(predictions(bench, "nothing")) == 400


def test_unknown_values_are_counted_once_a_column(bench: Workbench, known: Known) -> None:
    """By every call, with two examples; values that are missing are not unknown."""
    make_view(
        bench,
        {
            "word": "CASE WHEN id <= 3 THEN 'X' || id WHEN id > 9 THEN word END",
            "size": "size + 100 * (id = 8)::integer",
            "class": "CASE WHEN id = 5 THEN 9 ELSE class END",
        },
    )
    calls = {
        "predict": "SELECT count(*) FROM cerebro.predict('known', 'other', 'id')",
        "evaluate": "SELECT count(*) FROM cerebro.evaluate('known', 'other')",
        "importance": "SELECT count(*) FROM cerebro.importance('known', 'other')",
        "attribution": "SELECT count(*) FROM cerebro.attribution('known', 'other', 'id')",
        "drift": "SELECT count(*) FROM cerebro.drift('known', 'other')",
        "predict_row": "SELECT cerebro.predict_row('known', to_jsonb(o)) FROM other o WHERE id = 2",
    }
    for name, call in calls.items():
        bench.messages()
        bench.rows(call)
        notices = "".join(bench.messages())
        count = "1 value" if name == "predict_row" else "3 values"
        assert notices.count("column word has") == 1, name
        assert re.search(f"column word has {count}, such as 'X[123]'", notices), (name, notices)
        assert ("column size has 1 value, such as '1" in notices) == (name != "predict_row"), name
        has_class = name in ("evaluate", "importance")
        assert ("the target has 1 value, such as '9'" in notices) == has_class, (name, notices)


def test_groups_of_rows_that_have_no_model_are_said(bench: Workbench, known: Known) -> None:
    bench.messages()
    record = (
        "SELECT cerebro.predict_row('known', to_jsonb(g) || '{\"shelf\": 77}') FROM given g LIMIT 1"
    )
    bench.rows(record)
    assert "no model of its own for shelf '77'" in "".join(bench.messages())


def test_nan_is_no_class_and_no_newest_value(bench: Workbench) -> None:
    """It is missing, as NULL is: rows of it have no target, and are not the last ones."""
    bench.rows("""
        CREATE TABLE gaps AS
        SELECT n AS id, n AS x, CASE WHEN n % 6 = 0 THEN float8 'NaN' ELSE n % 2 END AS churned,
               CASE WHEN n % 6 = 0 THEN numeric 'NaN' ELSE 1 END AS ones,
               CASE WHEN n % 4 = 0 THEN numeric 'NaN' ELSE n END AS stamp
        FROM generate_series(1, 600) n""")
    plan = "SELECT data FROM cerebro.plan('gaps', %s, split => %s) WHERE section = %s AND name = %s"
    target = bench.value(plan, "churned", "random 0.2", "target", "churned")
    assert "NaN" not in str(target)
    what = "SELECT what FROM cerebro.plan('gaps', 'churned') WHERE section = 'target'"
    assert bench.value(what).startswith("classification: 2 classes")
    with pytest.raises(psycopg2.errors.InvalidParameterValue, match="one value only"):
        bench.rows(plan, "ones", "random 0.2", "target", "ones")
    rows = "SELECT what FROM cerebro.plan('gaps', %s, split => %s) WHERE name = 'validation'"
    both = 400  # rows that have a target and a stamp
    assert bench.value(rows, "churned", "last 0.2 by stamp") == f"{both // 5} rows"


def test_a_collation_that_folds_letters_is_said(bench: Workbench, known: Known) -> None:
    bench.rows("""
        CREATE TABLE folded AS
        SELECT n AS id,
               (ARRAY['Oslo', 'OSLO', 'oslo', 'Bergen'])[n % 4 + 1] COLLATE any_case AS city,
               (ARRAY['Yes', 'yes', 'no'])[n % 3 + 1] COLLATE any_case AS sold
        FROM generate_series(1, 300) n""")
    bench.messages()
    bench.rows(
        "SELECT * FROM cerebro.train('folded', 'sold', models => '{linear}', configs => 1, epochs "
        "=> 1, ensemble => 1, group_by => 'city', min_group_rows => 40, workers => 1)"
    )
    messages = bench.messages()
    for column in ("city", "sold"):
        (notice,) = [text for text in messages if f"column {column}: " in text]
        assert "its texts are compared letter by letter" in notice
        assert "differ by capitals or blanks alone" in notice
        # One expression answers both.
        assert notice.count(f' AS "{column}"') == 1
        assert f'lower(btrim("{column}")) AS "{column}"' in notice
    predictions = "SELECT count(*) FROM cerebro.predict('folded_sold', 'folded', 'id')"
    assert bench.value(predictions) == 300
    assert "does not know" not in "".join(bench.messages())


def test_a_row_has_the_model_of_its_padded_group(bench: Workbench, known: Known) -> None:
    """JSON keeps the blanks of a char(n), which its text in SQL has not."""
    bench.rows("""
        CREATE TABLE padded AS
        SELECT n AS id, ('K' || n % 2)::char(6) AS g, n * 7919 % 101 AS x,
               (n * 7919 % 101 > 50) <> (n % 2 = 0) AS y
        FROM generate_series(1, 600) n""")
    bench.rows(
        "SELECT * FROM cerebro.train('padded', 'y', models => '{linear}', configs => 1, epochs => "
        "5, ensemble => 1, group_by => 'g', columns => 'x', seed => 1, workers => 1)"
    )
    bench.messages()
    differences = bench.rows("""
        SELECT p.id FROM cerebro.predict('padded_y', 'padded', 'id') p JOIN padded t ON
               t.id::text = p.id
        WHERE t.id <= 20 AND abs(p.probability - (cerebro.predict_row('padded_y', to_jsonb(t)) ->>
              'probability')::float8) > 1e-6""")
    assert differences == []
    assert bench.messages() == []


def test_classes_of_held_back_rows_that_end_in_a_dot_are_named(
    bench: Workbench, known: Known
) -> None:
    """No row of them is trained on, so that nothing can be compared by."""
    bench.rows("""
        CREATE TABLE census AS SELECT n AS id, n % 7 AS x, (ARRAY['<=50K', '>50K'])[n % 2 + 1] AS y
        FROM generate_series(1, 100) n;
        CREATE TABLE census_test AS SELECT id, x, y || '.' AS y FROM census""")
    plan = "SELECT * FROM cerebro.plan('census', 'y', split => 'table census_test')"
    with pytest.raises(psycopg2.errors.InvalidParameterValue) as refused:
        bench.rows(plan)
    assert refused.value.diag.message_detail is not None
    assert "trained on: '<=50K.', '>50K.'" in refused.value.diag.message_detail
