"""The documentation cannot drift from what was run, nor name files that are gone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(("tour", "page"), [("raw", "README.md"), ("tour", "docs/from-madlib.md")])
def test_the_tours_on_the_pages_are_the_golden_files(tour: str, page: str) -> None:
    readme = (ROOT / page).read_text()
    shown = re.search(
        rf"<!-- {tour}: begin .*?-->\n```sql\n(.*?)```\n<!-- {tour}: end -->", readme, re.DOTALL
    )
    assert shown is not None
    assert shown.group(1) == (ROOT / "tests" / "sql" / f"{tour}.out").read_text()


def test_tests_that_documents_name_are_there() -> None:
    tests = [str(path) for path in ROOT.glob("tests/**/test_*.py")]
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for name in re.findall(r"`((?:[\w/]*/)?test_\w+\.py)`", page.read_text()):
            assert any(path.endswith("/" + name) for path in tests), f"{page.name} names {name}"


def test_modules_that_documents_name_are_there() -> None:
    """From the root, from a package, or from a folder of tests or examples."""
    folders = ("", "plpy", "plpy/cerebro_plpy", "plpy/cerebro_trainer", "docs", "tests")
    for page in [*ROOT.glob("C*ING.md"), ROOT / "SECURITY.md", *(ROOT / "docs").glob("*.md")]:
        for name in re.findall(r"`([a-z_]+(?:/[a-z_]+)+\.py)`", page.read_text()):
            is_test = name.rpartition("/")[2].startswith("test_")
            exists = any((ROOT / folder / name).exists() for folder in folders)
            assert exists or is_test, f"{page.name} names {name}"
