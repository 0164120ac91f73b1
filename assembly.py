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
FUNCTION_START = re.compile(r"^(?=CREATE OR REPLACE (?:FUNCTION|PROCEDURE) )", re.MULTILINE)
CREATED = re.compile(r"CREATE OR REPLACE (?:FUNCTION|PROCEDURE) (?P<name>[\w.@]+)\(")
SAME_ARGUMENTS = re.compile(r"@arguments of (?P<name>[\w.]+)@")
ALIAS = re.compile(r"^-- Alias: (\w+)\n", re.MULTILINE)
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


def expand(text: str) -> str:
    """Return SQL with what a file of sql/ leaves to this function.

    * `@arguments of name@` becomes the arguments of a function further up, as they are written.
    * `COMMENT ON FUNCTION name IS` gets the types of the arguments of the function before it, so
      that functions of other extensions with the same name are left alone.
    * `-- Alias: name` behind a function and its comment makes both once more under this name.
    """
    text = SAME_ARGUMENTS.sub(lambda match: _arguments(text, match["name"]), text)
    parts = FUNCTION_START.split(text)
    return parts[0] + "".join(_function(part) for part in parts[1:])


def _arguments(text: str, name: str) -> str:
    """Return the arguments of a function or procedure as they are written."""
    created = re.search(rf"(?:FUNCTION|PROCEDURE) {re.escape(name)}\(", text)
    if created is None:
        raise ValueError(f"{name} is not created further up")
    depth = 1
    for end, character in enumerate(text[created.end() :], created.end()):
        depth += (character == "(") - (character == ")")
        if not depth:
            return text[created.end() : end]
    raise ValueError(f"the arguments of {name} do not end")


def _function(text: str) -> str:
    """Return text that begins with a function, with the types in its comment, and its aliases."""
    created = CREATED.match(text)
    assert created, text[:100]
    name = created["name"]
    types = ", ".join(argument_types(_arguments(text, name)))
    comment = re.compile(rf"(COMMENT ON \w+ {re.escape(name)}) IS")
    definition, *aliases = ALIAS.split(comment.sub(rf"\1({types}) IS", text))
    for number in range(0, len(aliases), 2):
        alias, following = aliases[number : number + 2]
        definition += "\n" + definition.replace(name, alias) + following
    return definition


def argument_types(arguments: str) -> list[str]:
    """Return the types of the arguments of a function, as it is declared.

    >>> argument_types("a integer, b numeric(9, 2) DEFAULT 1, OUT c text")
    ['integer', 'numeric(9, 2)']
    """
    types = []
    for argument in re.split(r",\s*(?![^(]*\))", arguments.strip()):
        declared = re.split(r"\s+DEFAULT\s", argument.strip())[0]
        name, _, type_ = declared.partition(" ")
        if name and name != "OUT":
            types.append(type_.strip())
    return types


def write(folder: Path) -> None:
    """Writes all files into a folder, and removes the scripts of another version from it."""
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob(f"{NAME}--*.sql"):
        stale.unlink()
    files = {**scripts(), CONTROL: (ROOT / CONTROL).read_text(), "VERSION": version() + "\n"}
    for name, content in {**files, PAGE: (ROOT / "docs" / PAGE).read_text()}.items():
        (folder / name).write_text(content)


def _text(pattern: str) -> str:
    return "".join(expand(path.read_text()) for path in sorted(ROOT.glob(pattern)))


def _numbers(migration: Path) -> list[int]:
    """The older version in the name of a migration, as what orders 0.10.0 after 0.9.0."""
    return [int(part) for part in migration.name.partition("--")[0].split(".")]


if __name__ == "__main__":
    write(Path(sys.argv[1]))
