"""Every function of MADlib's is named by a test on a server, and whatever its users expect is shown
by one.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from madlib_contract import EXPECTED, FORMS

TESTS = Path(__file__).parents[2]
SOURCES = {path: path.read_text() for path in TESTS.rglob("test_*.py")}
MARK = re.compile(r"@pytest\.mark\.checklist\(([\d, ]+)\)")


@pytest.mark.parametrize("function", sorted({form.function for form in FORMS}))
def test_a_function_is_called(function: str) -> None:
    called = re.compile(rf"\b{function}\b")
    assert any(
        called.search(text)
        for path, text in SOURCES.items()
        if path.is_relative_to(TESTS / "integration")
    )


def test_what_is_expected_is_shown() -> None:
    shown = {
        int(number)
        for text in SOURCES.values()
        for row in MARK.findall(text)
        for number in row.split(",")
    }
    assert shown == set(range(1, len(EXPECTED) + 1))
