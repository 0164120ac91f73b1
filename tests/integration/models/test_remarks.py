"""Remarks about columns and targets that may not be what they are taken for, in plan and train."""

from __future__ import annotations

import pytest
from workbench import Workbench

QUICK = "models => '{linear}', configs => 1, epochs => 2, ensemble => 1, seed => 1, refit => 'none'"
SURVEY = """
    CREATE TABLE survey AS
    SELECT n AS row_id, n * 7919 % 101 AS age, n AS position, (ARRAY['West', 'west '])[n % 2 + 1] AS
               region, CASE WHEN n % 40 = 0 THEN 'unknown' ELSE (n * 31 % 997)::text END AS income,
           CASE WHEN n % 23 = 0 THEN '' WHEN n * 7919 % 101 > 50 THEN
               (ARRAY['Yes', 'yes', 'Yes '])[n % 3 + 1] ELSE 'no' END AS answer
    FROM generate_series(1, 600) AS n"""
REMARKS = {
    "answer": "3 of its classes differ by capitals or blanks alone: ",
    "region": "2 of its values differ by capitals or blanks alone: 'West', 'west '",
    "income": "97.5 % of its texts look like numbers (1,234.50)",
    "position": "its whole numbers all differ and leave hardly a gap",
}


@pytest.fixture(scope="module")
def notices(bench: Workbench) -> list[str]:
    """The notices of a training."""
    bench.rows(SURVEY)
    bench.connection.notices.clear()
    bench.rows(f"SELECT rank FROM cerebro.train('survey', 'answer', 'survey', {QUICK})")
    return list(bench.connection.notices)


def test_training_says_each_remark_once(notices: list[str]) -> None:
    for column, words in REMARKS.items():
        assert sum(f"column {column}: {words}" in notice for notice in notices) == 1, column
    assert sum("the blank text '' is a class, of 26 rows" in notice for notice in notices) == 1
    assert sum("column row_id is left out: all of its values" in text for text in notices) == 1


def test_a_plan_has_the_same_remarks(bench: Workbench, notices: list[str]) -> None:
    rows = bench.rows(f"""
        SELECT name, why FROM cerebro.plan('survey', 'answer', 'survey', {QUICK})
        WHERE section IN ('column', 'target')""")
    reasons: dict[str, str] = dict(rows)
    assert all(words in reasons[column] for column, words in REMARKS.items())
