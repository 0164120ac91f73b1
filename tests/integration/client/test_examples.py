"""Each of docs/examples runs in a new database, and prints what stands beside it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import printed
from servers import Database

FOLDER = Path(__file__).parents[3] / "docs" / "examples"
EXAMPLES = sorted(path.name for path in FOLDER.iterdir() if path.suffix in (".py", ".sql"))
SUPERUSERS = {"two_users.sql"}
SLOW = {
    "accelerometer.sql",
    "countries.sql",
    "digits.py",
    "refresh.sql",
    "transfer.sql",
    "two_users.sql",
}


def run_python(url: str, script: Path) -> str:
    """What a program prints that takes the URL of a database."""
    done = subprocess.run(
        [sys.executable, str(script), url], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.postgresql("on Greenplum rows are packed in another order, and group_by is refused")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.long] if name in SLOW else []) for name in EXAMPLES],
)
def test_an_example_prints_what_stands_beside_it(database: Database, name: str) -> None:
    script = FOLDER / name
    url = database.superuser_url if name in SUPERUSERS else database.url
    told = run_python(url, script) if script.suffix == ".py" else printed(url, script)
    assert told == script.with_suffix(".out").read_text()


def test_the_page_lists_each_example_once() -> None:
    assert (
        sorted(re.findall(r"^\| \[(\S+)\]\(\1\)", (FOLDER / "README.md").read_text(), re.MULTILINE))
        == EXAMPLES
    )
    assert {path.stem for path in FOLDER.glob("*.out")} == {Path(name).stem for name in EXAMPLES}
