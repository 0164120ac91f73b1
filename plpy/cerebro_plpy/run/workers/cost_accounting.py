"""What a run has cost so far: what its workers tell, and what the sessions of the call itself
use.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import drive
from cerebro_plpy.errors import CerebroError
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.platform.resource_usage import Cost, total
from cerebro_plpy.platform.visits import Visits
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.scheduling.quota.cost_limits import CostLimits, Usage

COUNT_SECONDS = 5.0
"""So often a run counts, for the quota of its role, the processor seconds that it has used."""
LOOK_SECONDS, LOOK_SHARE = 1.0, 0.01
"""States cost as long as they lie somewhere: the log is asked so often at most, and for so much of
the time.
"""


class CostMeter:
    """Of one run, from the opening of its workplace on."""

    def __init__(self, workplace: CallContext, log: RunLog) -> None:
        self.context, self.log = workplace, log
        self._own = self._logged = Cost()
        self._before, self._stored, self._look_again = Usage(), 0.0, math.inf
        self._counted, self._count_again = 0.0, 0.0

    def load_logged_cost(self, allowance: CostLimits) -> None:
        """Take up what the log has of the run; it is asked again for its states where these are
        paid for.
        """
        self._before = self._logged_cost()
        self._stored = self._before.byte_seconds
        if allowance.max_cost is not None and allowance.prices.gb_month:
            self._look_again = 0.0

    def measure_usage(self) -> Usage:
        """All that the run has cost, before it was resumed, too; of states as of a second or more
        ago.
        """
        began = time.monotonic()
        if began >= self._look_again:
            self._stored = self._logged_cost().byte_seconds
            took = time.monotonic() - began
            self._look_again = began + max(LOOK_SECONDS, took / LOOK_SHARE)
        now = self.measure_cost()
        cpu = self._before.cpu_seconds + now.trainer_seconds + now.backend_seconds
        return Usage(cpu, self._before.gpu_seconds + now.gpu_seconds, self._stored)

    def charge_quota_periodically(self) -> None:
        """Count what the run has used, unless it was counted a moment ago."""
        if time.monotonic() >= self._count_again:
            self._sessions()
            self.charge_quota()

    def charge_quota(self) -> None:
        """Count what the run is known to have used since it was counted last, for the quota of its
        role.

        What the log says of that decides nothing: its owner may change it.
        """
        now = total((self._own, *(worker.account.reported for worker in self.context.all_workers)))
        used = now.trainer_seconds + now.backend_seconds
        values = (self.log.run_id, self.log.ticket, max(0.0, used - self._counted))
        self.context.control.run(sql("used_time.count"), values)
        self._counted = used
        self._count_again = time.monotonic() + COUNT_SECONDS

    def _logged_cost(self) -> Usage:
        return Usage(*self.context.control.run(sql("run.cost"), (self.log.run_id,))[0])

    def measure_cost(self) -> Cost:
        """All of it."""
        return total(
            (self._sessions(), *(worker.account.reported for worker in self.context.all_workers))
        )

    def collect_reports(self, visits: Visits) -> None:
        """Hear of all that workers have done; one that is gone says nothing."""
        for worker in self.context.all_workers:
            with suppress(CerebroError):
                drive(worker.session, visits.report_cost(worker))

    def abandon(self) -> None:
        """Workers are about to be ended, whatever they do."""
        for worker in self.context.all_workers:
            worker.account.abandon()

    def take_unlogged_cost(self) -> Cost:
        """What belongs to no visit and no evaluation, and is in no log yet."""
        found = total(
            (
                self._sessions(),
                *(worker.account.unassigned for worker in self.context.all_workers),
            )
        )
        left, self._logged = found.subtract(self._logged), found
        return left

    def _sessions(self) -> Cost:
        self._own = total((self._own, Cost(backend_seconds=self.context.take_session_seconds())))
        return self._own
