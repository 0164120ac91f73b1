"""A tree in the format of PostgreSQL's EXPLAIN, as text or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.records import asdict
from cerebro_plpy.scheduling.planning.run_plan import Strategy

TEXT = "text"
JSON = "json"
FORMATS = (TEXT, JSON)
INDENT = 6
DIGITS = 3


class Node(NamedTuple):
    """A node of the tree."""

    name: str
    attributes: Mapping[str, object]  # shown next to the name
    properties: Mapping[str, object]  # shown below the name, one a line
    children: Sequence[Node] = ()


class Quantity(NamedTuple):
    """A number with its unit; the text has suitable digits, and JSON the plain number."""

    value: float
    unit: str = "s"

    def __str__(self) -> str:
        if self.unit == "B":
            return format_bytes(self.value)
        return f"{format_number(self.value)} {self.unit}"


class Money(NamedTuple):
    """A sum of money, in the unit of the prices."""

    value: float

    def __str__(self) -> str:
        return format_number(self.value)


class StrategyList(NamedTuple):
    """Strategies to compare; in JSON, each is an object."""

    strategies: Sequence[Strategy]

    def __str__(self) -> str:
        return ", ".join(map(_format_strategy, self.strategies))

    @property
    def best(self) -> str:
        """The fastest strategy."""
        timed = [strategy for strategy in self.strategies if strategy.seconds is not None]
        if not timed:
            return "unknown"
        return _format_strategy(min(timed, key=lambda strategy: strategy.seconds or 0.0))


def format_tree(tree: Node, form: str) -> list[str]:
    """Return the lines of a tree, or its JSON as a single text."""
    if form == JSON:
        return [json.dumps([{"Plan": _to_json(tree)}], indent=2)]
    return list(_format_lines(tree, 0))


def _format_strategy(strategy: Strategy) -> str:
    duration = "unknown"
    if strategy.seconds is not None:
        duration = str(Quantity(strategy.seconds))
    return f"{strategy.name} {duration} ({strategy.workers} x {strategy.threads})"


def _format_lines(node: Node, depth: int) -> Iterator[str]:
    line = node.name
    if node.attributes:
        attributes = " ".join(f"{name}={value}" for name, value in node.attributes.items())
        line = f"{line}  ({attributes})"
    if depth:
        line = " " * (INDENT * depth - 4) + f"->  {line}"
    yield line
    indent = " " * (INDENT * depth + 2)
    for name, value in node.properties.items():
        yield f"{indent}{name}: {value}"
    for child in node.children:
        yield from _format_lines(child, depth + 1)


def _to_json(node: Node) -> dict[str, Any]:
    attributes = {name.capitalize(): value for name, value in node.attributes.items()}
    values = {**attributes, **node.properties}
    result = {"Node Type": node.name, **{name: _to_value(values[name]) for name in values}}
    if node.children:
        result["Plans"] = [_to_json(child) for child in node.children]
    return result


def _to_value(value: object) -> object:
    if isinstance(value, (Money, Quantity)):
        return value.value
    if isinstance(value, StrategyList):
        return [asdict(strategy) for strategy in value.strategies]
    return value


def format_number(value: float) -> str:
    """Return a number with its significant digits.

    >>> format_number(1234.56), format_number(12.345), format_number(0.0123456), format_number(0.0)
    ('1235', '12.3', '0.0123', '0')
    """
    if abs(value) >= 10**DIGITS:
        return f"{value:.0f}"
    return f"{value:.{DIGITS}g}"


def format_bytes(size: float) -> str:
    """Return a number of bytes in a suitable unit.

    >>> format_bytes(512), format_bytes(1_500), format_bytes(2_345_678_901)
    ('512 B', '1.5 kB', '2.35 GB')
    """
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= factor:
            return f"{format_number(size / factor)} {unit}"
    return f"{size:.0f} B"
