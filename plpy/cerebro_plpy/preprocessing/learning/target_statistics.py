"""The statistics of a target of numbers: its scale, and whether it suits double precision."""

from __future__ import annotations

from typing import NamedTuple

from cerebro_plpy.database.platform_protocol import Reader, Table
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.preprocessing.recipe.target_scale import TargetScale
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.values import column_values
from cerebro_plpy.preprocessing.values.column_hints import suggest_target
from cerebro_plpy.preprocessing.values.columns import RawColumn

FARTHEST = 1e100
"""Largest number that can be predicted; its square is a number."""
LARGEST_EXACT = 2.0**53
"""Double precision represents all whole numbers up to this one."""
EXACT = ("integer", "numeric")
"""Families whose numbers may have more digits than double precision."""


class NumberTarget(NamedTuple):
    """A target of numbers."""

    rows: int  # with a finite number
    scale: TargetScale
    warning: str | None  # if double precision does not distinguish all numbers


class Rounding(NamedTuple):
    """Numbers that double precision does not distinguish."""

    text: str  # for a message
    hint: str


class Summary(NamedTuple):
    """Statistics of the finite numbers of a target."""

    finite: int  # how many there are
    low: float | None
    high: float | None
    offset: float | None  # mean of the distances from the smallest number
    deviation: float


def read_number_target(
    reader: Reader, module: str, source: Source, column: RawColumn, table: Table
) -> NumberTarget:
    """Read the statistics of a target of numbers.

    Args:
        table: the source of the call, for hints.

    Raises:
        InvalidParameter: nothing can be learned from the numbers.
    """
    number = column_values.number(column.name, column.family or "")
    statement = sql(
        "features.target", number=number.text, source=source.table, side=source.side.text
    )
    (row,) = reader.run(statement, (*number.values, *source.side.values))
    summary = Summary(*row)
    rounding = _find_rounding(reader, source, column, summary, table)
    scale = _make_scale(module, column, summary, rounding)
    warning = None
    if rounding is not None:
        warning = f"{rounding.text}. {rounding.hint}"
    return NumberTarget(summary.finite, scale, warning)


def _make_scale(
    module: str, column: RawColumn, summary: Summary, rounding: Rounding | None
) -> TargetScale:
    low = summary.low
    high = summary.high
    if rounding is not None and low == high:
        raise InvalidParameter(
            f"{module} error: target {column.name!r} cannot be learned: {rounding.text}.",
            hint=rounding.hint,
        )
    if low is None or high is None or summary.offset is None or low == high:
        raise InvalidParameter(
            f"{module} error: target {column.name!r} has fewer than two different finite values.",
            hint="Look at the table and the split.",
        )
    if max(-low, high) > FARTHEST or not summary.deviation:
        raise InvalidParameter(
            f"{module} error: target {column.name!r} has numbers from {low:g} to {high:g}; "
            f"expected numbers within {FARTHEST:g} whose squares differ.",
            hint="Train on the target times or divided by a constant.",
        )
    return TargetScale(low, high, summary.offset, summary.deviation)


def _find_rounding(
    reader: Reader, source: Source, column: RawColumn, summary: Summary, table: Table
) -> Rounding | None:
    """Return the numbers that are equal in double precision only; None if there are none."""
    if summary.low is None or summary.high is None or column.family not in EXACT:
        return None
    if max(-summary.low, summary.high) <= LARGEST_EXACT:
        return None
    number = column_values.number(column.name, column.family)
    name = column_values.column_name(column.name)
    statement = sql(
        "features.rounded",
        column=name,
        number=number.text,
        source=source.table,
        side=source.side.text,
    )
    ((exact, rounded, lowest),) = reader.run(statement, (*number.values, *source.side.values))
    if rounded == exact:
        return None
    expressions = {f"{column.name}_difference": f"{name} - ({lowest})"}
    return Rounding(
        f"its {count_nouns(exact, 'different value', 'is')} {rounded} in double precision, in "
        "which numbers are learned and predicted",
        f"A difference has fewer digits: {suggest_target(table, column, expressions)}",
    )
