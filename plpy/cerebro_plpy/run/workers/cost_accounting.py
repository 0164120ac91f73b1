"""The cost of a run so far: as its workers report it, and that of the sessions of the call."""

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

CHARGE_SECONDS = 5.0
"""Interval at which a run charges the quota of its role with the processor seconds it has used."""
READ_SECONDS = 1.0
"""Shortest interval at which the log is read for the cost of stored states, which always grows."""
READ_SHARE = 0.01
"""Largest share of the time for these reads."""


class CostMeter:
    """Measures the cost of one run, from the moment when its context was opened."""

    def __init__(self, context: CallContext, log: RunLog) -> None:
        self.context = context
        self.log = log
        self._session_cost = Cost()  # of the sessions of the call
        self._logged_cost = Cost()  # part without visits that the log contains
        self._usage_before = Usage()  # before the run was resumed
        self._byte_seconds = 0.0  # of stored states
        self._next_read = math.inf
        self._charged_seconds = 0.0
        self._next_charge = 0.0

    def load_logged_cost(self, limits: CostLimits) -> None:
        """Read the cost before the run was resumed; measure that of states if it is limited."""
        self._usage_before = self._read_usage()
        self._byte_seconds = self._usage_before.byte_seconds
        if limits.max_cost is not None and limits.prices.gb_month:
            self._next_read = 0.0

    def measure_usage(self) -> Usage:
        """Return the usage of the run, also before it was resumed.

        That of states is at least a second old.
        """
        start = time.monotonic()
        if start >= self._next_read:
            self._byte_seconds = self._read_usage().byte_seconds
            read_seconds = time.monotonic() - start
            self._next_read = start + max(READ_SECONDS, read_seconds / READ_SHARE)
        cost = self.measure_cost()
        cpu_seconds = self._usage_before.cpu_seconds + cost.trainer_seconds + cost.backend_seconds
        gpu_seconds = self._usage_before.gpu_seconds + cost.gpu_seconds
        return Usage(cpu_seconds, gpu_seconds, self._byte_seconds)

    def charge_quota_periodically(self) -> None:
        """Charge the quota, except shortly after the last charge."""
        if time.monotonic() >= self._next_charge:
            self._measure_sessions()
            self.charge_quota()

    def charge_quota(self) -> None:
        """Charge the quota of the run's role with the processor seconds since the last charge.

        The log is not used, because its owner can change it.
        """
        cost = total((self._session_cost, *self._list_reported()))
        seconds = cost.trainer_seconds + cost.backend_seconds
        increase = max(0.0, seconds - self._charged_seconds)
        values = (self.log.run_id, self.log.ticket, increase)
        self.context.control.run(sql("used_time.count"), values)
        self._charged_seconds = seconds
        self._next_charge = time.monotonic() + CHARGE_SECONDS

    def measure_cost(self) -> Cost:
        """Return the cost of the sessions and of all workers."""
        return total((self._measure_sessions(), *self._list_reported()))

    def collect_reports(self, visits: Visits) -> None:
        """Let workers report their cost, as far as they still exist."""
        for worker in self.context.all_workers:
            with suppress(CerebroError):
                drive(worker.session, visits.report_cost(worker))

    def abandon(self) -> None:
        """Estimate the cost of jobs that are cancelled, before workers are stopped."""
        for worker in self.context.all_workers:
            worker.account.abandon()

    def take_unlogged_cost(self) -> Cost:
        """Return the cost of no visit and no evaluation since the last call, for the log."""
        unassigned = [worker.account.unassigned for worker in self.context.all_workers]
        cost = total((self._measure_sessions(), *unassigned))
        unlogged = cost.subtract(self._logged_cost)
        self._logged_cost = cost
        return unlogged

    def _read_usage(self) -> Usage:
        return Usage(*self.context.control.run(sql("run.cost"), (self.log.run_id,))[0])

    def _list_reported(self) -> list[Cost]:
        return [worker.account.reported for worker in self.context.all_workers]

    def _measure_sessions(self) -> Cost:
        seconds = self.context.take_session_seconds()
        self._session_cost = total((self._session_cost, Cost(backend_seconds=seconds)))
        return self._session_cost
