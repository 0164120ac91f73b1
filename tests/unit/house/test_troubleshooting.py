"""docs/reference/troubleshooting.md quotes messages that the product prints, and SQLSTATEs of its
errors.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
from sources import BACKEND, nodes

from cerebro_plpy import errors

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "troubleshooting.md").read_text()
ROWS = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| `")]
OF_POSTGRESQL = {
    'extension "cerebro_db" is not available',
    "permission denied for schema cerebro",
    "permission denied for table setting",
    "function madlib_fit_multiple_model(…) does not exist",
    "function cerebro.train(character varying, …) does not exist",
    "function cerebro.train(unknown, unknown, …) does not exist",
    'malformed array literal: "linear"',
    "could not determine polymorphic type …",
    "canceling statement due to statement timeout",
}
SQLSTATES_OF_POSTGRESQL = {"42883"}


def list_texts() -> Iterator[str]:
    """Return the texts of the backend's code; what a call decides is `…`."""
    for node in chain.from_iterable(map(nodes, sorted(BACKEND.rglob("*.py")))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
            yield "".join(map(str, parts))


def list_messages() -> list[str]:
    return [message for row in ROWS for message in re.findall(r"`([^`]*)`", row[0])[:1]]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return list(list_texts())


def test_messages_are_printed_by_the_product(texts: list[str]) -> None:
    messages = {message for message in list_messages() if " " in message} - OF_POSTGRESQL
    assert len(messages) > 5, "this test finds nothing any more"
    for message in messages:
        parts = [part for part in re.split(r" ?… ?", message) if part]
        pattern = re.compile("(?s:.*)".join(map(re.escape, parts)))
        assert any(map(pattern.search, texts)), message


def test_sqlstates_are_those_of_errors() -> None:
    ours = {error.sqlstate for error in vars(errors).values() if hasattr(error, "sqlstate")}
    listed = set(re.findall(r"\b[0-9A-Z]{5}\b(?=[ ,|)])", PAGE))
    listed = {text for text in listed if re.search(r"[0-9]", text)}
    assert len(listed) > 10, "this test finds nothing any more"
    assert listed <= ours | SQLSTATES_OF_POSTGRESQL
