"""docs/reference/sql describes every function that users call, as declared; help shows it."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest
from sources import read_assembly, read_reference, sql_files

from cerebro_plpy.errors import InvalidParameter, UndefinedObject
from cerebro_plpy.operations.admin import help

ROOT = Path(__file__).parents[3]
PAGE = read_reference()
SECTIONS = help.parse_sections(PAGE)
SCRIPTS = "\n".join(sql_files().values())
ASSEMBLY = read_assembly()
DECLARATIONS = ASSEMBLY["declarations"]()
DECLARED = re.compile(
    r"^CREATE OR REPLACE FUNCTION ([\w.]+)\((.*?)\) RETURNS", re.DOTALL | re.MULTILINE
)
INTERNAL = re.compile(r"COMMENT ON FUNCTION ([\w.]+)\([^)]*\)\s+IS 'Internal: ")
ARGUMENT = re.compile(r"(?:^|,)\s*(\w+)")
# A view calls it.
NOT_CALLED = {"cerebro_internal.may_see"}


def list_public_functions() -> dict[str, set[tuple[str, ...]]]:
    """Return the names of the arguments of each form of every function that users call."""
    hidden = {match[1] for match in INTERNAL.finditer(SCRIPTS)} | NOT_CALLED
    forms: dict[str, set[tuple[str, ...]]] = {}
    for match in DECLARED.finditer(SCRIPTS):
        if match[1] not in hidden:
            forms.setdefault(match[1], set()).add(tuple(ARGUMENT.findall(match[2])))
    return forms


FUNCTIONS = list_public_functions()


def test_every_public_function_has_a_section_and_no_other() -> None:
    assert set(SECTIONS) == set(FUNCTIONS)


def test_a_section_has_signature_sentence_and_example() -> None:
    for name, section in SECTIONS.items():
        assert section.signature.startswith("    "), name
        assert section.sentence[0].isupper(), name
        example = section.text.partition("\nExample:\n\n    ")[2]
        assert any(f"{function}(" in example for function in section.names), name


def test_signatures_and_tables_of_arguments_are_made_from_the_declarations() -> None:
    """If this fails, call `make reference`."""
    pages = ASSEMBLY["read_reference"]()
    assert ASSEMBLY["reference"](pages) == pages


def test_each_file_of_the_folder_is_a_page() -> None:
    assert {path.name for path in ASSEMBLY["REFERENCE"].iterdir()} == set(ASSEMBLY["PAGES"])


def test_every_section_has_a_signature_and_a_table_of_its_arguments() -> None:
    """What it leaves out is in the section of a function that it names."""
    for name, section in SECTIONS.items():
        assert section.signature.startswith("    "), name
        rows = list_rows(section)
        (sentence,) = re.findall(r"^(?:The a|A)rguments (?:.+\n)+", section.text, re.M) or [""]
        for form in (each for each in DECLARATIONS if each.name in section.names):
            for argument in form.arguments:
                lender = form.same_as or argument.lender
                if argument.name not in rows:
                    assert lender and f"[{lender.replace('_keras', '')}](" in sentence, name
                    assert argument.name in list_rows(SECTIONS[lender]), name


def list_rows(section: help.Section) -> set[str]:
    return set(re.findall(r"^\| `(\w+)` \| .+ \| .+ \| .+ \|$", section.text, re.M))


def test_every_argument_has_help() -> None:
    for form in DECLARATIONS:
        for argument in form.arguments:
            if form.name in SECTIONS:
                assert argument.help.endswith("."), f"{form.name}({argument.name})"


def test_help_can_be_shown_in_any_terminal() -> None:
    for name, message in product(SECTIONS, (None, "usage")):
        text = help.explain(PAGE, name, message)
        assert text.isascii(), name
        assert f"{name}(" in text or message, name


@pytest.mark.parametrize("message", ["usage", "help", "?", "USAGE", " usage "])
def test_synonyms(message: str) -> None:
    assert help.explain(PAGE, "madlib_predict", message) == help.explain(
        PAGE, "madlib_predict", "usage"
    )


def test_all_is_in_the_help() -> None:
    """Only links and the frames of tables are left out."""
    for section in SECTIONS.values():
        shown = help.explain(PAGE, section.names[0], "usage")
        header = "argument | type | default | meaning"
        text = section.text.replace(header, "").replace("…", "...")
        text = re.sub(r"\]\([^)]+\)", "", text)
        assert set(re.findall(r"\w+", text)) <= set(re.findall(r"\w+", shown)), section.names


def test_the_list_names_every_function() -> None:
    listed = help.explain(PAGE, None, None)
    assert set(re.findall(r"^[a-z_.]+", listed, re.M)) <= set(FUNCTIONS)
    assert all(name in listed for name in FUNCTIONS)


def test_a_summary_has_the_calls_of_its_function_alone() -> None:
    for name in SECTIONS:
        summary = help.explain(PAGE, name, None)
        assert set(re.findall(r"^    (\S+)\(", summary, re.M)) == {name}


def test_wrong_questions() -> None:
    with pytest.raises(
        InvalidParameter, match=r"message is 'x'; expected one of usage, help, \?"
    ) as wrong:
        help.explain(PAGE, "madlib_predict", "x")
    assert "SELECT madlib_predict('usage');" in str(wrong.value.hint)
    with pytest.raises(
        UndefinedObject, match="there is no help for a function 'madlib_predcit'"
    ) as unknown:
        help.explain(PAGE, "madlib_predcit", None)
    assert unknown.value.hint is not None and "madlib_predict" in unknown.value.hint
