"""Compute the lanes of a run's segments, apart from drawing them, so that tests can check them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import NamedTuple

from cerebro_db.records import Span

MIN_WINDOW = timedelta(seconds=10)
VISITS_IN_WINDOW = 20


class Cell(NamedTuple):
    """The config that a segment worked on at a time, and the kind of work."""

    mst_key: int
    kind: str


def choose_window(spans: Sequence[Span]) -> timedelta:
    """Return the time that lanes show: twenty visits of median length, at least ten seconds."""
    lengths = [
        (span.ended_at - span.started_at).total_seconds()
        for span in spans
        if span.ended_at is not None
    ]
    if not lengths:
        return MIN_WINDOW
    return max(MIN_WINDOW, timedelta(seconds=VISITS_IN_WINDOW * median(lengths)))


def make_lanes(
    spans: Sequence[Span], now: datetime, window: timedelta, width: int
) -> Mapping[int, list[Cell | None]]:
    """Return the cells of each segment, by segment_id; the last cell ends now.

    A cell contains the span that started last in it. A running span ends now.
    """
    segments = sorted({span.segment_id for span in spans})
    lanes: dict[int, list[Cell | None]] = {segment: [None] * width for segment in segments}
    window_start = now - window

    def to_cell(moment: datetime) -> int:
        return int((moment - window_start) / window * width)

    for span in sorted(spans, key=lambda span: span.started_at):
        end = span.ended_at or now
        if end <= window_start or span.started_at >= now:
            continue
        first = max(to_cell(span.started_at), 0)
        last = min(max(to_cell(end), first + 1), width)
        lanes[span.segment_id][first:last] = [Cell(span.mst_key, span.kind)] * (last - first)
    return lanes
