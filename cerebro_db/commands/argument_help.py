"""Help on options that are arguments of an SQL function, from the reference of the SQL functions.

The package contains the reference, whose tables of arguments are made from the declarations.
"""

from __future__ import annotations

import re
from pathlib import Path

import cerebro_db

REFERENCE = Path(cerebro_db.__file__).parent / "extension" / "sql-reference.md"
ROW = re.compile(r"^\| `(?P<name>\w+)` \| [^|]+ \| (?P<default>[^|]+) \| (?P<meaning>.+) \|$", re.M)
LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
HEADING = re.compile(r"^#{1,3} ", re.M)
SENTENCE_END = re.compile(r"(?<=\.) (?=[A-Z`0-9])")


def read_argument_help(function: str) -> dict[str, str]:
    """Return the help on each argument: its first sentence and its default, as plain text.

    The result is empty if the package was not built, as in a folder of sources.
    """
    try:
        page = REFERENCE.read_text(encoding="utf-8")
    except OSError:
        return {}
    _, _, section = page.partition(f"\n### {function}\n")
    section = HEADING.split(section)[0]
    return {
        row["name"]: shorten_help(row["meaning"].replace("\\|", "|"), row["default"])
        for row in ROW.finditer(section)
    }


def shorten_help(meaning: str, default: str) -> str:
    """Return the first sentence about an argument, and its default.

    >>> shorten_help("Seed of all choices: see [Repeating](#repeating). More.", "`NULL`")
    'Seed of all choices.'
    >>> shorten_help("Number of `configs` to try. NULL: as many as fit.", "`NULL`")
    'Number of configs to try. Default: as many as fit.'
    >>> shorten_help("Time for the whole call.", "`'5 minutes'`")
    "Time for the whole call. Default: '5 minutes'."
    """
    first, *others = SENTENCE_END.split(_remove_references(meaning))
    parts = [first.removeprefix("TRUE: ").replace("`", "")]
    parts[0] = parts[0][:1].upper() + parts[0][1:]
    parts += [
        sentence.replace("NULL: ", "Default: ").replace("`", "")
        for sentence in others
        if sentence.startswith("NULL: ")
    ]
    value = default.strip("`")
    if value not in ("required", "NULL", "FALSE"):
        parts.append(f"Default: {value}.")
    return " ".join(parts)


def _remove_references(text: str) -> str:
    """Return Markdown without links to other parts of the page; other links keep their text."""
    text = re.sub(r"[:,.]? [Ss]ee \[[^\]]+\]\([^)]*\)", "", text)
    text = re.sub(r" \(\[[^\]]+\]\([^)]*\)\)", "", text)
    return LINK.sub(r"\1", text)
