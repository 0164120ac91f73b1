"""Help in psql: what a function's section in docs/sql-reference.md says, as plain text.

That page is the only description of the functions. It is installed beside this package, so that the
help of a server is that of its version.
"""

from __future__ import annotations

import re
import textwrap
from typing import NamedTuple

from cerebro_plpy.configs.params.keras_names import near_matches
from cerebro_plpy.errors import InvalidParameter, UndefinedObject

# What asks for the whole section, as in MADlib.
FULL = ("usage", "help", "?")
WIDTH = 100
_HEADING = re.compile(
    r"^### ([a-z_0-9.]+(?:, [a-z_0-9.]+)*)\n(.*?)(?=^##|\Z)", re.DOTALL | re.MULTILINE
)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_ROW = re.compile(r"\| `?(.+?)`? \| (.+) \|")
# A terminal may have another encoding.
_ASCII = {ord("…"): "...", ord("≤"): "<=", ord("≥"): ">="}


class Section(NamedTuple):
    """What the page says of a function, or of several that do the same."""

    names: tuple[str, ...]
    text: str

    @property
    def signature(self) -> str:
        """The indented block that the section begins with."""
        return re.split(r"\n\n(?! )", self.text.strip("\n"))[0]

    @property
    def sentence(self) -> str:
        """The first sentence after it."""
        paragraph = self.text.strip("\n")[len(self.signature) :].strip().split("\n\n")[0]
        return _plain(re.split(r"(?<=[.:]) ", " ".join(paragraph.split()))[0].rstrip(":"))


def sections(page: str) -> dict[str, Section]:
    """The sections of the page by the names of their functions.

    >>> found = sections("### f, g\\n\\n    f()\\n\\nDoes [it](x.md). Well.\\n\\n## Else")
    >>> found["g"].names, found["g"].signature.strip(), found["g"].sentence
    (('f', 'g'), 'f()', 'Does it.')
    """
    found = (Section(tuple(match[1].split(", ")), match[2]) for match in _HEADING.finditer(page))
    return {name: section for section in found for name in section.names}


def answer(page: str, function: str | None, message: str | None) -> str:
    """What is told of a function, or of all of them where none is named."""
    known = sections(page.translate(_ASCII))
    if function is None:
        told = {
            section.names: f"{', '.join(section.names)}\n    {section.sentence}"
            for section in known.values()
        }
        return "\n".join((*told.values(), "", "More of one: SELECT cerebro.help('name', 'usage');"))
    if function not in known:
        raise UndefinedObject(
            f"there is no help for a function '{function}'", hint=near_matches(function, known)
        )
    if message is None:
        return _short(function, known[function])
    if message.strip().lower() in FULL:
        return f"{', '.join(known[function].names)}\n\n{_readable(known[function].text)}"
    raise InvalidParameter(
        f"{function}: message is '{message}'; expected one of {', '.join(FULL)}.",
        hint=f"With one argument {function} explains itself. To call it, give all arguments that "
        f"have no default; see {_ask(function)}",
    )


def _ask(function: str) -> str:
    return (
        f"SELECT cerebro.help('{function}', 'usage');"
        if "." in function
        else f"SELECT {function}('usage');"
    )


def _short(function: str, section: Section) -> str:
    signature = section.signature.replace(f"{section.names[0]}(", f"{function}(", 1)
    return "\n".join(
        (section.sentence, "", signature, "", f"Arguments, tables and an example: {_ask(function)}")
    )


def _readable(text: str) -> str:
    """Markdown as one reads it in a terminal: links are their words, a table is a list.

    >>> text = "See [a](b.md).\\n\\n| argument | meaning |\\n|---|---|\\n| `x` | a number |"
    >>> print(_readable(text))
    See a.
    <BLANKLINE>
      x
          a number
    """
    lines: list[str] = []
    for line in text.strip("\n").split("\n"):
        row = _ROW.fullmatch(line)
        if row is None:
            lines.append(line if line.startswith("    ") else _plain(line))
        elif row[1] != "argument":
            lines += [
                f"  {row[1]}",
                *(f"      {part}" for part in textwrap.wrap(_plain(row[2]), WIDTH)),
            ]
    return "\n".join(line for line in lines if not line.startswith("|"))


def _plain(text: str) -> str:
    return _LINK.sub(r"\1", text).replace("**", "").replace("\\|", "|")
