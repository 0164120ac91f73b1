"""The product's modules, each parsed once for all tests of a process, and its SQL."""

from __future__ import annotations

import ast
import runpy
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
BACKEND = ROOT / "plpy" / "cerebro_plpy"


@cache
def read_assembly() -> dict[str, Any]:
    """Return what assembly.py defines. The root, which has a folder plpy, is not on the path."""
    return runpy.run_path(str(ROOT / "assembly.py"))


@cache
def read_reference() -> str:
    """Return the pages of the reference of SQL, in their order."""
    return "\n".join(read_assembly()["read_reference"]().values())


@cache
def sql_files() -> dict[Path, str]:
    """Return the files of sql/ in their order, each with its SQL as a server gets it."""
    files: dict[Path, str] = read_assembly()["expanded_files"]()
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
