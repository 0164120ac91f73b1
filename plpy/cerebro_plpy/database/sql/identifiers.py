"""SQL names in the caller's text, parsed by PostgreSQL's rules for case, quotes and length."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from cerebro_plpy.errors import InvalidName
from cerebro_plpy.nouns import count_nouns

Names = tuple[str, ...]
MAX_BYTES = 63  # NAMEDATALEN - 1, in bytes of UTF-8

# A plain name consists of letters, _ and all non-ASCII characters, after the first also of digits
# and $. The pattern lists the excluded characters: a set of all non-ASCII characters takes
# milliseconds to compile.
_IDENTIFIER = re.compile(
    r"""
    [ \t\n\r\f\v]*
    (?: "(?P<quoted>(?:[^"]|"")*)" | (?P<plain>[^\0-@[-^`{-\x7f][^\0-\#%-/:-@[-^`{-\x7f]*) )
    [ \t\n\r\f\v]*
    """,
    re.VERBOSE,
)


def split_columns(text: str) -> Names:
    """Return the column names of a comma-separated list, unquoted and folded.

    >>> split_columns('a, B, "C d", "x,""y"')
    ('a', 'b', 'C d', 'x,"y')
    """
    return tuple(_parse_names(text, ","))


def is_qualified(text: str) -> bool:
    """Return whether a name contains a schema.

    >>> is_qualified('"a.b"'), is_qualified('a."b"'), is_qualified("d.a.b")
    (False, True, True)
    """
    return len(tuple(_parse_names(text, "."))) > 1


def split_qualified(text: str, database: str | None = None) -> Names:
    """Return the parts of a name, unquoted and folded: a table, or a schema and a table.

    As in a statement, the name of this database may come first; some tools always write it.

    >>> split_qualified('flowers."My schema".Iris', 'flowers')
    ('My schema', 'iris')
    """
    parts = tuple(_parse_names(text, "."))
    if len(parts) == 3 and parts[0] == database:
        return parts[1:]
    if len(parts) > 2:
        raise InvalidName(
            f"{text!r} has {count_nouns(len(parts), 'part')}", hint="Write table or schema.table."
        )
    return parts


def quote_identifier(name: str) -> str:
    """Return a name in double quotes, which are allowed around every name.

    >>> quote_identifier('a "b"')
    '"a ""b""\"'
    """
    check_name(name)
    return '"' + name.replace('"', '""') + '"'


def select_list(row: str, names: Iterable[str]) -> str:
    """Return the SELECT list of these columns of a row, without duplicates.

    >>> select_list("t", ("b", "a", "b"))
    't."b", t."a"'
    """
    return ", ".join(f"{row}.{quote_identifier(name)}" for name in dict.fromkeys(names))


def quote_qualified(parts: Names) -> str:
    """Return the parts of a name in double quotes, joined by dots."""
    return ".".join(quote_identifier(part) for part in parts)


def check_name(name: str) -> None:
    """Raise InvalidName for an empty name, a name with a NUL, or a name that is too long.

    PostgreSQL truncates names to 63 bytes, so that two tables of one run could get the same name.
    """
    if not name or "\0" in name:
        raise InvalidName(
            f"{name!r} is not a name", hint="A name has at least one character and no NUL."
        )
    size = len(name.encode())
    if size > MAX_BYTES:
        raise InvalidName(
            f"name {name!r} has {count_nouns(size, 'byte')}, at most {MAX_BYTES} are possible",
            hint="Use a shorter name.",
        )


def _parse_names(text: str, separator: str) -> Iterator[str]:
    position = 0
    while True:
        match = _IDENTIFIER.match(text, position)
        position = match.end() if match else position
        next_character = text[position : position + 1]
        if match is None or next_character not in ("", separator):
            raise InvalidName(
                f"{text!r} cannot be read as names separated by {separator!r}",
                hint="Put a name with spaces, capitals or other signs in double quotes, such as "
                '"My column".',
                detail=f"Reading stopped at {text[position:][:20]!r}.",
            )
        name = _unquote(match)
        check_name(name)
        yield name
        if not next_character:
            return
        position += 1


def _unquote(match: re.Match[str]) -> str:
    quoted = match["quoted"]
    if quoted is not None:
        return quoted.replace('""', '"')
    # In multibyte encodings PostgreSQL folds only ASCII letters.
    return re.sub("[A-Z]", lambda letter: letter[0].lower(), match["plain"])
