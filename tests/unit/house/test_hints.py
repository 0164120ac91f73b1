"""Hints name what exists, and each one that can be typed has a test that types it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hint_texts import FOLLOWABLE, OF_PLANS, is_query, matches, read_hints

ROOT = Path(__file__).parents[3]
HINTS = read_hints()
DEFAULTS = "integration/endings/test_session_defaults.py"
FOLLOWED = {
    "SET default_transaction_isolation = 'read committed'; then call again, after COMMIT in a "
    "transaction block.": DEFAULTS,
    "SET default_transaction_read_only = off; then call again, after COMMIT in a transaction "
    "block.": DEFAULTS,
    "ROLLBACK; then call outside a transaction, or after BEGIN ISOLATION LEVEL READ COMMITTED.": (
        DEFAULTS
    ),
    "ROLLBACK; then call outside a transaction, or after BEGIN READ WRITE.": DEFAULTS,
    "{} Or let another session work: background => true.": DEFAULTS,
    "statement_timeout is {}. SET statement_timeout = 0; then call again.": DEFAULTS,
    "statement_timeout is {}. SET statement_timeout = 0; SELECT cerebro.resume({}); trains the "
    "rest of the run.": DEFAULTS,
    "As an administrator: SELECT cerebro.set({}, NULL);": "integration/security/test_settings.py",
    "Leave {} out, and write query => {}.": "integration/models/test_hints.py",
    "SELECT cerebro.grant_predict({}, {});": "integration/models/test_hints.py",
    "{} {} granted you one. Name the owner of a model that is not your own: {}(…, owner => {}).": (
        "integration/models/test_hints.py"
    ),
    "Predict from a view that has all of these. If nothing is known of them: SELECT t.*, {} FROM "
    "{} t;": "integration/models/test_value_laws.py",
    "SELECT * FROM cerebro.refresh({}, epochs => {});": (
        "integration/models/test_longer_training.py"
    ),
}
"""Templates of hints, each with the file of tests that follows it."""
NOT_FOLLOWED = ROOT / "tests" / "unit" / "house" / "hints_not_followed.txt"
"""Hints that nothing follows yet. The list only becomes shorter."""


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


def test_each_hint_that_can_be_typed_is_followed_by_a_test() -> None:
    typed = {template for template in HINTS if FOLLOWABLE.search(template)}
    assert {*FOLLOWED, *OF_PLANS} <= {*HINTS}, "a hint has changed: follow the new one"
    missing = sorted(typed - {*FOLLOWED, *OF_PLANS} - {*filter(is_query, typed)})
    assert missing == NOT_FOLLOWED.read_text().splitlines(), (
        "a test follows each hint that has an argument or a statement: add a case to "
        "tests/integration/models/test_hints.py"
    )


def test_files_that_follow_hints_exist() -> None:
    for file in {*FOLLOWED.values()}:
        assert (ROOT / "tests" / file).exists(), file


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
