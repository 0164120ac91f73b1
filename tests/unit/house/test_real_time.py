"""No test depends on real time: a sleep stands in a loop that polls a state."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
LASTING = {
    "tests/chaos/faults.py: hold": "a fault lasts for some time",
    "tests/support/processes.py: idle": "two looks, of which the caller's loop makes more",
    "tests/integration/greenplum/test_packing.py: cancel": "a cancel may come at any moment",
    (
        "tests/integration/client/test_docker.py: test_a_killed_trainer_does_not_disturb_the_server"
    ): "nothing happens",
}
"""Functions that sleep outside a loop, and why."""


def find_naps(tree: ast.AST, function: str = "", polls: bool = False) -> Iterator[str]:
    """Yield the functions of a module that sleep outside every `while`."""
    for node in ast.iter_child_nodes(tree):
        if (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) in ("time.sleep", "sleep")
            and not polls
        ):
            yield function
        inside = node.name if isinstance(node, ast.FunctionDef) else function
        within = isinstance(node, ast.While) or (polls and not isinstance(node, ast.FunctionDef))
        yield from find_naps(node, inside, within)


def test_a_test_that_waits_polls_a_state() -> None:
    paths = sorted(
        path for folder in ("tests", "bench/tests") for path in (ROOT / folder).rglob("*.py")
    )
    found = {
        f"{path.relative_to(ROOT)}: {function}"
        for path in paths
        for function in find_naps(ast.parse(path.read_text()))
    }
    assert not found - LASTING.keys()


def test_a_sleep_is_found_in_a_for_and_after_a_while() -> None:
    polling = "def polls():\n    while True:\n        time.sleep(1)\n"
    napping = "def naps():\n    for _ in range(2):\n        time.sleep(1)\n"
    assert [*find_naps(ast.parse(polling + napping))] == ["naps"]
