"""The product's modules, each parsed once for all tests of a process."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

BACKEND = Path(__file__).parents[2] / "plpy" / "cerebro_plpy"


@cache
def tree(path: Path) -> ast.Module:
    """Return a module parsed, one of the backend as Python 3.9. Nobody may change the result."""
    version = (3, 9) if path.is_relative_to(BACKEND) else None
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path), feature_version=version)


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a module."""
    return tuple(ast.walk(tree(path)))
