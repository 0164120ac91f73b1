"""Hints that turn a query or an expression in a call into a view, which the call can name."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.database.sql.spelling import spell_name
from cerebro_plpy.errors import quote_text

_STATEMENT = re.compile(r"(?:select|with|values|table)\b\s*\S", re.IGNORECASE)
_FROM_ITEM = re.compile(
    r"\b(?:join|where|order\s+by|group\s+by|limit|offset|tablesample|union|intersect|except|as)\b"
    r"|^\s*[\w.\"$]+\s*\(|^\s*\(|,",
    re.IGNORECASE,
)
_WORD = re.compile(r'"(?:[^"]|"")*"|[^\W\d]\w*')
_TOKEN = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|.""", re.DOTALL)
_LITERAL = re.compile(r"'(?:[^']|'')*'")
_OPERATION = re.compile(r"[-+*/%|<>=^#&~:()\[\]]|\b(?:case|and|or|not|is|like|in)\b", re.IGNORECASE)


def read_as_query(text: str) -> str | None:
    """Return the query that a text in the place of a table means; None for a mere name.

    >>> read_as_query("a JOIN b USING (id)"), read_as_query(" SELECT 1; "), read_as_query("a b")
    ('SELECT * FROM a JOIN b USING (id)', 'SELECT 1', None)
    """
    query = text.strip().rstrip(";").strip()
    if _STATEMENT.match(query.lstrip("( \t\n")) and _is_closed(query):
        return query
    if _FROM_ITEM.search(query):
        return f"SELECT * FROM {query}"
    return None


def _is_closed(query: str) -> bool:
    """Return whether a text that begins with a parenthesis ends with the one that closes it."""
    if not query.startswith("("):
        return True
    depth = 0
    plain = _LITERAL.sub(lambda match: "x" * len(match[0]), query)
    for position, character in enumerate(plain):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return position == len(plain) - 1
    return False


def is_expression(text: str, names: Collection[str]) -> bool:
    """Return whether a text computes something from columns.

    >>> is_expression("lower(x)", ["x"]), is_expression("Length (mm)", ["x"])
    (True, False)
    """
    plain = _LITERAL.sub("", text)
    words = {word.strip('"') for word in _WORD.findall(plain)}
    folded = {name.casefold() for name in names}
    return bool(_OPERATION.search(plain)) and any(word.casefold() in folded for word in words)


def create_view(view: str, query: str) -> str:
    """Return the statement that makes a view."""
    return f"CREATE VIEW {spell_name(view)} AS {query};"


def suggest_query_view(argument: str, view: str, query: str) -> str:
    """Return a hint for a query in the place of a table."""
    return f"{create_view(view, query)} then {argument} => {quote_text(spell_name(view))}."


def view_with_columns(view: str, table: str, expressions: Mapping[str, str]) -> str:
    """Return the statement of a view that has more columns than a table.

    Args:
        table: its quoted name; its row is `t` in the expressions.
        expressions: by the names of the new columns.
    """
    columns = ", ".join(
        f"{expression} AS {quote_identifier(name)}" for name, expression in expressions.items()
    )
    return create_view(view, f"SELECT t.*, {columns} FROM {table} t")


def split_list(text: str) -> list[str]:
    """Return the parts between the commas of a list that are in no parentheses and no quotes.

    >>> split_list('a + b, "c, d", coalesce(e, 0)')
    ['a + b', '"c, d"', 'coalesce(e, 0)']
    """
    parts = [""]
    depth = 0
    for token in _TOKEN.findall(text):
        depth += (token in "([{") - (token in ")]}")
        if token == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += token
    return [part.strip() for part in parts]
