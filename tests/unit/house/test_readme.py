"""The documentation cannot drift from what was run, nor name files that are gone."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
SCRIPTS = ROOT / "tests" / "sql"


def test_the_tour_of_madlib_s_statements_is_the_golden_file() -> None:
    page = (ROOT / "docs" / "tutorials" / "from-madlib.md").read_text()
    shown = re.search(
        r"<!-- tour: begin .*?-->\n```sql\n(.*?)```\n<!-- tour: end -->", page, re.DOTALL
    )
    assert shown is not None
    assert shown[1] == (SCRIPTS / "tour.out").read_text()


def test_the_example_of_the_readme_is_the_script_and_what_it_prints() -> None:
    statements, printed = re.findall(
        r"^```(?:sql|text)\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE
    )
    script = (SCRIPTS / "raw.sql").read_text()
    assert statements == script[script.index("SELECT") :]
    assert printed == (SCRIPTS / "raw.out").read_text()


def test_the_readme_is_short() -> None:
    readme = (ROOT / "README.md").read_text()
    assert len(readme.splitlines()) <= 120
    before = readme[: readme.index("\n    git clone")]
    assert len(before.split()) <= 120


def test_tests_that_documents_name_are_there() -> None:
    tests = [str(path) for path in ROOT.glob("tests/**/test_*.py")]
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for name in re.findall(r"`((?:[\w/]*/)?test_\w+\.py)`", page.read_text()):
            assert any(path.endswith("/" + name) for path in tests), f"{page.name} names {name}"


def test_modules_that_documents_name_are_there() -> None:
    """From the root, from a package, or from a folder of tests or examples."""
    folders = ("", "plpy", "plpy/cerebro_plpy", "plpy/cerebro_trainer", "docs", "tests")
    for page in [*ROOT.glob("C*ING.md"), ROOT / "SECURITY.md", *(ROOT / "docs").rglob("*.md")]:
        for name in re.findall(r"`([a-z_]+(?:/[a-z_]+)+\.py)`", page.read_text()):
            is_test = name.rpartition("/")[2].startswith("test_")
            exists = any((ROOT / folder / name).exists() for folder in folders)
            assert exists or is_test, f"{page.name} names {name}"
