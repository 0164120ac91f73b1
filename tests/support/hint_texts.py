"""The hints of the backend's code, as templates: `{}` stands for what a call decides."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2] / "plpy" / "cerebro_plpy"
FOLLOWABLE = re.compile(
    r"\w+ => |\} => |\b(?:SET|SELECT|GRANT|ALTER|INSERT|UPDATE|CREATE|DROP|ROLLBACK)\b.*?;"
)
"""A hint that has an argument or a statement."""
QUERY = re.compile(r"(?<! AS )SELECT (?:'[^']*'|[^;'])*;")
OF_RUN = "run_id = {}"
"""The condition of a query about a run."""
OF_PLANS = {
    "Write {} => {}.": "a table with capitals",
    "Leave {} out, and write query => {}{}.": "a query",
    "Name the model, such as model => {}.": "a query without a name",
    "{} => {}": "a target of dates",
    "Write types => {}.": "types in another case",
    "Write split => {}.": "a split in another case",
    "Write columns => {}.": "a target alone",
    "Predict a number: task => {}.": "too many classes",
    "Name a table or columns whose values differ: columns => '*' takes all.": (
        "a column of one value"
    ),
    "Divide rows by chance: split => 'random 0.2'. {}.": "a key for sides",
    "All rows with the same value are on one side: name a column with more values, or divide the "
    "rows by chance: split => 'random 0.2'.": "one value for a group",
    "It is the time for the whole call, such as budget => '10 minutes'.": "a short budget",
    "For example search_params => '{\"eta\": 4}'.": "parameters of a search in a list",
    "Write search => 'asha', or another one of {}.": "parameters without a search",
    "For example {} => '{}'.": "types in a list",
    "Name another column, or divide the rows at random: split => 'random {}'.": (
        "an order of one value"
    ),
    "Divide the rows by chance: split => 'random 0.2'.": "a class that came late",
    "Leave costs out, or write task => 'classification'.": "costs of a number",
    "Name only what mistakes cost more, such as costs => {}.": "a mistake that costs less",
    "Compare models by another metric, such as metric => '{}'.": "a metric of another target",
    'Write a range of values, such as space => \'{"lr": [0.001, 0.1, "log"]}\'.': (
        "a population without ranges"
    ),
    "Write metric => '{}'. Or leave the target out: search_params => {}.": (
        "a target of a final metric"
    ),
    "Write {} => {}, search_params => {}.": "a limit among the parameters of a search",
    "Write {} => 1 or a larger number.": "no configurations",
    "For example {} => '10 minutes'.": "a negative budget",
}
"""Templates of hints, each with a case of tests/integration/models/test_hints.py that has it."""
_HELPER = re.compile(r"_?suggest|_?write$|_?write_types$|hint$")


@cache
def read_hints() -> dict[str, set[str]]:
    """Return the templates of all hints, each with the modules that have it."""
    modules: dict[str, set[str]] = {}
    trees = {path: ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}
    constants = {name for tree in trees.values() for name in _list_constants(tree)}
    for path, tree in trees.items():
        for template in _templates(tree, constants):
            modules.setdefault(template.strip(), set()).add(str(path.relative_to(ROOT)))
    return modules


def _list_constants(tree: ast.Module) -> Iterator[str]:
    """Yield the names of constants that are hints as they stand."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.keyword) or node.arg != "hint":
            continue
        if isinstance(node.value, ast.Name) and node.value.id.isupper():
            yield node.value.id


def _templates(tree: ast.Module, constants: Container[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "hint":
            yield from _strings(node.value)
        elif isinstance(node, ast.FunctionDef) and _HELPER.match(node.name):
            for statement in node.body:
                if not _is_docstring(statement):
                    yield from _strings(statement)
        elif isinstance(node, ast.Assign) and any(
            _is_hint(target, constants) for target in node.targets
        ):
            yield from _strings(node.value)


def _is_hint(target: ast.expr, constants: Container[str]) -> bool:
    return isinstance(target, ast.Name) and ("hint" in target.id.lower() or target.id in constants)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _strings(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        yield "".join(map(str, parts))
    else:
        for child in ast.iter_child_nodes(node):
            yield from _strings(child)


def list_queries() -> set[str]:
    """Return the queries in hints in which a call decides nothing, or the number of a run."""
    return _list_statements() - list_changes_of_settings()


def list_changes_of_settings() -> set[str]:
    """Return the statements in hints with which an administrator changes a setting."""
    return {text for text in _list_statements() if text.startswith("SELECT cerebro.set(")}


@cache
def _list_statements() -> set[str]:
    queries = {query for template in read_hints() for query in QUERY.findall(template)}
    return {
        query for query in queries if not re.search(r"\{\}|…|\.\.\.", query.replace(OF_RUN, ""))
    }


def is_query(template: str) -> bool:
    """Return whether a test follows each statement of a hint: a call decides nothing in it."""
    return QUERY.search(template) is not None and not FOLLOWABLE.search(
        re.sub("|".join(map(re.escape, _list_statements())), "", template)
    )


def matches(template: str, hint: str) -> bool:
    """Return whether a hint has the text of a template."""
    parts = (re.escape(part) for part in template.split("{}"))
    return re.search("(?s:.*)".join(parts), hint) is not None
