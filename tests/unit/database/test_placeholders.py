"""Values take the place of `%s`, and nothing that a user named is taken for one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.database.caller import number_placeholders
from cerebro_plpy.database.literals import array_literal
from cerebro_plpy.database.names import quote_identifier
from cerebro_plpy.database.queries import around_placeholders, escape_percent

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
    assert len(around_placeholders(statement)) == count + 1
    assert escape_percent(statement) % tuple(f"<{number}>" for number in range(count)) == expected
    # A $1 in a name stays; the n-th placeholder becomes $n.
    pieces = iter(range(1, count + 1))
    assert number_placeholders(statement) == " ".join(f"${next(pieces)}" if part is None else part for part in parts)
