"""docs/sql-reference.md describes every function that users call, as it is declared; psql's help is
made of it.
"""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest
from sources import sql_files

from cerebro_plpy.errors import InvalidParameter, UndefinedObject
from cerebro_plpy.operations.admin import help

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "sql-reference.md").read_text()
SECTIONS = help.sections(PAGE)
SCRIPTS = "\n".join(sql_files().values())
DECLARED = re.compile(
    r"^CREATE OR REPLACE FUNCTION ([\w.]+)\((.*?)\) RETURNS", re.DOTALL | re.MULTILINE
)
INTERNAL = re.compile(r"COMMENT ON FUNCTION ([\w.]+)\([^)]*\)\s+IS 'Internal: ")
ARGUMENT = re.compile(r"(?:^|,)\s*(\w+)")
# A view asks it.
NOT_CALLED = {"cerebro.may_see"}


def public() -> dict[str, set[tuple[str, ...]]]:
    """The names of the arguments of every function that users call, of each of its forms."""
    hidden = {match[1] for match in INTERNAL.finditer(SCRIPTS)} | NOT_CALLED
    found: dict[str, set[tuple[str, ...]]] = {}
    for match in DECLARED.finditer(SCRIPTS):
        if match[1] not in hidden:
            found.setdefault(match[1], set()).add(tuple(ARGUMENT.findall(match[2])))
    return found


FUNCTIONS = public()


def test_every_public_function_has_a_section_and_no_other() -> None:
    assert set(SECTIONS) == set(FUNCTIONS)


def test_a_section_has_signature_sentence_and_example() -> None:
    for name, section in SECTIONS.items():
        assert section.signature.startswith("    "), name
        assert section.sentence[0].isupper(), name
        example = section.text.partition("\nExample:\n\n    ")[2]
        assert any(f"{each}(" in example for each in section.names), name


def test_the_signature_is_the_declaration() -> None:
    """Names and order; a signature may break off with dots."""
    for name, section in SECTIONS.items():
        text = re.search(
            rf"^    {re.escape(_told(name))}\((.*?)\)(?: RETURNS .+)?$", section.text, re.M | re.S
        )
        assert text, name
        given, open_end = tuple(ARGUMENT.findall(text[1].partition(", …")[0])), ", …" in text[1]
        assert any(
            given == (names[: len(given)] if open_end else names) for names in FUNCTIONS[name]
        ), name


def _told(name: str) -> str:
    """Which name the signature has: of two names for one function, the first."""
    section = SECTIONS[name]
    return name if f"    {name}(" in section.text else section.names[0]


def test_help_can_be_shown_in_any_terminal() -> None:
    for name, message in product(SECTIONS, (None, "usage")):
        told = help.answer(PAGE, name, message)
        assert told.isascii(), name
        assert f"{name}(" in told or message, name


@pytest.mark.parametrize("message", ["usage", "help", "?", "USAGE", " usage "])
def test_synonyms(message: str) -> None:
    assert help.answer(PAGE, "madlib_predict", message) == help.answer(
        PAGE, "madlib_predict", "usage"
    )


def test_all_is_in_the_help() -> None:
    """Links and frames of tables are left out, no word is."""
    for section in SECTIONS.values():
        told = help.answer(PAGE, section.names[0], "usage")
        text = re.sub(
            r"\]\([^)]+\)", "", section.text.replace("argument | meaning", "").replace("…", "...")
        )
        assert set(re.findall(r"\w+", text)) <= set(re.findall(r"\w+", told)), section.names


def test_the_list_names_every_function() -> None:
    listed = help.answer(PAGE, None, None)
    assert set(re.findall(r"^[a-z_.]+", listed, re.M)) <= set(FUNCTIONS)
    assert all(name in listed for name in FUNCTIONS)


def test_wrong_questions() -> None:
    with pytest.raises(
        InvalidParameter, match=r"message is 'x'; expected one of usage, help, \?"
    ) as wrong:
        help.answer(PAGE, "madlib_predict", "x")
    assert "SELECT madlib_predict('usage');" in str(wrong.value.hint)
    with pytest.raises(
        UndefinedObject, match="there is no help for a function 'madlib_predcit'"
    ) as unknown:
        help.answer(PAGE, "madlib_predcit", None)
    assert unknown.value.hint is not None and "madlib_predict" in unknown.value.hint
