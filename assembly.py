"""Puts together what a server gets of the extension: its scripts, its control file, and the page
that help() reads.

`make install` and setup.py both call it, so that a server has the same from either. It needs the
standard library only.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
NAME = "cerebro_db"
CONTROL = f"{NAME}.control"
PAGE = "sql-reference.md"
HEAD = '\\echo Use "%s" to load this file. \\quit\n'


def version() -> str:
    """The version, which stands in the control file only."""
    found = re.search(r"^default_version\s*=\s*'(.+)'", (ROOT / CONTROL).read_text(), re.MULTILINE)
    if found is None:
        sys.exit(f"{CONTROL} has no default_version")
    return found.group(1)


def scripts() -> dict[str, str]:
    """What CREATE EXTENSION and ALTER EXTENSION … UPDATE run, by file name.

    An upgrade goes from any older version straight to this one: the table changes since then in
    order, then every function again, so that no function is ever created against the tables of a
    version in between.
    """
    tables, functions = _text("sql/[01]*.sql"), _text("sql/[2-9]*.sql")
    made = {f"{NAME}--{version()}.sql": HEAD % f"CREATE EXTENSION {NAME}" + tables + functions}
    migrations = sorted((ROOT / "migrations").glob("*--*.sql"), key=_numbers)
    for number, migration in enumerate(migrations):
        changes = "".join(path.read_text() for path in migrations[number:])
        name = f"{NAME}--{migration.name.partition('--')[0]}--{version()}.sql"
        made[name] = HEAD % f"ALTER EXTENSION {NAME} UPDATE" + changes + functions
    return made


def write(folder: Path) -> None:
    """Writes all files into a folder, and removes the scripts of another version from it."""
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob(f"{NAME}--*.sql"):
        stale.unlink()
    files = {**scripts(), CONTROL: (ROOT / CONTROL).read_text(), "VERSION": version() + "\n"}
    for name, content in {**files, PAGE: (ROOT / "docs" / PAGE).read_text()}.items():
        (folder / name).write_text(content)


def _text(pattern: str) -> str:
    return "".join(path.read_text() for path in sorted(ROOT.glob(pattern)))


def _numbers(migration: Path) -> list[int]:
    """The older version in the name of a migration, as what orders 0.10.0 after 0.9.0."""
    return [int(part) for part in migration.name.partition("--")[0].split(".")]


if __name__ == "__main__":
    write(Path(sys.argv[1]))
