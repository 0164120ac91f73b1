"""Values take the place of `%s`, and nothing that a user named is taken for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pglast import ast
from product_sql import Statement, part_statements, query_statements, walk

from cerebro_plpy.database.queries import escape_percent, split_placeholders
from cerebro_plpy.database.sessions.spi import number_placeholders
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.database.sql.literals import array_literal

# Short names of few letters, so that %, s and quotes often meet.
TEXTS = st.text("%s'\"\\\\(){} $1", min_size=1, max_size=12)
QUOTED = TEXTS.map(quote_identifier) | st.lists(TEXTS | st.none(), max_size=3).map(array_literal)
PLAIN = st.sampled_from(["SELECT ", " % 7 ", " = ", ", ", " %", "::text[] "])
STATEMENTS = st.lists(QUOTED | PLAIN | st.just(None), max_size=10)


@given(STATEMENTS)
def test_both_drivers_see_the_same_placeholders(parts: list[str | None]) -> None:
    statement = " ".join("%s" if part is None else part for part in parts)
    count = parts.count(None)
    marks = [f"<{number}>" for number in range(count)]
    expected = " ".join(marks.pop(0) if part is None else part for part in parts)
    assert len(split_placeholders(statement)) == count + 1
    assert escape_percent(statement) % tuple(f"<{number}>" for number in range(count)) == expected
    # A $1 in a name stays; the n-th placeholder becomes $n.
    pieces = iter(range(1, count + 1))
    assert number_placeholders(statement) == " ".join(
        f"${next(pieces)}" if part is None else part for part in parts
    )


def untyped(statement: Statement) -> Iterator[str]:
    """Yield the operators that meet a placeholder without a type, as far as they are not in the
    body of a function.
    """
    found = () if isinstance(statement.node, ast.CreateFunctionStmt) else walk(statement.node)
    for node in found:
        if isinstance(node, ast.A_Expr) and any(
            isinstance(end, ast.ParamRef) for end in (node.lexpr, node.rexpr)
        ):
            yield f"{statement.place}: {node.name[-1].sval}"


def test_a_placeholder_that_meets_an_operator_has_a_type() -> None:
    """SPI binds a text as a text, and the driver as a literal of any type: only a cast makes both
    mean the same.
    """
    assert [each for statement in query_statements() for each in untyped(statement)] == []


@pytest.mark.parametrize(
    "condition", ["t.day < $1", "$1 || 's' = t.name", "t.c IN (1, 2) AND NOT t.x = $2"]
)
def test_a_placeholder_without_a_type_is_found(condition: str) -> None:
    (statement,) = part_statements(condition, "here")
    assert len(list(untyped(statement))) == 1
