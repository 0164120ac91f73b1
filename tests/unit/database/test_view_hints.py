"""A text in the place of a table is told apart: a name, or a query that a view can have."""

from __future__ import annotations

import pytest

from cerebro_plpy.database.sql.view_hints import is_expression, read_as_query, split_list


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("SELECT 1", "SELECT 1"),
        ("select*from a;", "select*from a"),
        ("VALUES(1)", "VALUES(1)"),
        ("TABLE a", "TABLE a"),
        ("with x as (select 1) select * from x", "with x as (select 1) select * from x"),
        ("(SELECT ')' FROM a)", "(SELECT ')' FROM a)"),
        ("(SELECT 1) UNION (SELECT 2)", "SELECT * FROM (SELECT 1) UNION (SELECT 2)"),
        ("(SELECT 1) a", "SELECT * FROM (SELECT 1) a"),
        ("(a JOIN b USING (c))", "SELECT * FROM (a JOIN b USING (c))"),
        ("a natural join b", "SELECT * FROM a natural join b"),
        ("s.f(1, 'x')", "SELECT * FROM s.f(1, 'x')"),
        ("a, b", "SELECT * FROM a, b"),
        ("a ORDER BY b LIMIT 5", "SELECT * FROM a ORDER BY b LIMIT 5"),
        ("My table", None),
        ("My table (old)", None),
        ("a-b", None),
        ("select", None),
        ("tables", None),
    ],
)
def test_a_query_is_read_as_one(text: str, query: str | None) -> None:
    assert read_as_query(text) == query


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lower(x)", True),
        ("x + 1", True),
        ('"Fare" / 2', True),
        ("CASE WHEN x THEN 1 END", True),
        ("x[1]", True),
        ("x", False),
        ("Length (mm)", False),
        ("'x'", False),
        ("y - z", False),
    ],
)
def test_an_expression_computes_something_of_a_column(text: str, expected: bool) -> None:
    assert is_expression(text, ["x", "Fare"]) == expected


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a, b", ["a", "b"]),
        ("f(a, b), c", ["f(a, b)", "c"]),
        ('"a, b", c', ['"a, b"', "c"]),
        ("a || ', ', b[1, 2]", ["a || ', '", "b[1, 2]"]),
        ("", [""]),
    ],
)
def test_a_list_is_split_at_its_own_commas(text: str, parts: list[str]) -> None:
    assert split_list(text) == parts
