"""What a call imports: what it is made of, and nothing of other calls. A new session waits for all
of it.

What is counted are modules, not seconds. The adapter of PostgreSQL is the one of every process that
is no Greenplum's.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

PLPY = Path(__file__).parents[3] / "plpy"
API = PLPY / "cerebro_plpy" / "api"
# Each takes a new session milliseconds, and gives it what a line or two do as well.
DEAR = {"dataclasses", "difflib", "inspect", "pathlib", "pickletools", "uuid"}
OF_GREENPLUM = {
    f"cerebro_plpy.platform.greenplum.{name}"
    for name in ("adapter", "backend", "packing", "visits")
}
# Rooms that are not entered by calls that train nothing, or predict for raw rows; and what opens
# further sessions.
TRAINING, OTHERS = {"scheduling", "packing", "run"}, {"psycopg2"}
PROBE = """
import json, sys
sys.path.insert(0, {plpy!r})
before = set(sys.modules)
from cerebro_plpy.platform import detect
detect.detect_platform()
{imports}
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def functions(module: str) -> dict[str, str]:
    """What each function of a module of the interface imports on its own, as statements."""
    found = {node.name: node for node in ast.parse((API / f"{module}.py").read_text()).body
             if isinstance(node, ast.FunctionDef)}  # fmt: skip
    return {
        name: "\n".join(
            ast.unparse(each)
            for each in ast.walk(node)
            if isinstance(each, (ast.Import, ast.ImportFrom))
        )
        for name, node in found.items()
    }


@cache
def loaded(module: str, *names: str) -> set[str]:
    """What a new process imports for these functions, or for all of a module."""
    return run(statements(module, *names))


def statements(module: str, *names: str) -> str:
    """What imports a module of the interface, and what these of its functions import, or all."""
    own = functions(module)
    return "\n".join(
        [f"from cerebro_plpy.api import {module}", *(own[name] for name in names or own)]
    )


def run(imports: str) -> set[str]:
    """What a new process has imported after these statements."""
    code = PROBE.format(plpy=str(PLPY), imports=imports)
    told = subprocess.run(
        [sys.executable, "-I", "-c", code], check=True, capture_output=True, text=True
    )
    return set(json.loads(told.stdout))


def rooms(modules: set[str]) -> set[str]:
    """The rooms that modules are in."""
    return {name.split(".")[1] for name in modules if name.startswith("cerebro_plpy.")}


MODULES = sorted(path.stem for path in API.glob("*.py") if path.stem != "__init__")


def test_no_call_imports_what_is_dear_or_of_another_server() -> None:
    """All modules in one process; each in its own, to name it, where that finds something."""
    names = run("\n".join(statements(module) for module in MODULES))
    assert len(MODULES) > 20 and {f"cerebro_plpy.api.{module}" for module in MODULES} <= names
    assert "cerebro_plpy.platform.postgres.adapter" in names
    refused = DEAR | OF_GREENPLUM
    assert {module: loaded(module) & refused for module in MODULES if names & refused} == {}


def test_what_runs_on_segments_is_about_trainers() -> None:
    """Every session of a worker begins with it; a model that was granted is looked up by one of
    `tables`.
    """
    names = loaded("segment")
    assert rooms(names) == {
        "api",
        "database",
        "errors",
        "limits",
        "nouns",
        "platform",
        "records",
        "tables",
        "trainer_client",
    }
    assert {name for name in names if name.startswith(("cerebro_plpy.tables.",
    "cerebro_plpy.platform."))} == {
        "cerebro_plpy.tables.models", "cerebro_plpy.tables.models.granted_function",
        "cerebro_plpy.platform.detect", "cerebro_plpy.platform.postgres",
        "cerebro_plpy.platform.postgres.adapter",
    }  # fmt: skip
    assert not names & OTHERS


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("named_prediction", "predict_blocks"),
        ("named_prediction", "predict_row"),
        ("understanding", "evaluate"),
        ("understanding", "evaluation_blocks"),
        ("freshness", "drift"),
        ("named_models", "deploy"),
        ("named_models", "template_fields"),
        ("help", "explain"),
    ],
)
def test_what_reads_models_imports_nothing_that_trains_them(module: str, name: str) -> None:
    names = loaded(module, name)
    assert not rooms(names) & TRAINING and not names & OTHERS
    assert "cerebro_plpy.platform.postgres.visits" not in names


@pytest.mark.parametrize(
    ("module", "name"),
    [("training", "fit_multiple_model"), ("evaluation_prediction", "evaluate"), ("runs", "wait")],
)
def test_what_works_on_packed_tables_imports_nothing_of_raw_ones(module: str, name: str) -> None:
    names = loaded(module, name)
    assert "preprocessing" not in rooms(names)
    assert not {each for each in names if each.startswith("cerebro_plpy.configs.templates")}
