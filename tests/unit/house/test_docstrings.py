"""The examples in the backend's docstrings hold."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

FOLDER = Path(__file__).parents[3] / "plpy" / "cerebro_plpy"
WITH_EXAMPLES = sorted(
    ".".join(path.relative_to(FOLDER.parent).with_suffix("").parts)
    for path in FOLDER.rglob("*.py")
    if ">>> " in path.read_text()
)


def test_the_examples_in_docstrings_hold() -> None:
    assert len(WITH_EXAMPLES) > 80, "this test finds nothing any more"
    for module in WITH_EXAMPLES:
        result = doctest.testmod(importlib.import_module(module))
        assert result.attempted > 0, module
        assert result.failed == 0, module
