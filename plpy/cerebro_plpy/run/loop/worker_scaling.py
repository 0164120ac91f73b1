"""Which workers of a run are at work: as many as it has places, which may become more or fewer
while it goes on.

A worker that is to go is given nothing more. When what it does is stored, its session ends, and its
trainer with it, and then alone its place is given back. Where a run is to have none it rests, and
goes on when it is its turn again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress

from cerebro_plpy.errors import CerebroError
from cerebro_plpy.platform.call_context import OPEN_ERRORS
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.records import replace
from cerebro_plpy.run.state.run_state import Roster
from cerebro_plpy.run.workers.admission import RunSlots
from cerebro_plpy.run.workers.tasks import Surroundings
from cerebro_plpy.run.workers.worker_pool import Assignments
from cerebro_plpy.scheduling.schedule.placement import assign_segments


class Rota:
    """That of one run, whose `places` are None where it shares with nobody."""

    def __init__(
        self,
        roster: Roster,
        assignments: Assignments,
        around: Surroundings,
        workers: Sequence[Worker],
    ) -> None:
        self._roster, self._assignments = roster, assignments
        self._around, self._places = around, around.places
        self._staff: dict[int, list[Worker]] = {}
        for worker in workers:
            self._staff.setdefault(worker.number, []).append(worker)
        self._frameworks = sorted({worker.framework for worker in workers})
        self._leaving: set[int] = set()
        self.resting = False

    @property
    def next_look(self) -> float:
        """When the run may hear that it is to have other places; never, if it keeps those that it
        has.
        """
        places = self._places
        return (
            places.next_check if places and places.is_limited and not places.is_static else math.inf
        )

    def keep(self, *, paused: bool) -> float:
        """Have as many workers as the run is to have places; for how many seconds it had none."""
        places = self._places
        if places is None:
            return 0.0
        places.refresh()
        if places.is_static:
            return 0.0
        wanted = places.read_share()
        if not places.is_limited and not self.resting:
            return 0.0
        self._part(places)
        if wanted is not None:
            self.resting = wanted == 0
            if wanted:
                self._change(places, wanted)
        return self._rest(places, paused=paused) if self.resting and self._assignments.over else 0.0

    def lose(self, worker: Worker, error: CerebroError) -> None:
        """Go on without a worker that is lost for good, as long as there is another one."""
        if len(self._assignments.numbers) == 1 or not worker.is_replaceable:
            raise error
        if worker.number in self._assignments.numbers:
            self._remove(worker.number)
        self._around.note(
            f"going on with {len(self._assignments.numbers)} workers: no new session could be "
            "opened for a lost one"
        )

    def _change(self, places: RunSlots, wanted: int) -> None:
        numbers = self._assignments.numbers
        for number in sorted(numbers, key=lambda each: (each in self._assignments.idle, each))[
            wanted:
        ]:
            self._remove(number)
            self._leaving.add(number)
        for number in sorted(self._leaving)[: wanted - len(numbers)]:
            self._leaving.remove(number)
            self._add(number)
        if wanted > places.count:
            self._hire(places, places.take(wanted))

    def _part(self, places: RunSlots) -> None:
        """End the sessions of workers that have nothing left to do here."""
        for number in [each for each in self._leaving if not self._assignments.counted(each)]:
            self._leaving.remove(number)
            self._dismiss(number)
        present = len(self._assignments.numbers) + len(self._leaving)
        if places.count > present:
            places.take(present)

    def _rest(self, places: RunSlots, *, paused: bool) -> float:
        """Give all back, and go on when it is this run's turn; at the earliest when it is not
        paused any more.
        """
        for number in [*self._staff]:
            self._dismiss(number)
        if places.count:
            places.take(0)
        self._leaving.clear()
        self._assignments.numbers.clear()
        if paused:
            return 0.0
        seconds = places.wait()
        self._hire(places, places.count)
        self.resting = not self._assignments.numbers
        return seconds

    def _hire(self, places: RunSlots, count: int) -> None:
        """Let so many be at work, as far as sessions can be opened for them."""
        free = (
            number for number in range(count + len(self._leaving)) if number not in self._leaving
        )
        for number in [each for each in free if each not in self._assignments.numbers][
            : count - self._present
        ]:
            with suppress(*OPEN_ERRORS):
                self._open(places, number)
        if self._present < count:
            places.take(self._present)

    @property
    def _present(self) -> int:
        return len(self._assignments.numbers) + len(self._leaving)

    def _open(self, places: RunSlots, number: int) -> None:
        known = self._staff.get(number)
        if known is None:
            self._staff[number] = hired = [
                places.opener.add_worker(number, framework) for framework in self._frameworks
            ]
            self._assignments.admit(hired)
        elif not all([places.opener.reopen(worker) for worker in known]):
            return self._dismiss(number)
        self._add(number)

    def _dismiss(self, number: int) -> None:
        for worker in self._staff[number]:
            if worker.memory.started:  # else there is nobody to ask
                with suppress(CerebroError):
                    self._assignments.settle(worker)
        if self._places:
            self._places.opener.close_workers(self._staff[number])
        for worker in self._staff[number]:
            worker.memory.forget()

    def _add(self, number: int) -> None:
        self._assignments.numbers.add(number)
        self._share()

    def _remove(self, number: int) -> None:
        self._assignments.numbers.remove(number)
        self._share()
        if residence := self._roster.positions.residence:
            residence.remove_worker(number)

    def _share(self) -> None:
        plan = self._roster.positions.plan
        workers = assign_segments(plan.segments, self._assignments.numbers)
        self._roster.positions.plan = replace(plan, workers=workers)
