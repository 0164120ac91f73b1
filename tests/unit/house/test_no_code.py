"""Nothing that a user stores is executed: neither side knows how to load code out of data.

One module executes what superusers have registered; that nobody else's text comes there is tested
in tests/integration/security/test_custom_function_attacks.py. Another loads what trainers have
compiled, from a folder that is theirs alone; that nobody else's is taken, in
tests/unit/trainer_client/test_compilation_cache.py.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from sources import nodes

PLPY = Path(__file__).parents[3] / "plpy"
MODULES = sorted(
    path for name in ("cerebro_plpy", "cerebro_trainer") for path in (PLPY / name).rglob("*.py")
)
LOADERS = {
    "pickle",
    "cPickle",
    "marshal",
    "shelve",
    "dill",
    "cloudpickle",
    "joblib",
    "h5py",
    "runpy",
    "code",
    "yaml",
}
CALLS = {"eval", "exec", "compile", "__import__", "execfile"}
PROGRAMS = PLPY / "cerebro_trainer" / "programs"
ALLOWED = {
    PROGRAMS / "custom_functions.py": ["exec", "compile"],
    PROGRAMS / "jax" / "compiled_code.py": ["serialize_executable.deserialize_and_load"],
}
METHODS = {
    "load_model", "load_weights", "load_weights_from_hdf5_group", "model_from_json",
    "enable_unsafe_deserialization",
    "register_keras_serializable", "custom_object_scope", "python_lambda", "load_library",
    "deserialize_and_load",
}  # fmt: skip


def found(path: Path) -> Iterator[str]:
    """What in a module would execute data, or lead to it."""
    for node in nodes(path):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = (
                [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else [alias.name for alias in node.names]
            )
            yield from (name for name in names if name.partition(".")[0] in LOADERS)
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS
        ):
            yield node.func.id
        elif isinstance(node, ast.Attribute) and (
            node.attr in METHODS or ast.unparse(node) in ("np.load", "numpy.load")
        ):
            yield ast.unparse(node)
        elif (
            isinstance(node, ast.keyword)
            and node.arg in ("safe_mode", "allow_pickle")
            and ast.unparse(node.value) != ("True" if node.arg == "safe_mode" else "False")
        ):
            yield f"{node.arg}={ast.unparse(node.value)}"


def test_no_module_loads_code() -> None:
    assert len(MODULES) > 300, "this test finds nothing any more"
    assert {path: names for path in MODULES if (names := [*found(path)])} == ALLOWED


@pytest.mark.parametrize(
    "line",
    ["import pickle", "from dill import loads", "eval('1')", "np.load(f)",
    "keras.models.load_model(p)",
     "keras.saving.deserialize_keras_object(c, safe_mode=False)", "f(allow_pickle=True)"],
)  # fmt: skip
def test_such_lines_would_be_found(tmp_path: Path, line: str) -> None:
    module = tmp_path / "module.py"
    module.write_text(line)
    assert [*found(module)]
