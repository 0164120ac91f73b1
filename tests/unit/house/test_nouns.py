"""The words of messages: "1 row" and "2 rows", and one word for one thing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sources import ROOT, tree

from cerebro_plpy.nouns import count_nouns, make_plural, match_verb

PACKAGES = ("plpy/cerebro_plpy", "plpy/cerebro_trainer", "cerebro_db")
MODULES = [path for folder in PACKAGES for path in sorted((ROOT / folder).rglob("*.py"))]
DASHBOARD = ROOT / "cerebro_db" / "dashboard"
PAGES = sorted((DASHBOARD / "templates").glob("*.html"))
SCRIPTS = sorted((DASHBOARD / "static").glob("*.js"))
NOUNS = """
    architecture array batch bracket branch buffer byte candidate category channel character
    class code col column config configuration copy core count day device dimension edge
    element entry epoch error example factor feature field file form frame function group hour
    image index indicator input iteration job layer level line metric millisecond minute model
    module month number output pair parameter part pass permutation pick piece pixel place
    point prediction process processor processor-second quota reason relation role round row
    rung run sample scale second segment server session setting shape shard shuffle size slot
    state statement step table template tensor text thread time trainer transaction trial type
    unit value version visit week weight window word worker year
"""
PLURAL = "|".join(sorted(map(make_plural, NOUNS.split()), key=len, reverse=True))
# Up to two adjectives. A verb after a name ends in s, or is an auxiliary.
NO_ADJECTIVES = "have|had|make|are|end|and|for|with|from|other|of|to|in|by|on|at|or"
COUNTED = re.compile(
    rf"\s(?:(?!(?:{NO_ADJECTIVES})\b)[a-z-]*[a-rt-z] ){{0,2}}(?:{PLURAL})\b(?!-|\(|')"
)
PLURAL_VERB = re.compile(r"(?: that| which|, and)? (?:are|were|have|do|go)\b")
NUMERIC = {"len", "sum", "round", "int", "min", "max", "ceil", "count"}
SHOWN = re.compile(r"(\{\{[^{}]+\}\}|\$\{[^{}]+\})(?:</\w+>)?( [a-z -]+)")
"""A value in a page or in a script, and the words behind it."""
TEXTS = {"kind", "size"}
MAIN_PATH = ("operations/train", "operations/explain", "operations/models", "preprocessing")
OF_MADLIB = re.compile(r"\b(?:iterations?|model arch)\b", re.IGNORECASE)
HELPERS = {"count_nouns", "match_verb"}


def function_name(node: ast.expr) -> str | None:
    """Return the name of a function that an expression calls; None for other expressions."""
    if not isinstance(node, ast.Call):
        return None
    return ast.unparse(node.func).rpartition(".")[2]


def can_be_one(value: ast.FormattedValue) -> bool:
    """Whether a value can be the number 1: not a limit, a quoted name or the text of a call."""
    name = ast.unparse(value.value)
    is_limit = any(part.isupper() for part in name.split("."))
    function = function_name(value.value)
    is_text = value.conversion != -1 or name in TEXTS or (function and function not in NUMERIC)
    return not is_limit and not is_text


def find_uncounted(tree: ast.AST) -> Iterator[str]:
    """Yield each plural, and each verb of one, that follows a number whatever the number is."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value in node.values:
            parts = {part.value for part in ast.walk(value) if isinstance(part, ast.Constant)}
            if isinstance(value, ast.FormattedValue) and parts & {"s", "es"}:
                yield f"{value.lineno}: {{{ast.unparse(value.value)}}}"
        for value, text in zip(node.values, node.values[1:], strict=False):
            if not isinstance(value, ast.FormattedValue) or not isinstance(text, ast.Constant):
                continue
            is_helper = function_name(value.value) in HELPERS
            pattern = PLURAL_VERB if is_helper else COUNTED
            if (is_helper or can_be_one(value)) and pattern.match(str(text.value)):
                yield f"{value.lineno}: {{{ast.unparse(value.value)}}}{text.value!s}"


@pytest.mark.parametrize(
    ("source", "is_right"),
    [
        ("f'{rows} rows'", False),
        ("f'{len(rows)} rows of {table}'", False),
        ("f'{self.rows:,} different training rows'", False),
        ("f'{a} ' f'rows'", False),
        ("f'{rows} epochs.'", False),
        ("f\"{rows} row{'' if rows == 1 else 's'}\"", False),
        ("f\"{count_nouns(rows, 'row')} are\"", False),
        ("f\"{count_nouns(rows, 'row')} that are\"", False),
        ("f'at most {MAX_ROWS} rows'", True),
        ("f'{name!r} values texts'", True),
        ("f'{table} has rows of {shape}'", True),
        ("f\"{count_nouns(rows, 'row', 'is')} right\"", True),
    ],
)
def test_the_scan_sees_a_plural_behind_a_number(source: str, is_right: bool) -> None:
    assert (not [*find_uncounted(ast.parse(source))]) is is_right


def test_messages_count_by_one_function() -> None:
    """`count_nouns` writes "1 row" and "2 rows", `match_verb` the verb."""
    assert len(MODULES) > 500
    places = [
        f"{path.relative_to(ROOT)}:{place}"
        for path in MODULES
        if not path.is_symlink()
        for place in find_uncounted(tree(path))
    ]
    assert not places, "\n".join(places)


@pytest.mark.parametrize("room", MAIN_PATH)
def test_the_main_path_has_none_of_madlibs_words(room: str) -> None:
    """It says epoch; `iteration` and `model arch` are for MADlib's functions."""
    modules = sorted((ROOT / PACKAGES[0] / room).rglob("*.py"))
    assert modules
    for path in modules:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not OF_MADLIB.search(node.value), f"{path}:{node.lineno}"


@pytest.mark.parametrize("page", [*PAGES, *SCRIPTS], ids=lambda page: page.name)
def test_pages_count_by_one_filter(page: Path) -> None:
    """`{{ rows|nouns("row") }}`; a script may write no number before a plural."""
    texts = SHOWN.findall(page.read_text())
    places = [f"{value}{text}" for value, text in texts if COUNTED.match(text)]
    assert not places, "\n".join(places)


@given(st.integers(0, 10**9), st.sampled_from(NOUNS.split()))
def test_one_is_singular_and_all_other_numbers_are_plural(count: int, noun: str) -> None:
    number, _, word = count_nouns(count, noun).partition(" ")
    assert int(number) == count
    assert (word == noun) is (count == 1)
    assert word in (noun, make_plural(noun))


@given(st.integers(0, 10**9), st.sampled_from(["is", "has", "was", "does", "trains", "leaves"]))
def test_a_verb_goes_with_its_noun(count: int, verb: str) -> None:
    form = match_verb(count, verb)
    assert count_nouns(count, "row", verb) == f"{count_nouns(count, 'row')} {form}"
    assert (form == verb) is (count == 1)


def test_the_packages_have_one_function() -> None:
    first, *links = [ROOT / folder / "nouns.py" for folder in PACKAGES]
    links.append(ROOT / "cerebro_db" / "export" / "recipe" / "nouns.py")
    links.append(ROOT / "cerebro_db" / "export" / "trees" / "model" / "nouns.py")
    links.append(ROOT / "plpy" / "cerebro_trainer" / "boosting" / "model" / "nouns.py")
    assert not first.is_symlink()
    assert all(link.is_symlink() and link.resolve() == first for link in links)
