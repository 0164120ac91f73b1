"""What a run has cost so far: what its workers tell, and what the sessions of the call itself use."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import suppress

from cerebro_plpy.database.dispatch import drive
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import CerebroError
from cerebro_plpy.hopping.allowance import Spent
from cerebro_plpy.platform.cost import Cost, total
from cerebro_plpy.platform.protocol import Visits, Worker
from cerebro_plpy.platform.workplace import Workplace

LOOK_SECONDS = 1.0  # states lie somewhere, and cost, also where nothing is done


class Spending:
    """Of one run, from the opening of its workplace on; `workers` are there when they have started."""

    def __init__(self, workplace: Workplace, run_id: int) -> None:
        self.workplace, self._run_id = workplace, run_id
        self.workers: Sequence[Worker] = ()
        self._own = self._logged = Cost()
        self._looked = -math.inf
        self._before, self._stored = Spent(), 0.0

    def recall(self) -> None:
        """Take up what the log has of the run."""
        self._before = Spent(*self.workplace.control.run(sql("run.cost"), (self._run_id,))[0])

    def spent(self) -> Spent:
        """All that the run has cost, before it was resumed, too; of states as of a second ago."""
        now, moment = self.now(), time.monotonic()
        if moment - self._looked > LOOK_SECONDS:
            self._looked = moment
            self._stored = self.workplace.control.run(sql("run.cost"), (self._run_id,))[0][2]
        cpu = self._before.cpu_seconds + now.trainer_seconds + now.backend_seconds
        return Spent(cpu, self._before.gpu_seconds + now.gpu_seconds, self._stored)

    def now(self) -> Cost:
        """All of it."""
        return total((self._sessions(), *(worker.account.told for worker in self.workers)))

    def settle(self, visits: Visits) -> None:
        """Hear of all that workers have done; one that is gone says nothing."""
        for worker in self.workers:
            with suppress(CerebroError):
                drive(worker.session, visits.settle(worker))

    def abandon(self) -> None:
        """Workers are about to be ended, whatever they do."""
        for worker in self.workers:
            worker.account.abandon()

    def rest(self) -> Cost:
        """What belongs to no visit and no evaluation, and is in no log yet."""
        found = total((self._sessions(), *(worker.account.rest for worker in self.workers)))
        left, self._logged = found.less(self._logged), found
        return left

    def _sessions(self) -> Cost:
        self._own = total((self._own, Cost(backend_seconds=self.workplace.spent_seconds())))
        return self._own
