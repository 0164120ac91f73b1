"""Nothing is dropped because a table with row security shows nothing: what is not found under this
role is not gone.

A role that is renamed does not see its own runs any more; neither does one that lost its
privileges. Views of the extension run as its owner, and so do not hide rows: ask one of these, such
as cerebro.logged_run.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from sources import tree

from cerebro_plpy.database.queries import FOLDER, load

ROOT = Path(__file__).parents[3]
SECURED = set(
    re.findall(
        r"ALTER TABLE (cerebro\.\w+) ENABLE ROW LEVEL SECURITY",
        (ROOT / "sql/01-tables.sql").read_text(),
    )
)
STATEMENTS = {
    f"{path.stem}.{name}": text
    for path in sorted(Path(FOLDER).glob("*.sql"))
    for name, text in load(path.stem).items()
}
DROPPING = re.compile(r"\bDROP TABLE\b(?! pg_temp)(?! IF EXISTS pg_temp)")


def tables(statement: str) -> set[str]:
    """The tables with row security that a statement reads."""
    return set(re.findall(r"\b(cerebro\.\w+)", statement)) & SECURED


def absent(statement: str) -> set[str]:
    """The tables with row security whose rows a statement wants not to be there."""
    joined = re.findall(r"LEFT JOIN (cerebro\.\w+) (\w+)", statement)
    found = {table for table, alias in joined if re.search(rf"\b{alias}\.\w+ IS NULL", statement)}
    found |= set(re.findall(r"NOT (?:EXISTS|IN) \(SELECT[^()]*? ?FROM (cerebro\.\w+)", statement))
    found |= set(re.findall(r"EXCEPT (?:ALL )?SELECT .*?FROM (cerebro\.\w+)", statement))
    return found & SECURED


def test_no_statement_looks_for_what_row_security_hides() -> None:
    assert len(SECURED) > 10 and len(STATEMENTS) > 300, "this test finds nothing any more"
    assert {name: absent(text) for name, text in STATEMENTS.items() if absent(text)} == {}


@pytest.mark.parametrize(
    "condition",
    [
        "LEFT JOIN cerebro.run_log r USING (run_id) WHERE r.run_id IS NULL OR r.owner = "
        "current_user",
        "WHERE NOT EXISTS (SELECT FROM cerebro.run_log r WHERE r.run_id = f.run_id)",
        "WHERE f.run_id NOT IN (SELECT r.run_id FROM cerebro.run_log r)",
        "EXCEPT SELECT r.run_id FROM cerebro.run_log r",
    ],
)
def test_the_forms_of_such_statements_are_known(condition: str) -> None:
    assert absent(f"SELECT f.run_id FROM f {condition}") == {"cerebro.run_log"}


@cache
def named(node: ast.AST) -> set[str]:
    """The statements that a piece of code names by `sql("…")`."""
    calls = [
        each
        for each in ast.walk(node)
        if isinstance(each, ast.Call) and getattr(each.func, "id", "") == "sql"
    ]
    return {
        str(call.args[0].value)
        for call in calls
        if call.args and isinstance(call.args[0], ast.Constant)
    }


@cache
def called(node: ast.AST) -> set[str]:
    """The names of the functions and methods that a piece of code calls."""
    found = [each.func for each in ast.walk(node) if isinstance(each, ast.Call)]
    return {
        each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "") for each in found
    }


def droppers(functions: dict[str, list[ast.AST]]) -> set[str]:
    """The names of functions that drop tables, by themselves or by others that they call."""
    texts = {name for name, text in STATEMENTS.items() if DROPPING.search(text)}
    found = {
        name for name, bodies in functions.items() if any(named(body) & texts for body in bodies)
    }
    while more := {
        n
        for n, bodies in functions.items()
        if n not in found and any(called(b) & found for b in bodies)
    }:
        found |= more
    return found


def concludes(module: ast.AST, dropping: set[str]) -> list[str]:
    """The statements of which an empty answer makes a module drop tables."""
    return [
        name
        for node in ast.walk(module)
        if isinstance(node, ast.If) and any(called(each) & dropping for each in node.body)
        for part in ast.walk(node.test)
        if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not)
        for name in sorted(named(part.operand))
        if tables(STATEMENTS[name])
    ]


def test_no_module_drops_because_row_security_shows_nothing() -> None:
    modules = [tree(path) for path in sorted((ROOT / "plpy" / "cerebro_plpy").rglob("*.py"))]
    functions: dict[str, list[ast.AST]] = {}
    for module in modules:
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef):
                functions.setdefault(node.name, []).append(node)
    dropping = droppers(functions)
    known = {"drop_packed_tables", "drop_states", "discard", "sweep", "drop_after_error"}
    assert known <= dropping, "this test finds nothing any more"
    assert [found for module in modules for found in concludes(module, dropping)] == []
    example = (
        "if not control.run(sql('run.own'), (run_id,)):\n    drop_packed_tables(control, run_id)"
    )
    assert concludes(ast.parse(example), dropping) == ["run.own"]
