"""The product's modules, each parsed once for all tests of a process, and its SQL."""

from __future__ import annotations

import ast
import runpy
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
BACKEND = ROOT / "plpy" / "cerebro_plpy"


@cache
def sql_files() -> dict[Path, str]:
    """Return the files of sql/ in their order, each with its SQL as a server gets it."""
    # The root is not on the path of tests: it has a folder plpy.
    files: dict[Path, str] = runpy.run_path(str(ROOT / "assembly.py"))["expanded_files"]()
    return files


@cache
def tree(path: Path) -> ast.Module:
    """Return a module parsed, one of the backend as Python 3.9. Nobody may change the result."""
    version = (3, 9) if path.is_relative_to(BACKEND) else None
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path), feature_version=version)


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a module."""
    return tuple(ast.walk(tree(path)))
