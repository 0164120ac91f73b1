"""Read the news of a run since the last poll, at the lowest cost for the database."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import sqlalchemy as sa

from cerebro_db.dashboard.queries import (
    ACT,
    CONFIG,
    DECISION,
    EVALUATION_ERROR,
    VISIT_ERROR,
    Reader,
)
from cerebro_db.display.boards import is_finite
from cerebro_db.records import LEARNING_CURVE, RUN, TIMELINE, VERSION

MAX_BARS = 50_000
"""Largest number of visits and evaluations that are shown, the newest ones."""
MARGIN_MILLISECONDS = 5000
"""Greatest delay with which an earlier span is committed, if all known spans have ended."""
CUT_REASONS = ("the budget was over", "max_runtime was over", "the run was interrupted")
"""Errors of visits and evaluations that the end of their run has cut off."""
CUT = "cut"
"""Status of such a span, which has not failed."""

SeriesKey: TypeAlias = tuple[int, str, str]
"""A configuration, a data set and a metric."""
Series: TypeAlias = dict[int, float | None]
"""Values of a metric by epoch, in ascending order."""
Message: TypeAlias = tuple[str, Any]
"""The name of an event, and its data, which are sent as JSON."""
STALE: Message = ("stale", None)
"""Parts of the page must be read again."""
DUE: Message = ("due", None)
"""Parts of the page must be read again when their throttle permits it."""
DECIDED: Message = ("decided", None)
"""There are other commands or decisions; the page reads them with its other parts."""
Bar: TypeAlias = tuple[int, int, str, str, int, int | None]
"""A span: segment, configuration, kind, status, start and end in milliseconds since 1970."""
BarKey: TypeAlias = tuple[int, int, str, int]
"""The segment, the configuration, the kind and the start of a span."""


class RunState(NamedTuple):
    """The status of a run, and the model version that it has created."""

    status: str | None
    version: int | None


class Observation(NamedTuple):
    """The parts of a run that decide about reading its page again."""

    state: RunState
    statuses: tuple[tuple[int, str], ...]  # of configurations
    acts: tuple[object, ...]  # counts of commands, of completed ones, and of reasons
    decision: object  # the number of the newest decision of a search


@dataclass
class RunFeed:
    """The curves and lanes of a run as its open pages know them.

    Metrics are read by the primary key, after the newest epoch of the configurations that train.
    The cost therefore does not grow with the metrics that are already known.
    """

    run_id: int
    curves: dict[SeriesKey, Series] = field(default_factory=dict)
    bars: dict[BarKey, Bar] = field(default_factory=dict)
    cut_bars: set[BarKey] = field(default_factory=set)  # those that the end of the run has cut off
    statuses: dict[int, str] = field(default_factory=dict)  # of configurations, by mst_key
    observation: Observation | None = None

    def poll_metrics(self, reader: Reader) -> list[Message]:
        """Return new metrics, and messages on the parts of the page that have changed."""
        config = CONFIG.c
        previous = self.observation
        previous_statuses = self.statuses
        query = sa.select(config.mst_key, config.status).where(config.run_id == self.run_id)
        self.statuses = {row["mst_key"]: row["status"] for row in reader.read_rows(query)}
        state = self._read_state(reader)
        has_changed = previous is not None and state != previous.state
        active_configs = {
            mst_key
            for mst_key, status in self.statuses.items()
            if has_changed or status == "running" or previous_statuses.get(mst_key) != status
        }
        points = self._read_points(reader, active_configs)
        acts = self._count_acts(reader)
        decision = self._read_newest_decision(reader)
        current = Observation(state, tuple(self.statuses.items()), acts, decision)
        self.observation = current
        messages: list[Message] = []
        if points:
            messages.append(("curves", points))
        if previous is None:
            return [*messages, DECIDED, STALE]
        if current.acts != previous.acts or current.decision != previous.decision:
            messages.append(DECIDED)
        # Actions of people are shown at once, the progress of the run when it is due.
        if current.state != previous.state or current.acts != previous.acts:
            messages.append(STALE)
        elif points or current != previous:
            messages.append(DUE)
        return messages

    def _read_state(self, reader: Reader) -> RunState:
        run = RUN.c
        query = sa.select(run.status).where(run.run_id == self.run_id)
        statuses = [status for (status,) in reader.read_tuples(query)]
        if statuses != ["completed"]:
            return RunState(next(iter(statuses), None), None)
        version = VERSION.c
        query = sa.select(version.version).where(version.run_id == self.run_id)
        versions = [number for (number,) in reader.read_tuples(query)]
        return RunState("completed", next(iter(versions), None))

    def _count_acts(self, reader: Reader) -> tuple[object, ...]:
        act = ACT.c
        counts: list[sa.ColumnElement[Any]] = [
            sa.func.count(column).label(column.name)
            for column in (act.act_id, act.done_at, act.reason)
        ]
        query = sa.select(*counts).where(act.run_id == self.run_id)
        return tuple(reader.read_tuples(query)[0])

    def _read_newest_decision(self, reader: Reader) -> object:
        decision = DECISION.c
        newest = sa.func.max(decision.decision_no)
        query = sa.select(newest).where(decision.run_id == self.run_id)
        return reader.read_tuples(query)[0][0]

    def _read_points(self, reader: Reader, mst_keys: set[int]) -> list[list[object]]:
        """Return new values of configurations, by series."""
        if not mst_keys:
            return []
        newest_epochs = dict.fromkeys(mst_keys, 0)
        for (mst_key, _, _), values in self.curves.items():
            if mst_key in newest_epochs:
                last_epoch = next(reversed(values))
                newest_epochs[mst_key] = max(newest_epochs[mst_key], last_epoch)
        new_curves: dict[SeriesKey, Series] = {}
        # Configurations without values are read apart from the others. Each group is read after
        # the oldest of its newest epochs, because all values of an epoch are committed together.
        with_values = {mst_key for mst_key in mst_keys if newest_epochs[mst_key]}
        for group in (mst_keys - with_values, with_values):
            oldest = min((newest_epochs[mst_key] for mst_key in group), default=0)
            for mst_key, epoch, dataset, metric, value in self._read_values(reader, group, oldest):
                series_key = (mst_key, dataset, metric)
                series = self.curves.setdefault(series_key, {})
                if epoch not in series:
                    # JSON has no numbers that are not finite.
                    series[epoch] = value if is_finite(value) else None
                    new_curves.setdefault(series_key, {})[epoch] = series[epoch]
        return format_curves(new_curves)

    def _read_values(
        self, reader: Reader, mst_keys: Iterable[int], after_epoch: int
    ) -> Iterable[tuple[Any, ...]]:
        keys = sorted(mst_keys)
        if not keys:
            return []
        metrics = reader.read_run_metrics(self.run_id)
        point = LEARNING_CURVE.c
        query = (
            sa.select(point.mst_key, point.epoch, point.dataset, point.name, point.value)
            .where(
                point.run_id == self.run_id,
                point.mst_key == sa.any_(sa.literal(keys, sa.ARRAY(sa.Integer))),
                point.epoch > after_epoch,
            )
            .order_by(point.epoch)
        )
        return [
            (mst_key, epoch, dataset, metrics.rename(metric), value)
            for mst_key, epoch, dataset, metric, value in reader.read_tuples(query)
        ]

    def poll_lanes(self, reader: Reader) -> list[Message]:
        """Return the spans that have started or ended since the last poll."""
        span = TIMELINE.c
        times = (
            sa.cast(1000 * sa.extract("epoch", time), sa.BigInteger)
            for time in (span.started_at, span.ended_at)
        )
        query = sa.select(span.segment_id, span.mst_key, span.kind, span.status, *times)
        query = query.where(span.run_id == self.run_id)
        if self.bars:
            since = sa.func.to_timestamp(self._find_first_change() / 1000)
            query = query.where(span.started_at >= since)
        query = query.order_by(span.started_at.desc()).limit(MAX_BARS)
        new_bars: list[Bar] = []
        bars: list[Bar] = list(reversed(reader.read_tuples(query)))
        self._find_cut_bars(reader, bars)
        for span_bar in bars:
            bar_key = make_bar_key(span_bar)
            bar = span_bar
            if bar_key in self.cut_bars:
                bar = (*span_bar[:3], CUT, *span_bar[4:])
            if self.bars.get(bar_key) != bar:
                self.bars[bar_key] = bar
                new_bars.append(bar)
        for bar_key in list(self.bars)[: max(len(self.bars) - MAX_BARS, 0)]:
            del self.bars[bar_key]
            self.cut_bars.discard(bar_key)
        return [("lanes", new_bars)] if new_bars else []

    def _find_cut_bars(self, reader: Reader, bars: Iterable[Bar]) -> None:
        """Find among spans that have failed those that the end of the run has cut off."""
        failed = {make_bar_key(bar) for bar in bars if bar[3] == "failed"}
        if not failed:
            return
        known = {key for key, bar in self.bars.items() if bar[3] in ("failed", CUT)}
        if failed <= known:
            return
        for table in (VISIT_ERROR, EVALUATION_ERROR):
            rows = reader.read_tuples(self._select_cut(table))
            self.cut_bars |= failed & {
                (segment, key, kind, start) for segment, key, kind, start in rows
            }

    def _select_cut(self, table: sa.TableClause) -> sa.Select[Any]:
        """Return a query for the keys of spans in a table that the end of the run has cut off."""
        run = RUN.c
        span = table.c
        kind: sa.ColumnElement[str] = sa.literal("evaluate")
        if table is VISIT_ERROR:
            kind = span.kind
        start = sa.cast(1000 * sa.extract("epoch", span.started_at), sa.BigInteger)
        is_cancelled = sa.and_(run.status == "cancelled", span.error == run.error)
        query = sa.select(span.segment_id, span.mst_key, kind, start)
        query = query.join_from(table, RUN, run.run_id == span.run_id)
        query = query.where(span.run_id == self.run_id, span.status == "failed")
        return query.where(sa.or_(span.error.in_(CUT_REASONS), is_cancelled))

    def _find_first_change(self) -> int:
        """Return the start of the first span that may be new or may have changed."""
        running = [start for *_, start, end in self.bars.values() if end is None]
        newest = max(start for *_, start, _ in self.bars.values())
        return min(running, default=newest - MARGIN_MILLISECONDS)

    def read_snapshot(self) -> list[Message]:
        """Return everything that is known, for a page that was just opened."""
        return [("curves", format_curves(self.curves)), ("lanes", list(self.bars.values()))]


def make_bar_key(bar: Bar) -> BarKey:
    """Return the key of a span: a span keeps it while its status and its end change."""
    segment_id, mst_key, kind, _, start, _ = bar
    return (segment_id, mst_key, kind, start)


def format_curves(curves: dict[SeriesKey, Series]) -> list[list[object]]:
    """Return a list for each curve: configuration, data set, metric, epochs and values."""
    return [[*key, list(series), list(series.values())] for key, series in curves.items()]
