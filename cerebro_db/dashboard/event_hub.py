"""Poll the database once for all open pages, and publish the news to them.

Nothing is polled while no page is open. The time between two polls follows from their cost: all
polls together may take a fiftieth of a core of the database.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import sqlalchemy as sa
from starlette.concurrency import run_in_threadpool

from cerebro_db.dashboard.queries import Reader
from cerebro_db.dashboard.run_updates import DECIDED, DUE, STALE, Message, RunFeed
from cerebro_db.errors import CerebroError

POLL_SECONDS = 0.25
"""Shortest time between two polls."""
MAX_DELAY_SECONDS = 5.0
"""Longest time between two polls."""
KEEPALIVE_SECONDS = 15.0
"""Time after which a silent connection gets a comment, so that a closed one is noticed."""
# Shares of a core of the database for polling the metrics and the lanes of a run, for polling the
# list of runs, and for reading parts of open pages again.
METRICS_SHARE = 0.01
LANES_SHARE = 0.004
LIST_SHARE = 0.004
PAGES_SHARE = 0.008

Queue: TypeAlias = asyncio.Queue[list[Message]]
Poll: TypeAlias = Callable[[], list[Message]]
"""A function that returns the news since its last call."""


@dataclass
class Throttle:
    """A limit on the share of a core that the server may spend on something.

    No delay exceeds MAX_DELAY_SECONDS: something more expensive takes a larger share.
    """

    share: float
    next_time: float = 0.0

    def add_cost(self, seconds: float) -> None:
        """Postpone the next time, after the server has worked for some seconds."""
        now = time.monotonic()
        earliest = max(self.next_time, now) + seconds / self.share
        self.next_time = min(earliest, now + MAX_DELAY_SECONDS)

    def is_due(self) -> bool:
        return time.monotonic() >= self.next_time

    def limit(self, poll: Poll) -> Poll:
        """Return a poll that returns nothing before it is due.

        The first call reads everything, and does not postpone the second one.
        """
        is_first = True

        def poll_if_due() -> list[Message]:
            nonlocal is_first
            if not self.is_due():
                return []
            messages = poll()
            if is_first:
                self.next_time = 0.0
                is_first = False
            return messages

        return poll_if_due


@dataclass
class Channel:
    """The pages that show one thing: a run, or the list of runs."""

    polls: Sequence[Poll]  # the messages of each are published before the next one is called
    read_snapshot: Poll  # returns everything that is known, for a page that was just opened
    subscribers: set[Queue] = field(default_factory=set)
    new_subscribers: set[Queue] = field(default_factory=set)  # those that have no snapshot yet

    def publish(self, messages: list[Message]) -> None:
        """Send messages to all subscribers; new subscribers get a snapshot instead."""
        for queue in self.subscribers:
            queue.put_nowait(self.read_snapshot() if queue in self.new_subscribers else messages)
        self.new_subscribers.clear()


class RunChannel(Channel):
    """The pages that show one run; metrics are polled first and more often than lanes."""

    def __init__(self, engine: sa.Engine, run_id: int, page_throttle: Throttle) -> None:
        feed = RunFeed(run_id)
        metrics = Throttle(METRICS_SHARE)
        metrics_reader = Reader(engine, metrics.add_cost)
        self._poll_feed = metrics.limit(partial(feed.poll_metrics, metrics_reader))
        lanes = Throttle(LANES_SHARE)
        lanes_reader = Reader(engine, lanes.add_cost)
        poll_lanes = lanes.limit(partial(feed.poll_lanes, lanes_reader))
        super().__init__((self._poll_metrics, poll_lanes), feed.read_snapshot)
        self._page_throttle = page_throttle
        self._pending = set[str]()

    def _poll_metrics(self) -> list[Message]:
        """Return new metrics, and when it is due, the order to read parts of the page again."""
        news = self._poll_feed()
        self._pending |= {name for name, _ in news} & {DUE[0], DECIDED[0]}
        messages = [message for message in news if message not in (DUE, DECIDED, STALE)]
        if STALE in news or (self._pending and self._page_throttle.is_due()):
            messages.append(STALE)
            if DECIDED[0] in self._pending:
                messages.append(DECIDED)
            self._pending.clear()
        return messages


class RunListChannel(Channel):
    """The pages that show the list of runs."""

    def __init__(self, engine: sa.Engine, page_throttle: Throttle) -> None:
        throttle = Throttle(LIST_SHARE)
        super().__init__((throttle.limit(self._poll_runs),), list)
        self._reader = Reader(engine, throttle.add_cost)
        self._page_throttle = page_throttle
        self._statuses: list[tuple[int, str]] = []

    def _poll_runs(self) -> list[Message]:
        statuses = self._reader.read_run_statuses()
        is_running = any(status == "running" for _, status in statuses)
        if statuses == self._statuses and not (is_running and self._page_throttle.is_due()):
            return []
        self._statuses = statuses
        return [STALE]


class EventHub:
    """The channels of the open pages, by run; that of the list of runs is under None."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._channels: dict[int | None, Channel] = {}
        self._task: asyncio.Task[None] | None = None
        self._has_subscriber = asyncio.Event()
        self._failure: str | None = None
        self._is_closed = False
        self.page_throttle = Throttle(PAGES_SHARE)
        """Limits the reading of parts of pages; their reader adds the cost."""

    async def stream_events(self, run_id: int | None) -> AsyncIterator[str]:
        """Yield the server-sent events of a run, or of the list of runs, until the page closes."""
        channel, queue = self._subscribe(run_id)
        try:
            while not self._is_closed:
                try:
                    messages = await asyncio.wait_for(queue.get(), KEEPALIVE_SECONDS)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                for name, data in messages:
                    yield f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"
        finally:
            channel.subscribers.discard(queue)
            if not channel.subscribers and self._channels.get(run_id) is channel:
                del self._channels[run_id]

    def close(self) -> None:
        """End all streams, so that a server that stops need not wait for them."""
        self._is_closed = True
        self._send_to_all([])

    def _subscribe(self, run_id: int | None) -> tuple[Channel, Queue]:
        channel = self._channels.get(run_id)
        if channel is None:
            if run_id is None:
                channel = RunListChannel(self._engine, self.page_throttle)
            else:
                channel = RunChannel(self._engine, run_id, self.page_throttle)
            self._channels[run_id] = channel
        queue: Queue = asyncio.Queue()
        queue.put_nowait([("server", self._failure)])
        channel.subscribers.add(queue)
        channel.new_subscribers.add(queue)
        self._has_subscriber.set()
        if self._task is None:
            self._task = asyncio.create_task(self._poll_channels())
        return channel, queue

    async def _poll_channels(self) -> None:
        """Poll until the last page closes."""
        try:
            while self._channels:
                self._has_subscriber.clear()
                for channel in list(self._channels.values()):
                    for poll in channel.polls:
                        await self._poll(channel, poll)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._has_subscriber.wait(), POLL_SECONDS)
        finally:
            self._task = None

    async def _poll(self, channel: Channel, poll: Poll) -> None:
        try:
            messages = await run_in_threadpool(poll)
        except CerebroError as error:
            self._set_failure(str(error))
            return
        self._set_failure(None)
        if messages or channel.new_subscribers:
            channel.publish(messages)

    def _set_failure(self, failure: str | None) -> None:
        """Send a message to all pages when the database is lost or available again."""
        if failure == self._failure:
            return
        self._failure = failure
        messages: list[Message] = [("server", failure)]
        if failure is None:
            messages.append(STALE)
        self._send_to_all(messages)

    def _send_to_all(self, messages: list[Message]) -> None:
        for channel in self._channels.values():
            for queue in channel.subscribers:
                queue.put_nowait(messages)
