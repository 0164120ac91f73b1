"""SQL statements by name, from the `.sql` files beside this module.

A statement stands below a line `-- name: …`; `%s` takes a value, `{word}` an identifier that is
quoted already, or a clause that only some platforms need (see `Platform.clauses`). Keeping them in
files lets a reader judge what a run does to a database without reading Python.
"""

from __future__ import annotations

import os
import re
from functools import cache

FOLDER = os.path.join(os.path.dirname(__file__), "queries")
# Quoted names and texts come from users: a %s in one of them is no placeholder.
_OUTSIDE_QUOTES = re.compile(r"""("(?:[^"]|"")*"|'(?:[^']|'')*')|%s""")


@cache
def load(file: str) -> dict[str, str]:
    """All statements of one file: name to text, comments stripped."""
    with open(os.path.join(FOLDER, f"{file}.sql"), encoding="utf-8") as statements:
        text = statements.read()
    parts = re.split(r"^-- name: *(\S+) *$", text, flags=re.MULTILINE)
    bodies = (re.sub(r"^--.*$", "", body, flags=re.MULTILINE) for body in parts[2::2])
    return {name: " ".join(body.split()).rstrip(";") for name, body in zip(parts[1::2], bodies)}


def around_placeholders(statement: str) -> list[str]:
    """The parts of a statement before, between and after its `%s`.

    >>> around_placeholders("a = %s AND b = '100%s'")
    ['a = ', " AND b = '100%s'"]
    """
    ends = [match.span() for match in _OUTSIDE_QUOTES.finditer(statement) if match[1] is None]
    starts = [0, *(end for _, end in ends)]
    return [
        statement[start:end]
        for start, end in zip(starts, [*(begin for begin, _ in ends), len(statement)])
    ]


def escape_percent(statement: str) -> str:
    """The statement as the driver wants it: every % that is not part of a placeholder is doubled.

    >>> escape_percent("SELECT 7 % %s")
    'SELECT 7 %% %s'
    """
    return "%s".join(part.replace("%", "%%") for part in around_placeholders(statement))


def sql(name: str, **identifiers: str) -> str:
    """The statement `file.name` with its identifiers put in.

    >>> sql("read.columns").startswith("SELECT")
    True
    """
    file, _, statement = name.partition(".")
    text = load(file)[statement]
    return text.format(**identifiers) if identifiers else text
