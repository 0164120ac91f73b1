"""The tables of a dump, read without a server, and the differences of answers from stored ones."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

TOLERANCE = 1e-5
"""Processors and frameworks round differently."""
COPY = re.compile(r"COPY (\S+) \((.*)\) FROM stdin;")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}
ESCAPED = re.compile(r"\\(.)")
Rows = list[dict[str, str | None]]


def read_tables(dump: str) -> dict[str, Rows]:
    """Return the rows of all tables of a dump in plain SQL, by the names of the tables."""
    tables: dict[str, Rows] = {}
    rows: Rows | None = None
    columns: list[str] = []
    for line in dump.split("\n"):
        if rows is None:
            if start := COPY.fullmatch(line):
                columns = [name.strip('"') for name in start[2].split(", ")]
                rows = tables.setdefault(start[1], [])
        elif line == "\\.":
            rows = None
        else:
            rows.append(dict(zip(columns, map(_unescape, line.split("\t")), strict=True)))
    return tables


def _unescape(value: str) -> str | None:
    if value == "\\N":
        return None
    return ESCAPED.sub(lambda match: ESCAPES.get(match[1], match[1]), value)


def find_differences(
    answer: Any, stored: Any, tolerance: float = TOLERANCE, path: str = ""
) -> Iterator[str]:
    """Yield the places where two JSON values differ, other than numbers that are nearly equal."""
    if isinstance(answer, dict) and isinstance(stored, dict) and answer.keys() == stored.keys():
        for key in stored:
            yield from find_differences(answer[key], stored[key], tolerance, f"{path}/{key}")
    elif isinstance(answer, list) and isinstance(stored, list) and len(answer) == len(stored):
        for place, (one, other) in enumerate(zip(answer, stored, strict=True)):
            yield from find_differences(one, other, tolerance, f"{path}/{place}")
    elif answer != stored and not _is_close(answer, stored, tolerance):
        yield f"{path}: {answer!r:.200}, stored {stored!r:.200}"


def _is_close(answer: Any, stored: Any, tolerance: float) -> bool:
    """Return if two values are numbers, or texts of numbers, that are nearly equal."""
    if type(answer) is not type(stored) and str in (type(answer), type(stored)):
        return False
    try:
        return math.isclose(float(answer), float(stored), rel_tol=tolerance, abs_tol=tolerance)
    except (TypeError, ValueError):
        return False
