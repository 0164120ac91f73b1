"""SQL names in the caller's text, read as PostgreSQL reads them: folding, quotes, the limit of 63
bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from cerebro_plpy.errors import InvalidName

# NAMEDATALEN - 1, in bytes of UTF-8.
MAX_BYTES = 63

# A plain name has letters, _, and all that is beyond ASCII; later also digits and $. What it has
# not is said instead, because a set with all that is beyond ASCII takes milliseconds to compile.
_IDENTIFIER = re.compile(
    r"""
    [ \t\n\r\f\v]*
    (?: "(?P<quoted>(?:[^"]|"")*)" | (?P<plain>[^\0-@[-^`{-\x7f][^\0-\#%-/:-@[-^`{-\x7f]*) )
    [ \t\n\r\f\v]*
    """,
    re.VERBOSE,
)


def split_columns(text: str) -> tuple[str, ...]:
    """The column names of a comma-separated list, unquoted and folded.

    >>> split_columns('a, B, "C d", "x,""y"')
    ('a', 'b', 'C d', 'x,"y')
    """
    return tuple(_names(text, ","))


def split_qualified(text: str, database: str | None = None) -> tuple[str, ...]:
    """The parts of a name such as schema.table, unquoted and folded: one, or two with a schema.

    As in a statement, the name of this database may stand in front; some tools write it everywhere.

    >>> split_qualified('flowers."My schema".Iris', 'flowers')
    ('My schema', 'iris')
    """
    parts = tuple(_names(text, "."))
    if len(parts) == 3 and parts[0] == database:
        return parts[1:]
    if len(parts) > 2:
        raise InvalidName(f"{text!r} has {len(parts)} parts", hint="Write table or schema.table.")
    return parts


def quote_identifier(name: str) -> str:
    """The name in double quotes, which every name may carry; raises InvalidName where no name is
    like that.

    >>> quote_identifier('a "b"')
    '"a ""b""\"'
    """
    check_name(name)
    return '"' + name.replace('"', '""') + '"'


def columns_of(row: str, names: Iterable[str]) -> str:
    """The columns of these names, each once, as a list of what is selected of a row.

    >>> columns_of("t", ("b", "a", "b"))
    't."b", t."a"'
    """
    return ", ".join(f"{row}.{quote_identifier(name)}" for name in dict.fromkeys(names))


def quote_qualified(parts: tuple[str, ...]) -> str:
    """The parts of a name, each in double quotes, joined by dots."""
    return ".".join(quote_identifier(part) for part in parts)


def check_name(name: str) -> None:
    """Raises InvalidName for an empty name, one with a NUL, and one that PostgreSQL would cut off.

    PostgreSQL cuts long names at 63 bytes, so that two tables made for one run could come out as
    the same.
    """
    if not name or "\0" in name:
        raise InvalidName(
            f"{name!r} is not a name", hint="A name has at least one character and no NUL."
        )
    size = len(name.encode())
    if size > MAX_BYTES:
        raise InvalidName(
            f"name {name!r} has {size} bytes, at most {MAX_BYTES} are possible",
            hint="Use a shorter name.",
        )


def _names(text: str, separator: str) -> Iterator[str]:
    position = 0
    while True:
        match = _IDENTIFIER.match(text, position)
        position = match.end() if match else position
        rest = text[position : position + 1]
        if match is None or rest not in ("", separator):
            raise InvalidName(
                f"{text!r} cannot be read as names separated by {separator!r}",
                hint="Put a name with spaces, capitals or other signs in double quotes, such as "
                '"My column".',
                detail=f"Reading stopped at {text[position:][:20]!r}.",
            )
        name = _unquoted(match)
        check_name(name)
        yield name
        if not rest:
            return
        position += 1


def _unquoted(match: re.Match[str]) -> str:
    quoted = match["quoted"]
    if quoted is not None:
        return quoted.replace('""', '"')
    # PostgreSQL folds ASCII letters only where the encoding has several bytes.
    return re.sub("[A-Z]", lambda letter: letter[0].lower(), match["plain"])
