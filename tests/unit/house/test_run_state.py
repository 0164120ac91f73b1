"""One package writes the state of a run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from sources import tree

RUN = Path(__file__).parents[3] / "plpy" / "cerebro_plpy" / "run"
STATE = RUN / "state"
READERS = sorted(path for path in RUN.rglob("*.py") if STATE not in path.parents)
CONTAINER_CHANGES = {
    *("add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove"),
    *("setdefault", "update", "difference_update", "intersection_update"),
}


def changes_of_state() -> set[str]:
    """Return the methods of the state's classes that return nothing: they change it."""
    return {
        function.name
        for path in STATE.glob("*.py")
        for each in tree(path).body
        if isinstance(each, ast.ClassDef)
        for function in each.body
        if isinstance(function, ast.FunctionDef)
        and isinstance(function.returns, ast.Constant)
        and function.returns.value is None
        and not function.name.startswith("_")
    }


def is_of_state(node: ast.expr) -> bool:
    """Whether an expression leads to a part of a run's state."""
    parts = ast.unparse(node).replace("(", ".").replace("[", ".").split(".")
    names = {"state", "_state", "limits", "config", "configs", "stats", "_stats", "parent", "clone"}
    return not names.isdisjoint(parts)


def writes(path: Path) -> Iterator[str]:
    """Yield the statements of a module that change the state of a run themselves."""
    changes = changes_of_state() | CONTAINER_CHANGES
    for node in ast.walk(tree(path)):
        targets: list[ast.expr] = []
        if isinstance(node, (ast.Assign, ast.Delete)):
            targets = node.targets
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            targets = [node.target]
        for target in targets:
            base = target
            while isinstance(base, ast.Subscript):
                base = base.value
            if isinstance(base, ast.Attribute) and is_of_state(base.value):
                yield ast.unparse(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            is_change = node.func.attr in changes
            if is_change and is_of_state(node.func.value):
                yield ast.unparse(node)


def test_no_other_module_changes_the_state_of_a_run() -> None:
    """They name changes, which the epoch loop applies: `partial(state.stop, mst_key)`."""
    assert len(changes_of_state()) > 30 and len(READERS) > 20
    found = {path.relative_to(RUN).as_posix(): [*writes(path)] for path in READERS}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_a_change_would_be_seen(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "run.state.progress[1] = 2\nstate.stop(1)\nself._state.first = []\ndel config.losses[1]\n"
        "state.configs[1].parts.pop(1)\npartial(state.stop, 1)\nself._first = state.first\n"
    )
    assert len([*writes(module)]) == 5
