"""What each worker of a run did when: bars in rows, on a clock without the time in which nobody
worked for the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from cerebro_db.records import Span


class Bar(NamedTuple):
    """What a worker did, in seconds of the clock; `row` is the worker's place, from 0."""

    row: int
    segment_id: int
    mst_key: int
    kind: str
    start: float
    length: float


class Break(NamedTuple):
    """Where a run was resumed: the second of the clock, and the time that passed there."""

    at: float
    lasted: timedelta


@dataclass(frozen=True)
class Occupancy:
    """The bars of a run in order of time, and where it was resumed."""

    bars: list[Bar]
    breaks: list[Break]


class _Stay(NamedTuple):
    """From when to when a worker's session worked for the run."""

    worker: int
    start: datetime
    end: datetime


def occupancy(spans: Sequence[Span], now: datetime | None = None) -> Occupancy:
    """Spans on a common clock; one that has not ended ends `now`, or is left out when that is None.

    The sessions of a resumed run are others; they take the rows of those before them.
    """
    known = sorted(spans, key=lambda span: (span.started_at, span.segment_id))
    ended = [
        (span, worker, span.ended_at or now)
        for span, worker in zip(known, _workers(known), strict=True)
    ]
    shown = [(span, worker, end) for span, worker, end in ended if end is not None]
    stays = _stays([_Stay(worker, span.started_at, end) for span, worker, end in shown])
    rows, breaks = _rows(stays), list(_breaks(stays))
    origin = shown[0][0].started_at if shown else None

    def seconds(moment: datetime) -> float:
        away = sum((end - start for start, end in breaks if end <= moment), timedelta())
        return (moment - (origin or moment) - away).total_seconds()

    bars = [
        Bar(
            rows[worker],
            span.segment_id,
            span.mst_key,
            span.kind,
            seconds(span.started_at),
            (end - span.started_at).total_seconds(),
        )
        for span, worker, end in shown
    ]
    return Occupancy(bars, [Break(seconds(end), end - start) for start, end in breaks])


def _workers(spans: Sequence[Span]) -> list[int]:
    """The session of each span; of an evaluation that of the segment's visit before it, or else of
    the first one.
    """
    first: dict[int, int] = {}
    for span in spans:
        if span.worker_pid is not None:
            first.setdefault(span.segment_id, span.worker_pid)
    newest, found = {**first}, []
    for span in spans:
        worker = span.worker_pid or newest.get(span.segment_id, -1 - span.segment_id)
        newest[span.segment_id] = worker
        found.append(worker)
    return found


def _stays(parts: Sequence[_Stay]) -> list[_Stay]:
    """One for each worker, in order of time."""
    found: dict[int, _Stay] = {}
    for part in parts:
        before = found.get(part.worker, part)
        found[part.worker] = _Stay(
            part.worker, min(before.start, part.start), max(before.end, part.end)
        )
    return sorted(found.values(), key=lambda stay: stay.start)


def _rows(stays: Sequence[_Stay]) -> dict[int, int]:
    """The row of each worker: the first in which nobody else is at that time."""
    free: list[datetime] = []
    rows = {}
    for stay in stays:
        row = next((number for number, since in enumerate(free) if since <= stay.start), len(free))
        free[row : row + 1] = [stay.end]
        rows[stay.worker] = row
    return rows


def _breaks(stays: Sequence[_Stay]) -> Iterator[tuple[datetime, datetime]]:
    """The times after which all workers are others."""
    until = stays[0].end if stays else None
    for stay in stays:
        if until is not None and stay.start > until:
            yield until, stay.start
        until = stay.end if until is None else max(until, stay.end)
