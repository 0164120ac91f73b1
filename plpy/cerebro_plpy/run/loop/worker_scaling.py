"""Worker scaling: as many workers as the run has slots, which may become more or fewer.

A worker that is to leave gets no further task. When its state is stored, its session and its
trainer end, and only then is its slot given back. A run without slots waits until it gets some.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial

from cerebro_plpy.errors import CerebroError
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.platform.call_context import OPEN_ERRORS
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.run.loop.step import Step
from cerebro_plpy.run.state.run_state import RunState
from cerebro_plpy.run.workers.admission import RunSlots
from cerebro_plpy.run.workers.run_context import RunContext
from cerebro_plpy.run.workers.worker_pool import WorkerPool


class WorkerScaling:
    """The workers of one run, and those that leave it."""

    def __init__(
        self, state: RunState, pool: WorkerPool, context: RunContext, workers: Sequence[Worker]
    ) -> None:
        self._state = state
        self._pool = pool
        self._context = context
        self._slots = context.slots  # None if the run shares with nobody
        self._workers: dict[int, list[Worker]] = {}  # by number
        for worker in workers:
            self._workers.setdefault(worker.number, []).append(worker)
        self._frameworks = sorted({worker.framework for worker in workers})
        self._leaving: set[int] = set()
        self._removed: list[int] = []  # since the segments were shared last
        self.is_waiting = False  # the run has no slots

    @property
    def next_check(self) -> float:
        """Return when the run may get other slots; never, if it keeps those that it has."""
        slots = self._slots
        if slots is None or slots.is_static or not slots.is_limited:
            return math.inf
        return slots.next_check

    def adjust(self) -> Iterator[Step]:
        """Have as many workers as the run has slots; without slots, wait for some."""
        slots = self._slots
        if slots is None:
            return
        slots.refresh()
        if slots.is_static:
            return
        share = slots.read_share()
        if not slots.is_limited and not self.is_waiting:
            return
        numbers = set(self._pool.numbers)
        self._close_leaving(slots)
        if share is not None:
            self.is_waiting = share == 0
            if share:
                self._change(slots, share)
        waited = 0.0
        if self.is_waiting and self._pool.is_finished:
            waited = self._wait(slots)
        changes = [partial(self._state.limits.postpone, waited)] if waited else []
        if self._removed or self._pool.numbers != numbers:
            changes.append(self._share_segments())
        yield Step(changes=changes)

    def remove_lost(self, worker: Worker, error: CerebroError) -> Step:
        """Continue without a worker that is lost for good.

        Raises:
            CerebroError: the worker is the last one, or cannot be replaced.
        """
        numbers = self._pool.numbers
        if len(numbers) == 1 or not worker.is_replaceable:
            raise error
        if worker.number in numbers:
            self._remove(worker.number)
        workers = count_nouns(len(numbers), "worker")
        text = f"going on with {workers}: no new session could be opened for a lost one"
        return Step(changes=[self._share_segments()], notes=[partial(self._context.notify, text)])

    def _share_segments(self) -> partial[None]:
        """Return the change that shares the segments among the workers."""
        removed = self._removed
        self._removed = []
        return partial(self._state.assign_segments, frozenset(self._pool.numbers), removed)

    def _change(self, slots: RunSlots, share: int) -> None:
        """Let workers leave or come back, and open new ones."""
        numbers = self._pool.numbers
        by_task = sorted(numbers, key=lambda number: (number in self._pool.idle, number))
        for number in by_task[share:]:
            self._remove(number)
            self._leaving.add(number)
        for number in sorted(self._leaving)[: share - len(numbers)]:
            self._leaving.remove(number)
            numbers.add(number)
        if share > slots.count:
            self._open_workers(slots, slots.take(share))

    def _close_leaving(self, slots: RunSlots) -> None:
        """End the sessions of leaving workers that have nothing left to do."""
        for number in [leaving for leaving in self._leaving if not self._pool.is_busy(leaving)]:
            self._leaving.remove(number)
            self._close(number)
        if slots.count > self._present:
            slots.take(self._present)

    def _wait(self, slots: RunSlots) -> float:
        """Give all slots back, and wait for others unless the run is paused.

        Returns:
            The seconds that the run has waited.
        """
        for number in [*self._workers]:
            self._close(number)
        if slots.count:
            slots.take(0)
        self._leaving.clear()
        self._pool.numbers.clear()
        if self._state.is_paused:
            return 0.0
        seconds = slots.wait()
        self._open_workers(slots, slots.count)
        self.is_waiting = not self._pool.numbers
        return seconds

    def _open_workers(self, slots: RunSlots, count: int) -> None:
        """Have so many workers, as far as sessions can be opened for them."""
        candidates = range(count + len(self._leaving))
        free = [
            number
            for number in candidates
            if number not in self._leaving and number not in self._pool.numbers
        ]
        for number in free[: count - self._present]:
            with suppress(*OPEN_ERRORS):
                self._open(slots, number)
        if self._present < count:
            slots.take(self._present)

    @property
    def _present(self) -> int:
        return len(self._pool.numbers) + len(self._leaving)

    def _open(self, slots: RunSlots, number: int) -> None:
        workers = self._workers.get(number)
        if workers is None:
            workers = [slots.opener.add_worker(number, framework) for framework in self._frameworks]
            self._workers[number] = workers
            self._pool.add_workers(workers)
        elif not all([slots.opener.reopen(worker) for worker in workers]):
            self._close(number)
            return
        self._pool.numbers.add(number)

    def _close(self, number: int) -> None:
        for worker in self._workers[number]:
            if worker.memory.started:
                with suppress(CerebroError):
                    self._pool.report_cost(worker)
        if self._slots:
            self._slots.opener.close_workers(self._workers[number])
        for worker in self._workers[number]:
            worker.memory.forget()

    def _remove(self, number: int) -> None:
        self._pool.numbers.remove(number)
        self._removed.append(number)
