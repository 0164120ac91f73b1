"""Read the help of the arguments of cerebro.train, which the SQL reference and psql show, too."""

from __future__ import annotations

import re

_ENTRY = re.compile(
    r"^  (\w+) [^\n]+, (?:required|default [^\n]+)\n((?:      [^\n]+\n?)+)", re.MULTILINE
)
_REFERENCE = re.compile(r"(?:[:;,] see|\. See) [\w .&-]*\w\.(?=\s|$)")


def parse_argument_help(text: str) -> dict[str, str]:
    r"""Return the help of each argument in the text of `cerebro.help(function, 'usage')`.

    References to sections of the page are left out, and NULL is an empty field.

    >>> parse_argument_help("  seed bigint, default NULL\n      Seed of\n      all: see Seeds.\n")
    {'seed': 'Seed of all.'}
    """
    return {name: shorten_help(" ".join(lines.split())) for name, lines in _ENTRY.findall(text)}


def shorten_help(text: str) -> str:
    """Return the help of an argument for a field of a form.

    >>> shorten_help("A number: see Limits. NULL: 5. See Ties.")
    'A number. Empty: 5.'
    """
    return _REFERENCE.sub(".", text).replace("NULL:", "Empty:")
