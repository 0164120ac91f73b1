"""Writes docs/madlib-coverage.md: which forms of MADlib's functions there are, and which tests show it.

Nothing is listed by hand but the contract: what exists is read in sql/, and what is tested in tests/.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from madlib_contract import FORMS, Form

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "madlib-coverage.md"
MISSING = "not in this version"
NO_TEST = "no test"
HEAD = """# Which of MADlib's functions there are

The functions of the deep-learning module of Apache MADlib 2.1, the arguments of each of their forms, a test that calls
them, and what differs; [from-madlib.md](from-madlib.md) says the same in words. `make coverage` writes this page from
`sql/`, `tests/` and the list of forms in `tests/support/madlib_contract.py`.

| function | form | tested by | differences |
|---|---|---|---|
"""
CHECKLIST = """
## What MADlib's users expect

Each row of the checklist in MADlib's contract has a test of its own, named by its number (`tests/integration`).

| row | test |
|---|---|
"""


def page() -> str:
    """The whole page."""
    tests = list(_tests())
    rows = [_row(group, tests) for group in (list(found) for _, found in groupby(FORMS, key=_family))]
    checks = sorted({(name[5:7], name, file) for file, name, _ in tests if re.match(r"test_\d\d_", name)})
    listed = [f"| {int(number)} | `{name}` in `{file}` |" for number, name, file in checks]
    return HEAD + "\n".join(rows) + "\n" + CHECKLIST + "\n".join(listed) + "\n"


def existing() -> set[str]:
    """The functions that sql/ makes."""
    texts = (path.read_text() for path in (ROOT / "sql").glob("*.sql"))
    return {name for text in texts for name in re.findall(r"^CREATE OR REPLACE FUNCTION (\w+)\(", text, re.MULTILINE)}


def callers(function: str, tests: list[tuple[str, str, str]]) -> list[str]:
    """The tests that call a function by name, those of its forms and of the checklist first."""
    found = [(file, name) for file, name, text in tests if f"{function}(" in text]
    found.sort(key=lambda test: ("overloads" not in test[0], "checklist" not in test[0], test))
    return [f"`{name}` in `{file}`" for file, name in found]


def _family(form: Form) -> tuple[str, tuple[str, ...]]:
    """Forms that differ in how many arguments are given only."""
    longest = max((f for f in FORMS if f.function == form.function and _extends(f, form)), key=lambda f: len(f.types))
    return form.function, longest.types


def _extends(longer: Form, shorter: Form) -> bool:
    return longer.types[: len(shorter.types)] == shorter.types


def _row(group: list[Form], tests: list[tuple[str, str, str]]) -> str:
    first, longest = group[0], group[-1]
    optional = longest.types[len(first.types) :]
    form = ", ".join(first.types) + "".join(f" [, {kind}" for kind in optional) + "]" * len(optional)
    if first.function not in existing():
        return f"| `{first.function}` | `{form}` | {MISSING} | |"
    tested = callers(first.function, tests)
    return f"| `{first.function}` | `{form}` | {tested[0] if tested else NO_TEST} | {first.differences} |"


def _tests() -> Iterator[tuple[str, str, str]]:
    """File, name and source of every test on a server, with the texts that its module has names for put in."""
    for path in sorted((ROOT / "tests" / "integration").rglob("test_*.py")):
        source = path.read_text()
        nodes = ast.parse(source).body
        named = _texts(nodes)
        for node in nodes:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                lines = source.splitlines()[node.lineno - 1 : node.end_lineno]
                yield path.name, node.name, _filled("\n".join(lines), named)


def _filled(text: str, named: dict[str, str]) -> str:
    for name, value in named.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _texts(nodes: list[ast.stmt]) -> dict[str, str]:
    """The texts that a module has names for."""
    assigned = [(node.targets[0], node.value) for node in nodes if isinstance(node, ast.Assign)]
    return {
        name.id: value.value
        for name, value in assigned
        if isinstance(name, ast.Name) and isinstance(value, ast.Constant) and isinstance(value.value, str)
    }
