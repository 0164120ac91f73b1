"""What has happened in a run since somebody looked last, found with the least that the database
must read for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import sqlalchemy as sa

from cerebro_db import records
from cerebro_db.dashboard.queries import ACT, CONFIG, DECISION, VERSION, Reader

Series: TypeAlias = tuple[int, str, str]
"""A configuration, a data set and a metric."""
Message: TypeAlias = tuple[str, Any]
"""The name of an event, and what is sent as JSON with it."""
STALE: Message = ("stale", None)
"""Parts of a page are to be read again."""
DUE: Message = ("due", None)
"""They are to be once that may be."""
DECIDED: Message = ("decided", None)
"""There are other acts or decisions; the page reads them when it reads the rest."""
Bar: TypeAlias = tuple[int, int, str, str, int, int | None]
"""What a segment did: segment, configuration, kind and status; from when to when, in milliseconds
since 1970.
"""


@dataclass
class Feed:
    """One run, as those who watch it have it: its curves and its lanes, and marks of what they read
    by pages.

    Metrics are looked for by the primary key, after the newest epoch of configurations that train,
    so that the cost does not grow with what is there already.
    """

    run_id: int
    curves: dict[Series, dict[int, float | None]] = field(default_factory=dict)
    bars: dict[tuple[int, int, str, int], Bar] = field(default_factory=dict)
    statuses: dict[int, str] = field(default_factory=dict)
    asked: tuple[Any, ...] = ()
    mark: tuple[object, ...] = ()
    decided: tuple[object, ...] = ()

    def look(self, reader: Reader) -> list[Message]:
        """What is new of metrics, and which parts of the page are not what they were."""
        config = CONFIG.c
        before = self.statuses
        found = reader.rows(
            sa.select(config.mst_key, config.status).where(config.run_id == self.run_id)
        )
        self.statuses = {row["mst_key"]: row["status"] for row in found}
        of_run = self._state(reader)
        ended = bool(self.asked) and of_run != self.asked[0]
        moving = {
            key
            for key, status in self.statuses.items()
            if ended or status == "running" or before.get(key) != status
        }
        points = self._points(reader, moving)
        acts, decision = self._acts(reader), self._decision(reader)
        mark = (decision, tuple(self.statuses.items()))
        messages: list[Message] = [("curves", points)] if points else []
        if (acts, decision) != self.decided:
            messages.append(DECIDED)
        # What people do is seen at once, what goes on by itself when its turn has come.
        if (of_run, acts) != self.asked:
            messages.append(STALE)
        elif points or mark != self.mark:
            messages.append(DUE)
        self.asked, self.mark, self.decided = (of_run, acts), mark, (acts, decision)
        return messages

    def _state(self, reader: Reader) -> tuple[str | None, int | None]:
        """The status of the run, and the version that has come of it when it has ended."""
        run, version = records.RUN.c, VERSION.c
        statuses = [
            row[0] for row in reader.tuples(sa.select(run.status).where(run.run_id == self.run_id))
        ]
        if statuses != ["completed"]:
            return next(iter(statuses), None), None
        versions = reader.tuples(sa.select(version.version).where(version.run_id == self.run_id))
        return "completed", next((row[0] for row in versions), None)

    def _acts(self, reader: Reader) -> tuple[object, ...]:
        act = ACT.c
        counts: list[sa.ColumnElement[Any]] = [
            sa.func.count(column).label(column.name)
            for column in (act.act_id, act.done_at, act.reason)
        ]
        return tuple(reader.tuples(sa.select(*counts).where(act.run_id == self.run_id))[0])

    def _decision(self, reader: Reader) -> object:
        decision = DECISION.c
        newest = sa.select(sa.func.max(decision.decision_no)).where(decision.run_id == self.run_id)
        return reader.tuples(newest)[0][0]

    def _points(self, reader: Reader, keys: set[int]) -> list[list[object]]:
        """New values of these configurations, by series."""
        if not keys:
            return []
        newest = {key: 0 for key in keys}
        for (key, _, _), values in self.curves.items():
            if key in newest:
                newest[key] = max(
                    newest[key], next(reversed(values))
                )  # they are in the order of epochs
        fresh: dict[Series, dict[int, float | None]] = {}
        # Those that have no value yet, and the others: each what came after the oldest of their
        # newest epochs. All values of a configuration after an epoch are committed together.
        begun = {key for key in keys if newest[key]}
        for group in (keys - begun, begun):
            oldest = min((newest[key] for key in group), default=0)
            for key, epoch, dataset, name, value in self._read(reader, group, oldest):
                series = (key, dataset, name)
                known = self.curves.setdefault(series, {})
                if epoch not in known:
                    fresh.setdefault(series, {})[epoch] = known[epoch] = finite(value)
        return sent(fresh)

    def _read(self, reader: Reader, keys: Iterable[int], epoch: int) -> Iterable[tuple[Any, ...]]:
        point = records.LEARNING_CURVE.c
        wanted = sorted(keys)
        if not wanted:
            return []
        columns = (point.mst_key, point.epoch, point.dataset, point.name, point.value)
        chosen = point.mst_key == sa.any_(sa.literal(wanted, sa.ARRAY(sa.Integer)))
        query = sa.select(*columns).where(point.run_id == self.run_id, chosen, point.epoch > epoch)
        return reader.tuples(query.order_by(point.epoch))

    def lanes(self, reader: Reader) -> list[Message]:
        """What segments have done since, and what has ended."""
        span = records.TIMELINE.c
        begun = [bar[4] for bar in self.bars.values()]
        going_on = [bar[4] for bar in self.bars.values() if bar[5] is None]
        since = min(going_on, default=max(begun, default=0) - MARGIN)
        times = (
            sa.cast(1000 * sa.extract("epoch", time), sa.BigInteger)
            for time in (span.started_at, span.ended_at)
        )
        query = sa.select(span.segment_id, span.mst_key, span.kind, span.status, *times)
        query = query.where(span.run_id == self.run_id)
        if self.bars:
            query = query.where(span.started_at >= sa.func.to_timestamp(since / 1000))
        fresh: list[Bar] = []
        for bar in reversed(reader.tuples(query.order_by(span.started_at.desc()).limit(BARS))):
            place = bar[0], bar[1], bar[2], bar[4]
            if self.bars.get(place) != bar:
                self.bars[place] = bar
                fresh.append(bar)
        for place in list(self.bars)[: max(len(self.bars) - BARS, 0)]:
            del self.bars[place]
        return [("lanes", fresh)] if fresh else []

    def whole(self) -> list[Message]:
        """All of it, for one who begins to watch."""
        return [("curves", sent(self.curves)), ("lanes", list(self.bars.values()))]


BARS = 50_000
"""So many of the newest visits and evaluations are shown."""
MARGIN = 5000
"""Milliseconds: who began earlier may be committed later by at most that much, where all that began
has ended.
"""


def sent(curves: dict[Series, dict[int, float | None]]) -> list[list[object]]:
    """Curves as the page takes them: a configuration, a data set, a metric, epochs and values."""
    return [[*series, list(values), list(values.values())] for series, values in curves.items()]


def finite(value: float | None) -> float | None:
    """The value, where JSON and a picture can have it."""
    return value if value is not None and math.isfinite(value) else None
