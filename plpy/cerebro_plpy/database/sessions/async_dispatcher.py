"""Concurrent work of several sessions, each of which runs the statements of a generator.

A generator (the *steps* of a worker) yields `Statement`s and is sent their rows; its return value
is the outcome. An error of a statement is raised inside the generator, which may handle it and
continue.
"""

from __future__ import annotations

import math
import select
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Generic, Protocol, TypeVar

from cerebro_plpy.database.platform_protocol import Check, Platform, Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import CerebroError
from cerebro_plpy.records import dataclass

Rows = list[tuple[Any, ...]]
T = TypeVar("T")
POLL_SECONDS = 0.1
QUICK_SECONDS = 0.003  # most statements that follow a result take less
DONE = 0
READ = 1
WRITE = 2


@dataclass(frozen=True)
class Statement:
    """SQL to run as one transaction, with values for its `%s`."""

    sql: str
    values: Sequence[object] = ()


Steps = Generator[Statement, Rows, T]


class Session(Reader, Protocol):
    """A database session.

    `start` sends statements. `poll` then returns READ or WRITE, the event to wait for, until it
    returns DONE; `fetch` returns the rows. `cancel` requests that running statements stop soon;
    they may still complete. Without a running statement it does nothing.
    """

    pid: int  # process of the backend

    @property
    def platform(self) -> Platform: ...

    def start(self, statement: str, values: Sequence[object] = ()) -> None: ...

    def poll(self) -> int: ...

    def fetch(self) -> Rows: ...

    def fileno(self) -> int: ...

    def cancel(self) -> None: ...

    def close(self) -> None: ...


def wait_for_any(pending: Iterable[tuple[Session, int]], seconds: float = POLL_SECONDS) -> bool:
    """Wait until one of the sessions can READ or WRITE; return False if none can in time.

    poll(2) is used instead of select(2), because a backend has many open files, and select refuses
    large descriptors.
    """
    poll = select.poll()
    for session, event in pending:
        poll.register(session.fileno(), select.POLLIN if event == READ else select.POLLOUT)
    return bool(poll.poll(seconds * 1000))


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """The result of a worker's steps: a value, or the error that ended them."""

    worker: int
    value: T | None
    error: CerebroError | None


class Dispatcher(Generic[T]):
    """Runs the steps of many workers at once.

    Args:
        check: is called at least every 100 ms; may raise.
        extra_work: is called while no worker has a result. It does a small part of other work, and
            returns True if there was any. A part that takes more than 100 ms delays the next check.
    """

    def __init__(self, check: Check, extra_work: Callable[[], bool] = lambda: False) -> None:
        self._check = check
        self._extra_work = extra_work
        self._tasks: dict[int, tuple[Session, Steps[T]]] = {}
        self._events: dict[int, int] = {}  # READ, WRITE or DONE, by worker
        self._outcomes: list[Outcome[T]] = []
        self._cancellations: dict[int, CerebroError] = {}  # not yet raised in the steps

    def begin(self, worker: int, session: Session, steps: Steps[T]) -> None:
        """Start steps on an idle worker."""
        self._tasks[worker] = (session, steps)
        self._advance(worker, lambda: next(steps))

    def busy(self) -> bool:
        """Return True if steps are running, or if outcomes have not been returned yet."""
        return bool(self._tasks or self._outcomes)

    def cancel(self, workers: Collection[int], error: CerebroError) -> None:
        """Raise an error in the steps of these workers, at the current or the next statement.

        The steps may handle the error with further statements, which are not cancelled.
        """
        for worker in self._tasks.keys() & workers:
            self._cancellations[worker] = error
            self._tasks[worker][0].cancel()

    def wait(self, until: float = math.inf) -> list[Outcome[T]]:
        """Return outcomes of finished steps: at least one, unless `until` comes first.

        Results that have arrived are processed in any case; otherwise a past `until` would stop
        all work.
        """
        pause = QUICK_SECONDS
        while self._tasks and not self._outcomes:
            has_advanced = any([self._process_result(worker) for worker in list(self._tasks)])
            if time.monotonic() >= until:
                break
            if has_advanced:
                pause = QUICK_SECONDS
            else:
                self._sleep(pause)
                pause = 0.0
        outcomes = self._outcomes
        self._outcomes = []
        return outcomes

    def _sleep(self, pause: float) -> None:
        pending = [(session, self._events[worker]) for worker, (session, _) in self._tasks.items()]
        if wait_for_any(pending, pause):
            return
        if not self._extra_work() and wait_for_any(pending):
            return
        self._check()
        # The server may have received a cancel before it began the statement: repeat it.
        for worker in self._cancellations:
            self._tasks[worker][0].cancel()

    def _process_result(self, worker: int) -> bool:
        """Take the result of a worker's statement and send the next one; False without a result."""
        session, steps = self._tasks[worker]
        try:
            self._events[worker] = session.poll()
            if self._events[worker] != DONE:
                return False
            rows = session.fetch()
        except CerebroError as error:
            self._fail(worker, error)
        else:
            self._advance(worker, lambda: steps.send(rows))
        return True

    def _fail(self, worker: int, error: CerebroError) -> None:
        _, steps = self._tasks[worker]
        reported = self._cancellations.pop(worker, error)
        self._advance(worker, lambda: steps.throw(reported))

    def _advance(self, worker: int, step: Callable[[], Statement]) -> None:
        session, _ = self._tasks[worker]
        self._events[worker] = READ
        try:
            statement = step()
        except StopIteration as stop:
            return self._end(Outcome(worker, stop.value, None))
        except CerebroError as error:
            return self._end(Outcome(worker, None, error))
        if worker in self._cancellations:
            return self._fail(worker, self._cancellations[worker])
        try:
            session.start(statement.sql, statement.values)
        except CerebroError as error:
            self._fail(worker, error)

    def _end(self, outcome: Outcome[T]) -> None:
        del self._tasks[outcome.worker]
        self._cancellations.pop(outcome.worker, None)
        self._outcomes.append(outcome)


def await_rows(session: Session, check: Check) -> Rows:
    """Wait for the rows of a statement that was started; call `check`, which may raise."""
    while (event := session.poll()) != DONE:
        if not wait_for_any([(session, event)]):
            check()
    return session.fetch()


@contextmanager
def transaction(session: Session, isolation: str = "READ COMMITTED") -> Iterator[None]:
    """Run the statements of a session as one transaction; an error undoes all of them."""
    session.run(sql("session.begin", isolation=isolation))
    try:
        yield
    except CerebroError:
        with suppress(CerebroError):  # the error may be the loss of the session
            session.run(sql("session.rollback"))
        raise
    session.run(sql("session.commit"))


def drive(session: Session, steps: Steps[T]) -> T:
    """Run steps in one session, one statement after another; return their value."""
    try:
        statement = next(steps)
        while True:
            try:
                rows = session.run(statement.sql, statement.values)
            except CerebroError as error:
                statement = steps.throw(error)
            else:
                statement = steps.send(rows)
    except StopIteration as stop:
        value: T = stop.value
        return value
