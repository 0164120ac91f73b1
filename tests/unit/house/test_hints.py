"""Hints name what exists, and each one that can be typed has a test that types it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hint_texts import FOLLOWABLE, OF_PLANS, is_query, matches, read_hints

ROOT = Path(__file__).parents[3]
HINTS = read_hints()
SERVED = ("integration", "upgrade")
"""Folders of tests that call a server."""


def read_names() -> set[str]:
    """Return every word of the SQL of the product, in which all functions and arguments are."""
    texts = [path.read_text() for path in (ROOT / "sql").glob("*.sql")]
    return {word for text in texts for word in re.findall(r"\w+", text)}


def test_names_in_hints_exist() -> None:
    names = read_names()
    assert len(HINTS) > 300, "this test finds nothing any more"
    for template, modules in HINTS.items():
        called = re.findall(r"\bcerebro\.(\w+)", template)
        arguments = re.findall(r"\b(\w+) => ", template)
        assert {*called, *arguments} <= names, f"{sorted(modules)}: {template}"


def find_followed() -> set[str]:
    """Return the templates of hints that tests of a server name, which do what they read there."""
    files = [path for folder in SERVED for path in (ROOT / "tests" / folder).rglob("*.py")]
    nodes = [node for path in files for node in ast.walk(ast.parse(path.read_text()))]
    texts = {node.value for node in nodes if isinstance(node, ast.Constant)}
    return {*HINTS} & {*OF_PLANS, *texts}


def test_each_hint_that_can_be_typed_is_followed_by_a_test() -> None:
    typed = {template for template in HINTS if FOLLOWABLE.search(template)}
    assert {*OF_PLANS} <= {*HINTS}, "a hint has changed: follow the new one"
    missing = sorted(typed - find_followed() - {*filter(is_query, typed)})
    assert not missing, (
        "a test follows each hint that has an argument or a statement: add a case to "
        "tests/integration/models/test_hints.py, or name the hint in read_hint() or "
        "read_statements() of a test that does what it reads"
    )


@pytest.mark.parametrize(
    ("template", "hint", "expected"),
    [
        ("Write {} => {}.", "Write id_col => 'a'.", True),
        ("Write {} => {}.", "Did you mean a?", False),
        ("a.b", "a.b, and more", True),
        ("a.b", "a-b", False),
    ],
)
def test_a_template_matches_its_hints(template: str, hint: str, expected: bool) -> None:
    assert matches(template, hint) == expected


def lists_choices_twice(node: ast.Raise) -> bool:
    """Return whether an error lists choices in its message, and again in its hint."""
    if not isinstance(node.exc, ast.Call) or not node.exc.args:
        return False
    message = ast.unparse(node.exc.args[0])
    hints = [keyword.value for keyword in node.exc.keywords if keyword.arg == "hint"]
    return "expected" in message and any(
        isinstance(call, ast.Call)
        and ast.unparse(call.func) == "near_matches"
        and f".join({ast.unparse(call.args[1])})" in message
        for hint in hints
        for call in ast.walk(hint)
    )


def test_no_error_lists_the_same_choices_twice() -> None:
    twice = "raise Error(f\"a is {a}; expected {', '.join(b)}.\", hint=near_matches(a, b))"
    (example,) = ast.parse(twice).body
    assert isinstance(example, ast.Raise) and lists_choices_twice(example)
    for path in (ROOT / "plpy" / "cerebro_plpy").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise):
                assert not lists_choices_twice(node), f"{path}:{node.lineno}: guess_match"
