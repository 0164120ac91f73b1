"""Targets of numbers in texts: predicted as numbers where that is sure, else a call is shown."""

from __future__ import annotations

import pytest
from followed_hints import Call, follow, read_ways
from recipes import Session
from workbench import Row, Workbench

from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.source_rows import SourceRows
from cerebro_plpy.preprocessing.learning.raw_table import read_table
from cerebro_plpy.preprocessing.learning.task_inference import TaskChoice
from cerebro_plpy.preprocessing.rows.opened_source import TableOptions

WRITTEN = {
    "plain": "(1000.5 * (n * 37 % 200))::numeric(12, 2)::text",
    "padded": "(n * 37 % 200 * 1.5)::text || repeat(' ', n % 3)",
    "comma": "replace((n * 37 % 200 / 4.0)::numeric(9, 2)::text, '.', ',')",
    "dollars": "to_char(n * 37 % 200 * 99, 'FM$999,990.00')",
    "percent": "(n * 37 % 101 / 2.0)::numeric(9, 1) || '%'",
    "blank": "CASE WHEN n % 9 = 0 THEN '' ELSE '€ ' || n * 37 % 200 || ',50' END",
    "different": "n || '.5'",
    "age": "(n % 48 + 18)::text",
}
"""Texts that are numbers in one format."""
CLASSES = {
    "month": "(n % 12 + 1)::text",
    "grade": "(n % 5)::text",
    "half": "(n % 5 / 2.0)::numeric(3, 1)::text",
    "zip": "lpad((n % 90)::text, 5, '0')",
    "code": "(n % 90 + 1000)::text",
    "word": "'no. ' || n % 9",
    "day": "(date '2024-01-01' + n % 20)::text",
}
DOUBTFUL = {
    "price": "CASE WHEN n % 50 = 0 THEN '<1000' ELSE (1000 + n * 37 % 200 * 9)::text END",
    "two": """CASE WHEN n % 2 = 0 THEN '1,' || lpad((n % 200)::text, 3, '0') ELSE (n % 90)::text
        END""",
}
QUICK = {
    "models": "'{linear}'",
    "configs": "1",
    "epochs": "3",
    "seed": "1",
    "ensemble": "1",
    "refit": "'none'",
}
ARGUMENTS = ", ".join(f"{name} => {value}" for name, value in QUICK.items())


@pytest.fixture(scope="module")
def houses(bench: Workbench) -> str:
    columns = ", ".join(f"{text} AS {n}" for n, text in (WRITTEN | CLASSES | DOUBTFUL).items())
    bench.rows(f"""
        CREATE TABLE houses AS SELECT n AS id, n * 37 % 200 AS area, {columns}
        FROM generate_series(1, 600) AS n;
        ALTER TABLE houses ADD PRIMARY KEY (id)""")
    return "houses"


@pytest.fixture(scope="module")
def messages(bench: Workbench, houses: str) -> list[str]:
    """What training of model `price` says, which reads most of its target as numbers."""
    bench.rows("CREATE TABLE sold AS SELECT id, area, price FROM houses")
    bench.rows("ALTER TABLE sold ADD PRIMARY KEY (id)")
    return notices(
        bench,
        f"SELECT FROM cerebro.train('sold', 'price', 'price', task => 'regression', {ARGUMENTS})",
    )


def planned(target: str, **arguments: str) -> Call:
    """A plan for a target of houses."""
    named = {"source": "'houses'", "target": f"'{target}'", "columns": "'area'"}
    return Call("cerebro.plan", {**named, **QUICK, **arguments})


def target_row(rows: list[Row]) -> tuple[str, str, str]:
    """What a plan says of the target: its name, what is predicted, and why."""
    (row,) = [row for row in rows if row[0] == "target" and row[2].startswith(("cl", "re"))]
    return row[1], row[2], row[3]


def notices(bench: Workbench, query: str, *values: object) -> list[str]:
    bench.connection.notices.clear()
    bench.rows(query, *values)
    return list(bench.connection.notices)


def predicted(bench: Workbench, target: str, **arguments: str) -> tuple[str, str]:
    """What is predicted, and why."""
    return target_row(bench.rows(str(planned(target, **arguments))))[1:]


def test_numbers_in_one_format_are_predicted_as_numbers(bench: Workbench, houses: str) -> None:
    found = {target: predicted(bench, target) for target in WRITTEN}
    assert {what for what, _ in found.values()} == {"regression: a number"}
    assert all("read as a number from text: " in why for _, why in found.values())


def test_codes_few_values_and_words_are_classes(bench: Workbench, houses: str) -> None:
    found = {target: predicted(bench, target) for target in CLASSES}
    assert {what.partition(":")[0] for what, _ in found.values()} == {"classification"}
    # The task of the same whole numbers: see `task_inference`.
    assert {target for target, (_, why) in found.items() if "look like numbers" in why} == {"month"}


def test_the_task_may_be_named(bench: Workbench, houses: str) -> None:
    texts = bench.value("SELECT count(DISTINCT age) FROM houses")
    what, why = predicted(bench, "age", task="'classification'")
    assert (what, why) == (f"classification: {texts} classes", "as task says")
    for target in ("month", "half", "price", "code"):
        what, why = predicted(bench, target, task="'regression'")
        assert what == "regression: a number" and "as task says; read as a number" in why


def test_a_plan_shows_what_is_blank_and_what_is_not_a_number(bench: Workbench, houses: str) -> None:
    def left_out(target: str) -> list[Row]:
        rows = bench.rows(str(planned(target, task="'regression'")))
        return [
            (row[1], row[2], row[3])
            for row in rows
            if row[0] == "rows" and row[1].startswith("left")
        ]

    assert left_out("blank") == [("left out", "66 rows", "their target is NULL or blank")]
    reason = "their target is not a number, such as '<1000'"
    assert left_out("price") == [("left out, not numbers", "12 rows", reason)]


def test_the_hint_of_two_formats_works(bench: Workbench, houses: str) -> None:
    plans = follow(bench, planned("two", task="'regression'"))
    found = [target_row(rows)[:2] for rows in plans]
    assert found.count(("two_number", "regression: a number")) == 2
    assert any(what.startswith("classification") for _, what in found), "without the task"


def test_the_hints_of_words_and_of_codes_as_numbers_work(bench: Workbench, houses: str) -> None:
    for target, views in (("word", 0), ("zip", 1)):
        plans = follow(bench, planned(target, task="'regression'"))
        found = [target_row(rows)[:2] for rows in plans]
        assert len(found) == views + 1 and found[0][1].startswith("classification")
        assert found[1:] == [(f"{target}_number", "regression: a number")] * views


@pytest.mark.parametrize("target", DOUBTFUL)
def test_a_plan_says_that_classes_look_like_numbers(
    bench: Workbench, houses: str, target: str
) -> None:
    what, why = predicted(bench, target)
    assert what.startswith("classification") and "its texts look like numbers" in why


def test_training_says_which_texts_are_not_numbers(messages: list[str]) -> None:
    (notice,) = [text for text in messages if "not numbers" in text]
    assert "12 rows have texts of price that are not numbers" in notice and "'<1000' (12)" in notice


def choose(bench: Workbench, target: str, earlier_task: str | None = None) -> TaskChoice:
    """Return the task of a target of houses, and the message about it."""
    oid = bench.value("SELECT 'houses'::regclass::oid::bigint")
    relation = Relation("houses", "public", "houses", oid, "public.houses")
    options = TableOptions(target, None, "area", {}, None, None, 1, False)
    options = options._replace(earlier_task=earlier_task)
    session = Session(bench)
    table = read_table(SourceRows(session, session.run), "train", relation, options)
    assert table.target.choice is not None
    return table.target.choice


def test_the_calls_in_notices_work(bench: Workbench, houses: str) -> None:
    """One is about numbers that may be classes, one about classes that may be numbers."""
    expected = {"age": "classification: 48 classes", "price": "regression: a number"}
    for target, what in expected.items():
        note = choose(bench, target).note
        assert note is not None and f"{target} is predicted as" in note
        (way,) = [way for way in read_ways(note) if way.arguments]
        changed = way.change(planned(target))
        assert target_row(bench.rows(str(changed)))[1] == what


@pytest.mark.parametrize("target", ["age", "price"])
def test_later_versions_keep_the_task(bench: Workbench, houses: str, target: str) -> None:
    for task in ("classification", "regression"):
        assert choose(bench, target, task).task == task


def evaluate(bench: Workbench, source: str) -> dict[str, float]:
    return dict(bench.rows("SELECT metric, value FROM cerebro.evaluate('price', %s)", source))


def test_evaluate_reads_texts_and_numbers_alike(bench: Workbench, messages: list[str]) -> None:
    bench.rows("""
        CREATE VIEW of_numbers AS SELECT id, area,
            CASE WHEN price <> '<1000' THEN price::numeric END AS price FROM sold""")
    assert evaluate(bench, "sold") == evaluate(bench, "of_numbers")
    importances = "SELECT importance, rows FROM cerebro.importance('price', %s)"
    assert bench.rows(importances, "sold") == bench.rows(importances, "of_numbers")


def test_evaluate_counts_texts_that_are_not_numbers(bench: Workbench, messages: list[str]) -> None:
    texts = notices(bench, "SELECT FROM cerebro.evaluate('price', 'sold')")
    assert [text for text in texts if "12 values, such as '<1000', which model 'price'" in text]
    assert [text for text in texts if "12 rows have no number in price" in text]


def test_a_version_of_texts_can_be_verified(bench: Workbench, messages: list[str]) -> None:
    checks = bench.rows("SELECT what, ok, detail FROM cerebro.verify('price')")
    assert checks and all(ok is not False for _, ok, _ in checks), checks


def test_later_versions_read_the_same_format(bench: Workbench, messages: list[str]) -> None:
    recipes = "SELECT recipe FROM cerebro.version_log WHERE model = 'price' ORDER BY version"
    (recipe,) = bench.row(recipes)
    assert recipe["target_format"] == "text as 1,234.50"
    bench.rows("INSERT INTO sold VALUES (601, 7, '1,063'), (602, 9, 'n/a'), (603, 8, ' ')")
    texts = notices(bench, "SELECT FROM cerebro.refresh('price', epochs => 4)")
    assert [text for text in texts if "13 rows have texts of price that are not numbers" in text]
    assert [text for text in texts if "1 row has no price" in text]
    assert bench.rows(recipes)[1] == (recipe,)


def test_other_texts_of_a_table_held_back_are_named(bench: Workbench, houses: str) -> None:
    bench.rows("""
        CREATE TABLE checked AS SELECT id, area, CASE WHEN n < 4 THEN 'x' || n ELSE plain END
            AS plain, CASE WHEN n < 3 THEN 'new' ELSE grade END AS grade
        FROM houses, LATERAL (SELECT id % 100 AS n) v WHERE id <= 100""")
    for target, unknown in (("plain", "not numbers"), ("grade", "not trained on")):
        _, why = predicted(bench, target, split="'table checked'")
        assert "in checked it has" in why and unknown in why
