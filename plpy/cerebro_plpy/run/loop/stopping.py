"""What ends configurations early whatever a search decides: EarlyStopping, max_runtime, the budget
of the run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from cerebro_plpy.run.loop.budget import Budget
from cerebro_plpy.run.loop.search import Search
from cerebro_plpy.run.request.early_stopping import compute_stopping_status, describe_stop
from cerebro_plpy.run.request.run_request import BUDGET_OVER
from cerebro_plpy.run.state.config_state import ConfigTraining
from cerebro_plpy.run.state.run_state import Roster
from cerebro_plpy.scheduling.schedule import schedule
from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress
from cerebro_plpy.scheduling.schedule.scheduling_policies import count_remaining_visits

TIME_OVER = "max_runtime was over"


class Endings:
    """Those of one run, whose time begins now.

    `stopped` are the configurations that max_runtime or the budget kept from their last epoch;
    `last` has the epochs at which EarlyStopping ended others.
    """

    def __init__(self, roster: Roster, budget: Budget, search: Search) -> None:
        self._log, self._positions, self._training = roster.log, roster.positions, roster.training
        self._budget, self._search = budget, search
        request = roster.request
        self._deadline = time.monotonic() + (
            math.inf if request.max_runtime is None else request.max_runtime
        )
        self._in_time = False  # whether what is under way is the last
        self.stopped: set[int] = set()
        self.last: dict[int, int] = {}

    def put_off(self, seconds: float) -> None:
        """The run has waited so long for somebody."""
        self._deadline += seconds

    def stop_early(self, training: ConfigTraining) -> None:
        """Let a configuration go no further, where its metrics say so."""
        config, found = (
            training.config,
            compute_stopping_status(training.config, training.request, training.evaluations),
        )
        if found.stopped_epoch in (None, training.epochs) or config.mst_key in self.stopped:
            return
        if self._search.insists(config.mst_key) or self._budget.ended(training):
            return
        reason = describe_stop(config, training.request, found)
        self.last[config.mst_key] = found.stopped_epoch
        self._positions.stop(config.mst_key)
        self._search.ended(config.mst_key, reason)
        self._log.log_config_stopped(config.mst_key, reason)

    def stop_in_time(self) -> None:
        """When the time of the run is over, let what is under way be the last that each
        configuration trains.
        """
        if self._in_time:
            return self._stop_what_was_lost()
        if time.monotonic() < self._deadline:
            return
        self._in_time = True
        self._search.close()
        plan, progress = self._positions.plan, self._positions.progress
        for mst_key, before in progress.items():
            progress[mst_key] = after = schedule.stop(plan, before)
            if (
                count_remaining_visits(plan, after).train
                < count_remaining_visits(plan, before).train
            ):
                self.stopped.add(mst_key)
                self._log.log_config_stopped(mst_key, TIME_OVER)

    def _stop_what_was_lost(self) -> None:
        """A visit that was under way then may be lost with its trainer, and was to begin from a
        state that is gone too: it is not made again."""
        for mst_key, progress in self._positions.progress.items():
            whole = progress.max_epoch is None and not self._training[mst_key].completed()
            if (
                progress.finished
                and whole
                and mst_key not in self.stopped
                and mst_key not in self.last
            ):
                self.stopped.add(mst_key)
                self._log.log_config_stopped(mst_key, TIME_OVER)

    def keep_to_budget(self, trained: bool) -> None:
        """When the budget is over, take the configurations to their ends; it matters whether any
        was `trained`.

        A best state is kept all the same, because the log has the metrics that make it the best.
        """
        self._budget.look()
        if self._budget.ending:
            self._search.close()
        plan, progress = self._positions.plan, self._positions.progress
        ended = list[ConfigProgress]()
        for mst_key, before in progress.items():
            progress[mst_key] = after = self._budget.rest(
                plan, self._training[mst_key], before, trained
            )
            if mst_key not in self.stopped and count_remaining_visits(
                plan, after
            ) != count_remaining_visits(plan, before):
                ended.append(before)
        self._end(ended, BUDGET_OVER)

    def close(self) -> None:
        """Say why those have ended who are where a rule was to say how they go on, which nobody
        asks any more.
        """
        self._search.close()
        positions = self._positions.progress
        undecided = sorted(
            self._search.undecided & positions.keys() - self.stopped - self.last.keys()
        )
        cut = [
            positions[mst_key] for mst_key in undecided if not self._training[mst_key].completed()
        ]
        self._end(cut, TIME_OVER if self._in_time else BUDGET_OVER)

    def _end(self, ended: Sequence[ConfigProgress], reason: str) -> None:
        self.stopped.update(each.mst_key for each in ended)
        if self._budget.excess:
            self._search.exhausted(ended, self._budget.excess)
        else:
            for each in ended:
                self._log.log_config_stopped(each.mst_key, reason)
