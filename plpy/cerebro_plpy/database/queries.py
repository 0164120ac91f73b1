"""SQL statements by name, from the `.sql` files in folder `queries`.

A statement follows a line `-- name: …`. `%s` takes a value; `{word}` takes a quoted identifier, or
a clause that only some platforms need (see `Platform.clauses`). The files show what a run does to a
database without reading Python.
"""

from __future__ import annotations

import os
import re
from functools import cache

FOLDER = os.path.join(os.path.dirname(__file__), "queries")
# Quoted names and texts come from users: a %s in them is not a placeholder.
_OUTSIDE_QUOTES = re.compile(r"""("(?:[^"]|"")*"|'(?:[^']|'')*')|%s""")


@cache
def load(file: str) -> dict[str, str]:
    """Return the statements of a file by name, without comments."""
    with open(os.path.join(FOLDER, f"{file}.sql"), encoding="utf-8") as statements:
        text = statements.read()
    parts = re.split(r"^-- name: *(\S+) *$", text, flags=re.MULTILINE)
    bodies = (re.sub(r"^--.*$", "", body, flags=re.MULTILINE) for body in parts[2::2])
    return {name: " ".join(body.split()).rstrip(";") for name, body in zip(parts[1::2], bodies)}


def split_placeholders(statement: str) -> list[str]:
    """Return the parts of a statement before, between and after its `%s`.

    >>> split_placeholders("a = %s AND b = '100%s'")
    ['a = ', " AND b = '100%s'"]
    """
    parts = []
    start = 0
    for match in _OUTSIDE_QUOTES.finditer(statement):
        if match[1] is None:
            parts.append(statement[start : match.start()])
            start = match.end()
    return [*parts, statement[start:]]


def escape_percent(statement: str) -> str:
    """Return a statement for the driver: each % outside of placeholders is doubled.

    >>> escape_percent("SELECT 7 % %s")
    'SELECT 7 %% %s'
    """
    return "%s".join(part.replace("%", "%%") for part in split_placeholders(statement))


def sql(name: str, **identifiers: str) -> str:
    """Return the statement `file.name`, with these identifiers in place of their `{word}`.

    >>> sql("read.columns").startswith("SELECT")
    True
    """
    file, _, statement = name.partition(".")
    text = load(file)[statement]
    return text.format(**identifiers) if identifiers else text
