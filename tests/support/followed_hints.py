"""Hints followed to the letter: their statements are executed, and their arguments put into the
call that failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import psycopg2
from hint_texts import matches
from workbench import Row, Workbench

STATEMENT = re.compile(
    r"\b(?:CREATE VIEW|SELECT|SET|GRANT|ALTER|INSERT|UPDATE|COMMIT|ROLLBACK|DROP TABLE)\b"
    r"(?:'(?:[^']|'')*'|[^;'])*;"
)
ARGUMENT = re.compile(r"\b(\w+) => ('(?:[^']|'')*'|ARRAY\[[^]]*\]|true|false|[0-9.]*[0-9])")
LEFT_OUT = re.compile(r"\b[Ll]eave (\w+) out\b")
VIEW = re.compile(r"CREATE VIEW (\S+) AS")
MOST_STEPS = 3
"""Hints that may follow each other until a call succeeds."""


class Call(NamedTuple):
    """A call of a function, with its arguments as they are typed."""

    function: str
    arguments: Mapping[str, str]

    def __str__(self) -> str:
        listed = ", ".join(f"{name} => {value}" for name, value in self.arguments.items())
        return f"SELECT * FROM {self.function}({listed})"


class Way(NamedTuple):
    """One of the ways that a hint names."""

    statements: tuple[str, ...]
    arguments: Mapping[str, str]
    left_out: tuple[str, ...]

    def change(self, call: Call) -> Call:
        """Return the call as the hint wants it."""
        arguments = {**call.arguments, **self.arguments}
        for name in self.left_out:
            del arguments[name]
        return call._replace(arguments=arguments)


def read_ways(hint: str) -> list[Way]:
    """Return what a hint names to do; its ways are separated by "; or", or repeat an argument."""
    return [way for part in re.split(r"[;.,] [oO]r\b", hint) for way in _read_part(part)]


def _read_part(part: str) -> Iterator[Way]:
    statements = tuple(STATEMENT.findall(part))
    written = ARGUMENT.findall(STATEMENT.sub("", part))
    left_out = tuple(LEFT_OUT.findall(part))
    arguments: dict[str, str] = {}
    for name, value in written:
        if name in arguments:
            yield Way(statements, arguments, left_out)
            arguments = {}
        arguments[name] = value
    if statements or arguments or left_out:
        yield Way(statements, arguments, left_out)


def error_of(bench: Workbench, call: Call) -> psycopg2.Error | None:
    try:
        bench.rows(str(call))
    except psycopg2.Error as error:
        return error
    return None


def read_hint(error: psycopg2.Error | None, template: str) -> str:
    """Return the hint of an error, which has the text of a template."""
    assert error is not None, f"no error has the hint {template!r}"
    hint = error.diag.message_hint or ""
    assert matches(template, hint), f"{error}: expected the hint {template!r}"
    return hint


def read_statements(error: psycopg2.Error | None, template: str) -> list[str]:
    """Return the statements in the hint of an error, which has the text of a template."""
    statements = STATEMENT.findall(read_hint(error, template))
    assert statements, f"{template!r} has no statement"
    return statements


def follow(bench: Workbench, call: Call, undo: str = "SELECT") -> list[list[Row]]:
    """Return the rows of a call that fails after each of the ways that its hint names.

    The call after a way may fail with a hint of its own, which is followed in turn.

    Args:
        undo: a statement that undoes what a call has done that succeeds.
    """
    error = error_of(bench, call)
    assert error is not None, f"does not fail: {call}"
    return list(_follow(bench, call, error, MOST_STEPS, undo))


def _follow(
    bench: Workbench, call: Call, error: psycopg2.Error, steps: int, undo: str
) -> Iterator[list[Row]]:
    hint = error.diag.message_hint or ""
    ways = read_ways(hint)
    assert ways and steps, f"{call}: {error}"
    for way in ways:
        for statement in way.statements:
            bench.rows(statement)
        changed = way.change(call)
        next_error = error_of(bench, changed)
        if next_error is None:
            bench.rows(undo)
            yield bench.rows(str(changed))
            bench.rows(undo)
        else:
            assert next_error.diag.message_hint != hint, f"a circle: {changed}: {next_error}"
            yield from _follow(bench, changed, next_error, steps - 1, undo)
        for view in VIEW.findall("".join(way.statements)):
            bench.rows(f"DROP VIEW {view}")
