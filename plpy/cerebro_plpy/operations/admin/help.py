"""Help in psql: the section of a function in docs/reference/sql, as plain text.

These pages are the only description of the functions. They are installed beside this package, as
one file, so that the help of a server matches the server's version.
"""

from __future__ import annotations

import re
import textwrap
from typing import NamedTuple

from cerebro_plpy.configs.params.keras_names import near_matches
from cerebro_plpy.errors import InvalidParameter, UndefinedObject

FULL_MESSAGES = ("usage", "help", "?")
"""Messages that request the whole section, as in MADlib."""
WIDTH = 100
_HEADING = re.compile(
    r"^### ([a-z_0-9.]+(?:, [a-z_0-9.]+)*)\n(.*?)(?=^#{1,3} |\Z)", re.DOTALL | re.MULTILINE
)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_ROW = re.compile(r"\| `?(.+?)`? \| (.+) \|")
_ARGUMENT = re.compile(r"\| `(\w+)` \| (.+?) \| (required|`.+?`) \| (.+) \|")
_MARKER = re.compile(r"^<!--.*-->\n", re.MULTILINE)
# A terminal may have another encoding.
_ASCII = {ord("…"): "...", ord("≤"): "<=", ord("≥"): ">="}


class Section(NamedTuple):
    """The section of the page about a function, or about several that do the same."""

    names: tuple[str, ...]
    text: str

    @property
    def signature(self) -> str:
        """Return the indented block at the beginning of the section."""
        return re.split(r"\n\n(?! )", self.text.strip("\n"))[0]

    @property
    def sentence(self) -> str:
        """Return the first sentence after the signature."""
        text = self.text.strip("\n")[len(self.signature) :]
        paragraph = " ".join(text.strip().split("\n\n")[0].split())
        return _strip_markup(re.split(r"(?<=[.:]) ", paragraph)[0].rstrip(":"))


def parse_sections(page: str) -> dict[str, Section]:
    """Return the sections of the page by the names of their functions.

    >>> sections = parse_sections("### f, g\\n\\n    f()\\n\\nDoes [it](x.md). Well.\\n\\n## Else")
    >>> sections["g"].names, sections["g"].signature.strip(), sections["g"].sentence
    (('f', 'g'), 'f()', 'Does it.')
    """
    matches = _HEADING.finditer(_MARKER.sub("", page))
    sections = (Section(tuple(match[1].split(", ")), match[2]) for match in matches)
    return {name: section for section in sections for name in section.names}


def explain(page: str, function: str | None, message: str | None) -> str:
    """Return the help for a function, or a list of all functions if none is named.

    Args:
        message: one of FULL_MESSAGES for the whole section; None for a summary.

    Raises:
        UndefinedObject: the page has no such function.
        InvalidParameter: the message is unknown.
    """
    sections = parse_sections(page.translate(_ASCII))
    if function is None:
        sentences = {section.names: section.sentence for section in sections.values()}
        lines = [f"{', '.join(names)}\n    {sentence}" for names, sentence in sentences.items()]
        return "\n".join((*lines, "", "More of one: SELECT cerebro.help('name', 'usage');"))
    if function not in sections and f"cerebro.{function}" in sections:
        function = f"cerebro.{function}"
    if function not in sections:
        raise UndefinedObject(
            f"there is no help for a function '{function}'", hint=near_matches(function, sections)
        )
    section = sections[function]
    if message is None:
        return _summarize(function, section)
    if message.strip().lower() in FULL_MESSAGES:
        return f"{', '.join(section.names)}\n\n{_format_markdown(section.text)}"
    raise InvalidParameter(
        f"{function}: message is '{message}'; expected one of {', '.join(FULL_MESSAGES)}.",
        hint=f"With one argument {function} explains itself. To call it, give all arguments that "
        f"have no default; see {_make_usage_call(function)}",
    )


def _make_usage_call(function: str) -> str:
    """Return the statement that shows the whole section."""
    if "." in function:
        return f"SELECT cerebro.help('{function}', 'usage');"
    return f"SELECT {function}('usage');"


def _summarize(function: str, section: Section) -> str:
    usage = f"Arguments, tables and an example: {_make_usage_call(function)}"
    return "\n".join((section.sentence, "", *_list_calls(function, section), "", usage))


def _list_calls(function: str, section: Section) -> list[str]:
    """Return the calls of a function in the signature of its section, which may have others.

    A section shows the short name of a function that has two.

    >>> section = Section(("madlib_f", "g"), "    madlib_f(x)\\n    g()\\n\\nBoth.")
    >>> _list_calls("madlib_keras_f", section)
    ['    madlib_keras_f(x)']
    """
    calls = re.split(r"\n(?=    \S)", section.signature)
    name = function
    if not any(call.startswith(f"    {function}(") for call in calls):
        name = function.replace("madlib_keras_", "madlib_")
    alternatives = [call for call in calls if call.startswith(f"    {name}(")]
    return [call.replace(f"{name}(", f"{function}(", 1) for call in alternatives]


def _format_markdown(text: str) -> str:
    """Format Markdown for a terminal: links become their words, a table becomes a list.

    >>> table = "| argument | type | default | meaning |\\n| `x` | real | `1` | A number. |"
    >>> print(_format_markdown(f"See [a](b.md).\\n\\n{table}"))
    See a.
    <BLANKLINE>
      x real, default 1
          A number.
    """
    lines: list[str] = []
    for line in text.strip("\n").split("\n"):
        argument = _ARGUMENT.fullmatch(line)
        row = _ROW.fullmatch(line)
        if argument is not None:
            name, type_, default, meaning = argument.groups()
            term = f"{name} {type_}, {default}".replace(" `", " default ").rstrip("`")
            lines += _format_item(term, meaning)
        elif row is None:
            lines.append(line if line.startswith("    ") else _strip_markup(line))
        elif row[1] != "argument":
            lines += _format_item(row[1], row[2])
    return "\n".join(line for line in lines if not line.startswith("|"))


def _format_item(term: str, meaning: str) -> list[str]:
    """Return the lines of an item: the term, and its meaning below it."""
    return [
        f"  {term}",
        *(f"      {part}" for part in textwrap.wrap(_strip_markup(meaning), WIDTH)),
    ]


def _strip_markup(text: str) -> str:
    text = text.removeprefix("#### ")
    return _LINK.sub(r"\1", text).replace("**", "").replace("\\|", "|")
