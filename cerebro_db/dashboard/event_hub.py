"""Looks at the database for all pages that are open, in one place, and tells them what is new.

Nobody looks while no page is open. How often somebody looks follows from how long it takes: all
looks together may have a fiftieth of a core of the database.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, repeat
from typing import TypeAlias

import sqlalchemy as sa
from starlette.concurrency import run_in_threadpool

from cerebro_db.dashboard.queries import Reader
from cerebro_db.dashboard.run_updates import DECIDED, DUE, STALE, Feed, Message
from cerebro_db.errors import CerebroError

SECONDS = 0.25
"""Between two looks, at least."""
LONGEST = 5.0
"""Between two looks, at most."""
KEPT_ALIVE = 15.0
"""Seconds after which a silent connection is given a comment, so that one that is gone is noticed.
"""


Queue: TypeAlias = asyncio.Queue[list[Message]]
Look: TypeAlias = Callable[[], list[Message]]
"""What is new."""


@dataclass
class Pace:
    """When something may be done again, so that the server spends no more than this share of a core
    on it.

    Nothing waits longer than for some seconds: what is dearer takes a larger share.
    """

    share: float
    due: float = 0.0

    def took(self, seconds: float) -> None:
        """Puts the next time off, after the server has worked so long."""
        now = time.monotonic()
        self.due = min(max(self.due, now) + seconds / self.share, now + LONGEST)

    def is_due(self) -> bool:
        """Whether the time has come."""
        return time.monotonic() >= self.due

    def kept(self, look: Look) -> Look:
        """A look that finds nothing before its time. The first one, which reads all, does not put
        the next off.
        """
        looks = chain([True], repeat(False))

        def kept() -> list[Message]:
            if not self.is_due():
                return []
            found, first = look(), next(looks)
            self.due = 0.0 if first else self.due
            return found

        return kept


@dataclass
class Watch:
    """Those that watch one thing: a run, or the list of runs."""

    looks: Sequence[Look]
    """What is new: each is told before the next one looks."""
    whole: Look
    """All that is known, for a page that has just been opened."""
    queues: set[Queue] = field(default_factory=set)
    opened: set[Queue] = field(default_factory=set)
    """Those that have been told nothing yet."""

    def tell(self, messages: list[Message]) -> None:
        """Sends messages to all, and all that is known to those that have just come."""
        for queue in self.queues:
            queue.put_nowait(self.whole() if queue in self.opened else messages)
        self.opened.clear()


class RunWatch(Watch):
    """Those that watch one run. Its metrics come first, and are looked at oftener than what is
    dearer.
    """

    def __init__(self, engine: sa.Engine, run_id: int, pages: Pace) -> None:
        feed = Feed(run_id)
        metrics, lanes = Pace(0.01), Pace(0.004)
        self._look = metrics.kept(partial(feed.look, Reader(engine, metrics.took)))
        looks = (self._metrics, lanes.kept(partial(feed.lanes, Reader(engine, lanes.took))))
        super().__init__(looks, feed.whole)
        self._pages = pages
        self._waiting = set[str]()

    def _metrics(self) -> list[Message]:
        """What is new of metrics, and whether parts of the page should be read again, once they may
        be.
        """
        found = self._look()
        self._waiting |= {message[0] for message in found} & {DUE[0], DECIDED[0]}
        told = [message for message in found if message not in (DUE, DECIDED, STALE)]
        if STALE in found or (self._waiting and self._pages.is_due()):
            told += [STALE, *([DECIDED] if DECIDED[0] in self._waiting else [])]
            self._waiting.clear()
        return told


class ListWatch(Watch):
    """Those that watch the list of runs."""

    def __init__(self, engine: sa.Engine, pages: Pace) -> None:
        pace = Pace(0.004)
        super().__init__((pace.kept(self._list),), list)
        self._reader = Reader(engine, pace.took)
        self._pages = pages
        self._mark: list[tuple[int, str]] = []

    def _list(self) -> list[Message]:
        mark = self._reader.mark_of_runs()
        moving = any(status == "running" for _, status in mark)
        if mark == self._mark and not (moving and self._pages.is_due()):
            return []
        self._mark = mark
        return [STALE]


class Hub:
    """The looks that go on, by run; that of the list of runs is under None."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._watches: dict[int | None, Watch] = {}
        self._task: asyncio.Task[None] | None = None
        self._opened = asyncio.Event()
        self._failure: str | None = None
        self._ended = False
        self.pages = Pace(0.008)
        """When parts of pages may be read again; who reads them says how long the server took."""

    async def events(self, run_id: int | None) -> AsyncIterator[str]:
        """Server-sent events about a run, or about the list of runs, until the page is closed."""
        watch, queue = self._join(run_id)
        try:
            while not self._ended:
                try:
                    messages = await asyncio.wait_for(queue.get(), KEPT_ALIVE)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                for name, data in messages:
                    yield f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"
        finally:
            watch.queues.discard(queue)
            if not watch.queues and self._watches.get(run_id) is watch:
                del self._watches[run_id]

    def end(self) -> None:
        """Lets all pages go, so that a server that ends need not wait for them."""
        self._ended = True
        for watch in self._watches.values():
            for queue in watch.queues:
                queue.put_nowait([])

    def _join(self, run_id: int | None) -> tuple[Watch, Queue]:
        watch = self._watches.get(run_id)
        if watch is None:
            if run_id is None:
                watch = ListWatch(self._engine, self.pages)
            else:
                watch = RunWatch(self._engine, run_id, self.pages)
            self._watches[run_id] = watch
        queue: Queue = asyncio.Queue()
        queue.put_nowait([("server", self._failure)])
        watch.queues.add(queue)
        watch.opened.add(queue)
        self._opened.set()
        if self._task is None:
            self._task = asyncio.create_task(self._go_on())
        return watch, queue

    async def _go_on(self) -> None:
        """Until nobody watches any more."""
        try:
            while self._watches:
                self._opened.clear()
                for watch in list(self._watches.values()):
                    for look in watch.looks:
                        await self._look(watch, look)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._opened.wait(), SECONDS)
        finally:
            self._task = None

    async def _look(self, watch: Watch, look: Look) -> None:
        try:
            found = await run_in_threadpool(look)
        except CerebroError as error:
            self._say(str(error))
            return
        self._say(None)
        if found or watch.opened:
            watch.tell(found)

    def _say(self, failure: str | None) -> None:
        """Tells everybody that the database is lost, or is there again."""
        if failure != self._failure:
            self._failure = failure
            for watch in self._watches.values():
                for queue in watch.queues:
                    queue.put_nowait([("server", failure), *([] if failure else [STALE])])
