"""Drives several sessions at once: each works through a generator that yields statements.

A generator (its *steps*) yields `Statement`s and is sent the rows of each; what it returns is the
outcome. An error of a statement is raised inside the generator, which may handle it and go on.
"""

from __future__ import annotations

import math
import select
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Generic, Protocol, TypeVar

from cerebro_plpy.database.platform_protocol import Platform
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import CerebroError
from cerebro_plpy.records import dataclass

Rows = list[tuple[Any, ...]]
T = TypeVar("T")
POLL_SECONDS = 0.1
QUICK_SECONDS = 0.003  # in which what follows an answer is mostly answered, too
DONE, READ, WRITE = 0, 1, 2


@dataclass(frozen=True)
class Statement:
    """SQL to run as one transaction, with values for its `%s`."""

    sql: str
    values: Sequence[object] = ()


Steps = Generator[Statement, Rows, T]


class Session(Protocol):
    """A database session. `start` sends statements; `wants` then says READ or WRITE until it says
    DONE.

    `cancel` asks to have done with them soon; they may still come to their end. It is no error
    where nothing is under way.
    """

    pid: int  # of the backend that serves it

    @property
    def platform(self) -> Platform: ...

    def start(self, statement: str, values: Sequence[object] = ()) -> None: ...

    def wants(self) -> int: ...

    def result(self) -> Rows: ...

    def fileno(self) -> int: ...

    def cancel(self) -> None: ...

    def run(self, statement: str, values: Sequence[object] = ()) -> Rows: ...

    def close(self) -> None: ...


def nothing() -> bool:
    """There is nothing to do beside."""
    return False


def ready(waiting: Iterable[tuple[Session, int]], seconds: float = POLL_SECONDS) -> bool:
    """Wait until one of the sessions may READ or WRITE, as it wants; False if none may within these
    seconds.

    By poll: a backend has so many files open that the numbers of its sockets can be too large for
    select.
    """
    poll = select.poll()
    for session, wanted in waiting:
        poll.register(session.fileno(), select.POLLIN if wanted == READ else select.POLLOUT)
    return bool(poll.poll(seconds * 1000))


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """What the steps of one worker came to: a value, or the error that ended them."""

    worker: int
    value: T | None
    error: CerebroError | None


class Dispatcher(Generic[T]):
    """Runs the steps of many workers at once; `check` is called at least every 100 ms and may
    raise.

    While no worker has an answer `piece` is called, which does a little of what is to be done
    beside, and says whether there was any; one that takes longer than 100 ms is longer between two
    checks, too.
    """

    def __init__(self, check: Callable[[], None], piece: Callable[[], bool] = nothing) -> None:
        self._check, self._piece = check, piece
        self._tasks: dict[int, tuple[Session, Steps[T]]] = {}
        self._wanted: dict[int, int] = {}
        self._ended: list[Outcome[T]] = []
        self._cancelled: dict[
            int, CerebroError
        ] = {}  # of those whose steps have not heard of it yet

    def begin(self, worker: int, session: Session, steps: Steps[T]) -> None:
        """Start steps on an idle worker."""
        self._tasks[worker] = (session, steps)
        self._advance(worker, lambda: next(steps))

    def busy(self) -> bool:
        """Whether any steps are under way, or ended without their outcome having been taken."""
        return bool(self._tasks or self._ended)

    def cancel(self, workers: Collection[int], error: CerebroError) -> None:
        """Raise an error in the steps of these workers, at the statement that each is at or before
        the next one.

        The steps may handle it, and say so by further statements, which are not cancelled.
        """
        for worker in self._tasks.keys() & workers:
            self._cancelled[worker] = error
            self._tasks[worker][0].cancel()

    def wait(self, until: float = math.inf) -> list[Outcome[T]]:
        """Return outcomes of steps that ended, at least one if any are under way and it is not
        `until` before.

        Answers that have arrived are taken in any case: a moment that is past would stop all work.
        """
        pause = QUICK_SECONDS
        while self._tasks and not self._ended:
            moved = any([self._move(worker) for worker in list(self._tasks)])
            if time.monotonic() >= until:
                break
            if moved:
                pause = QUICK_SECONDS
            else:
                self._sleep(pause)
                pause = 0.0
        ended, self._ended = self._ended, []
        return ended

    def _sleep(self, pause: float) -> None:
        waiting = [(session, self._wanted[worker]) for worker, (session, _) in self._tasks.items()]
        if not ready(waiting, pause) and (self._piece() or not ready(waiting)):
            self._check()
            for worker in (
                self._cancelled
            ):  # the server may not have begun with the statement when it was cancelled
                self._tasks[worker][0].cancel()

    def _move(self, worker: int) -> bool:
        """Take the answer of a worker's statement and send its next one; False while there is no
        answer.
        """
        session, steps = self._tasks[worker]
        try:
            self._wanted[worker] = session.wants()
            if self._wanted[worker] != DONE:
                return False
            rows = session.result()
        except CerebroError as error:
            self._fail(worker, error)
        else:
            self._advance(worker, lambda: steps.send(rows))
        return True

    def _fail(self, worker: int, error: CerebroError) -> None:
        _, steps = self._tasks[worker]
        raised = self._cancelled.pop(worker, error)
        self._advance(worker, lambda: steps.throw(raised))

    def _advance(self, worker: int, step: Callable[[], Statement]) -> None:
        session, _ = self._tasks[worker]
        self._wanted[worker] = READ
        try:
            statement = step()
        except StopIteration as stop:
            return self._end(Outcome(worker, stop.value, None))
        except CerebroError as error:
            return self._end(Outcome(worker, None, error))
        if worker in self._cancelled:
            return self._fail(worker, self._cancelled[worker])
        try:
            session.start(statement.sql, statement.values)
        except CerebroError as error:
            self._fail(worker, error)

    def _end(self, outcome: Outcome[T]) -> None:
        del self._tasks[outcome.worker]
        self._cancelled.pop(outcome.worker, None)
        self._ended.append(outcome)


def await_rows(session: Session, check: Callable[[], None]) -> Rows:
    """Wait for the rows of a statement that was started; `check` is called meanwhile and may
    raise.
    """
    while (wanted := session.wants()) != DONE:
        if not ready([(session, wanted)]):
            check()
    return session.result()


@contextmanager
def transaction(session: Session, isolation: str = "READ COMMITTED") -> Iterator[None]:
    """Several statements of a session as one transaction; an error undoes all of them."""
    session.run(sql("session.begin", isolation=isolation))
    try:
        yield
    except CerebroError:
        with suppress(CerebroError):  # the session may be what was lost
            session.run(sql("session.rollback"))
        raise
    session.run(sql("session.commit"))


def drive(session: Session, steps: Steps[T]) -> T:
    """Work through steps in one session, one statement after another; their value."""
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
