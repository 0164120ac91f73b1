"""docs/madlib-coverage.md is what sql/ and tests/ say; every function of MADlib that is there is called by a test."""

from __future__ import annotations

import re

import madlib_coverage
import pytest


def test_the_page_is_up_to_date(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--write-objects"):
        madlib_coverage.PAGE.write_text(madlib_coverage.page())
    assert madlib_coverage.PAGE.read_text() == madlib_coverage.page(), "`make coverage` writes it anew"


def test_what_is_there_is_tested() -> None:
    assert f"| {madlib_coverage.NO_TEST} |" not in madlib_coverage.page()


def test_every_row_of_the_checklist_has_its_test() -> None:
    numbers = {int(number) for number in re.findall(r"^\| (\d+) \| `test_", madlib_coverage.page(), re.MULTILINE)}
    assert set(range(1, 48)) == numbers
