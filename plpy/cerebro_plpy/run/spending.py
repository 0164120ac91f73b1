"""What a run has cost so far: what its workers tell, and what the sessions of the call itself use."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from cerebro_plpy.database.dispatch import drive
from cerebro_plpy.errors import CerebroError
from cerebro_plpy.platform.cost import Cost, total
from cerebro_plpy.platform.protocol import Visits, Worker
from cerebro_plpy.platform.workplace import Workplace


class Spending:
    """Of one run, from the opening of its workplace on; `workers` are there when they have started."""

    def __init__(self, workplace: Workplace) -> None:
        self.workplace = workplace
        self.workers: Sequence[Worker] = ()
        self._own = self._logged = Cost()

    def now(self) -> Cost:
        """All of it."""
        return total((self._sessions(), *(worker.account.told for worker in self.workers)))

    def settle(self, visits: Visits) -> None:
        """Hear of all that workers have done; one that is gone says nothing."""
        for worker in self.workers:
            with suppress(CerebroError):
                drive(worker.session, visits.settle(worker))

    def rest(self) -> Cost:
        """What belongs to no visit and no evaluation, and is in no log yet."""
        found = total((self._sessions(), *(worker.account.rest for worker in self.workers)))
        left, self._logged = found.less(self._logged), found
        return left

    def _sessions(self) -> Cost:
        self._own = total((self._own, Cost(backend_seconds=self.workplace.spent_seconds())))
        return self._own
