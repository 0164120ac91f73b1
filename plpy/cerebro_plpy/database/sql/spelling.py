"""Hints about names that a call spells in another way than the catalog: the text to write."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable

from cerebro_plpy.database.sql.identifiers import quote_identifier, split_columns
from cerebro_plpy.errors import InvalidName, quote_text

MAX_LISTED = 50
"""Names that a hint lists at most."""
_PART = re.compile(
    r"""\s*(?:"(?P<double>(?:[^"]|"")*)"|'(?P<single>[^']*)'|(?P<plain>[^,]*?))\s*$"""
)
_SEPARATOR = re.compile(r"""((?:"(?:[^"]|"")*"|[^,"])*)(?:,|$)""")


def spell_name(name: str) -> str:
    """Return a name as a call writes it that follows SQL: in double quotes if it needs them.

    >>> print(spell_name("region"), spell_name("Region"), spell_name("fare.paid"))
    region "Region" "fare.paid"
    """
    try:
        is_plain = split_columns(name) == (name,)
    except InvalidName:
        is_plain = False
    if is_plain:
        return name
    return quote_identifier(name)


def spell_names(names: Iterable[str]) -> str:
    """Return a list of names as a call writes it that follows SQL."""
    return ", ".join(map(spell_name, names))


def read_loosely(text: str) -> list[str]:
    """Return the names of a list as somebody may have meant them: with capitals, dots and blanks.

    Braces and brackets around the list, and quotes around a name, are left out.

    >>> read_loosely('"Age", Fare.Paid'), read_loosely("{y1,y2}"), read_loosely("ARRAY['a', 'b']")
    (['Age', 'Fare.Paid'], ['y1', 'y2'], ['a', 'b'])
    """
    inner = re.sub(r"^\s*(?:ARRAY)?\s*[\[{](.*)[\]}]\s*$", r"\1", text, flags=re.DOTALL | re.I)
    parts = [match[1] for match in _SEPARATOR.finditer(inner) if match[0]]
    return [_read_part(part) for part in parts]


def _read_part(part: str) -> str:
    match = _PART.match(part)
    if match is None:
        return part.strip()
    if match["double"] is not None:
        return match["double"].replace('""', '"')
    return match["single"] or match["plain"] or ""


def match_name(name: str, names: Collection[str]) -> str | None:
    """Return the only one of the names that is a name but for its case; None if it is not one.

    >>> match_name("region", ["Region", "Sex"]), match_name("sex", ["Sex", "SEX"])
    ('Region', None)
    """
    if name in names:
        return name
    folded = name.casefold()
    matches = [candidate for candidate in names if candidate.casefold() == folded]
    if len(matches) != 1:
        return None
    return matches[0]


def match_names(text: str, names: Collection[str]) -> list[str]:
    """Return the names that a list means, whatever their case; an empty list if one is unknown."""
    matches = [match_name(part, names) for part in read_loosely(text)]
    existing = [match for match in matches if match is not None]
    if len(existing) < len(matches):
        return []
    return existing


def suggest_columns(argument: str, text: str, names: Collection[str], prefix: str = "") -> str:
    """Return a hint for an argument that names columns as SQL does, folded or in double quotes.

    Args:
        text: the list in the call.
        names: the columns of the table.
        prefix: what the argument has before the list.

    >>> print(suggest_columns("columns", "age, Pclass", ["Age", "Pclass"]))
    Write columns => '"Age", "Pclass"'.
    """
    matches = match_names(text, names)
    if matches:
        return f"Write {argument} => {quote_text(prefix + spell_names(matches))}."
    unknown = [part for part in read_loosely(text) if match_name(part, names) is None]
    return suggest_similar((*unknown, text)[0], names, spelled=True)


def suggest_name(argument: str, text: str, names: Collection[str]) -> str:
    """Return a hint for an argument that takes the name of a column as it is, without quotes.

    >>> print(suggest_name("target", '"Survived"', ["Age", "Survived"]))
    Write target => 'Survived'.
    """
    matches = match_names(text, names)
    if len(matches) == 1:
        return f"Write {argument} => {quote_text(matches[0])}."
    return suggest_similar(text, names)


def suggest_similar(name: str, names: Collection[str], *, spelled: bool = False) -> str:
    """Return a hint with the similar names, or with all of them, as a call writes them."""
    import difflib  # of no use to a call that goes well

    by_folded: dict[str, list[str]] = {}
    for candidate in names:
        by_folded.setdefault(candidate.casefold(), []).append(candidate)
    close = difflib.get_close_matches(name.casefold(), by_folded, n=3)
    write: Callable[[str], str] = str
    if spelled:
        write = spell_name
    if close:
        matches = [write(match) for folded in close for match in by_folded[folded]]
        return f"Did you mean {' or '.join(matches)}?"
    listed = [write(candidate) for candidate in names][:MAX_LISTED]
    more = ""
    if len(names) > MAX_LISTED:
        more = f", and {len(names) - MAX_LISTED} more"
    return f"Its columns are: {', '.join(listed)}{more}."
