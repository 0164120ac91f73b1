"""Compute the Gantt chart of a run: the spans of each worker in a row.

The clock of the chart stops while no worker of the run is open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import NamedTuple

from cerebro_db.records import Span


class Bar(NamedTuple):
    """A span of a worker; times are seconds of the chart's clock."""

    row: int  # of the worker, from 0
    segment_id: int
    mst_key: int
    kind: str
    start: float
    length: float


class Break(NamedTuple):
    """An interruption of a run, after which it was resumed."""

    position: float  # seconds of the chart's clock
    duration: timedelta


@dataclass(frozen=True)
class GanttChart:
    """The bars of a run in order of time, and its interruptions."""

    bars: list[Bar]
    breaks: list[Break]


class _Session(NamedTuple):
    """The time in which a worker's session worked for the run."""

    worker: int
    start: datetime
    end: datetime


def make_gantt_chart(spans: Sequence[Span]) -> GanttChart:
    """Return the chart of the spans that have ended.

    The sessions of a resumed run are new ones, which take the rows of the earlier ones.
    """
    ordered = sorted(spans, key=lambda span: (span.started_at, span.segment_id))
    worker_spans = []
    for span, worker in zip(ordered, _assign_workers(ordered), strict=True):
        if span.ended_at is not None:
            worker_spans.append((span, _Session(worker, span.started_at, span.ended_at)))
    sessions = _merge_sessions([part for _, part in worker_spans])
    rows = _assign_rows(sessions)
    breaks = list(_find_breaks(sessions))

    def to_seconds(moment: datetime) -> float:
        paused = sum((end - start for start, end in breaks if end <= moment), timedelta())
        return (moment - worker_spans[0][1].start - paused).total_seconds()

    bars = [
        Bar(
            rows[part.worker],
            span.segment_id,
            span.mst_key,
            span.kind,
            to_seconds(part.start),
            (part.end - part.start).total_seconds(),
        )
        for span, part in worker_spans
    ]
    return GanttChart(bars, [Break(to_seconds(end), end - start) for start, end in breaks])


def _assign_workers(spans: Sequence[Span]) -> list[int]:
    """Return the worker of each span.

    That of an evaluation is the worker of the segment's last visit before it, or else of the
    first one.
    """
    first_workers: dict[int, int] = {}
    for span in spans:
        if span.worker_pid is not None:
            first_workers.setdefault(span.segment_id, span.worker_pid)
    newest_workers = dict(first_workers)
    workers = []
    for span in spans:
        worker = span.worker_pid or newest_workers.get(span.segment_id, -1 - span.segment_id)
        newest_workers[span.segment_id] = worker
        workers.append(worker)
    return workers


def _merge_sessions(parts: Sequence[_Session]) -> list[_Session]:
    """Return one session for each worker, in order of time."""
    sessions: dict[int, _Session] = {}
    for part in parts:
        session = sessions.get(part.worker, part)
        start = min(session.start, part.start)
        sessions[part.worker] = _Session(part.worker, start, max(session.end, part.end))
    return sorted(sessions.values(), key=lambda session: session.start)


def _assign_rows(sessions: Sequence[_Session]) -> dict[int, int]:
    """Return the row of each worker, the first that is free during its session."""
    row_ends: list[datetime] = []
    rows = {}
    for session in sessions:
        row = next((n for n, end in enumerate(row_ends) if end <= session.start), len(row_ends))
        row_ends[row : row + 1] = [session.end]
        rows[session.worker] = row
    return rows


def _find_breaks(sessions: Sequence[_Session]) -> Iterator[tuple[datetime, datetime]]:
    """Yield the start and the end of each time without any session."""
    last_ends = accumulate((session.end for session in sessions), max)
    for last_end, session in zip(last_ends, sessions[1:], strict=False):
        if session.start > last_end:
            yield last_end, session.start
