"""What each segment did of late, as cells of a line: pure, so that what is drawn can be checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import NamedTuple

from cerebro_db.records import Span

LEAST = timedelta(seconds=10)
VISITS = 20
"""So many visits of the usual length are in view."""


class Cell(NamedTuple):
    """Which config a segment had at a time, and what it did to it."""

    mst_key: int
    kind: str


def in_view(spans: Sequence[Span]) -> timedelta:
    """How long a time lanes show: twenty visits of the usual length, and no less than ten
    seconds.
    """
    lengths = [
        (span.ended_at - span.started_at).total_seconds()
        for span in spans
        if span.ended_at is not None
    ]
    return max(LEAST, timedelta(seconds=VISITS * median(lengths))) if lengths else LEAST


def lanes(
    spans: Sequence[Span], now: datetime, length: timedelta, width: int
) -> Mapping[int, list[Cell | None]]:
    """For each segment its cells, the last of which ends now; a cell has the span that began last
    in it.

    A span that goes on reaches until now.
    """
    found: dict[int, list[Cell | None]] = {
        segment: [None] * width for segment in sorted({s.segment_id for s in spans})
    }
    begin = now - length

    def place(moment: datetime) -> int:
        return int((moment - begin) / length * width)

    for span in sorted(spans, key=lambda span: span.started_at):
        end = span.ended_at or now
        if end <= begin or span.started_at >= now:
            continue
        first = max(place(span.started_at), 0)
        last = min(max(place(end), first + 1), width)
        found[span.segment_id][first:last] = [Cell(span.mst_key, span.kind)] * (last - first)
    return found
