"""Reports to the caller during a run: each epoch that all configurations have completed.

Towards the end, each configuration is reported that trains no further: its outputs can be written.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import partial

from cerebro_plpy.database.call_status import COMPILING, TRAINING
from cerebro_plpy.run.log.step_log import StepLog
from cerebro_plpy.run.loop.step import Step
from cerebro_plpy.run.request.early_stopping import restores_best
from cerebro_plpy.run.state.config_state import ConfigState
from cerebro_plpy.run.state.run_state import RunState
from cerebro_plpy.run.workers.run_context import NoSideWork, RunContext
from cerebro_plpy.scheduling.schedule import schedule
from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress, Plan
from cerebro_plpy.scheduling.schedule.scheduling_policies import count_remaining_visits

LAST_SECONDS = 60.0
"""Outputs are written at most this long before the end of a run. From then on the caller's
transaction has an id. In a busy database, a transaction with many subtransactions that is open for
hours slows down the snapshots of all others."""


class Reporter:
    """Reports to the caller of one run.

    Args:
        last_epoch: the last epoch that was reported before the run was interrupted.
    """

    def __init__(self, log: StepLog, state: RunState, context: RunContext, last_epoch: int) -> None:
        request = state.request
        self._log = log
        self._run_id = log.run_id
        self._first_visits = count_made_visits(state)
        self._phase = COMPILING
        self._logged_end = state.limits.over
        self._request = request
        self._context = context
        self._last_epoch = last_epoch
        self._epoch_began = time.monotonic()
        self.trained: set[int] = set()  # reported configurations, which must not train on
        self._finished: set[int] = set()

    def report_phase(self, state: RunState) -> Step:
        """Report that the run trains, once its first visits are made: programs are compiled.

        Also log the end of the budget if it was postponed, because the run has waited.
        """
        limits = state.limits
        phase = self._phase
        # The count passes over all configurations: it ends with the first visits.
        if phase == COMPILING and count_made_visits(state) != self._first_visits:
            phase = TRAINING
        if (phase, limits.over) == (self._phase, self._logged_end):
            return Step()
        return Step(
            log=[self._log.log_phase(phase, limits.remaining)],
            changes=[partial(self._note_phase, phase, limits.over)],
            notes=[partial(self._context.enter_phase, phase)],
        )

    def _note_phase(self, phase: str, end: float) -> None:
        self._phase = phase
        self._logged_end = end

    def report_epochs(self, state: RunState) -> Iterator[Step]:
        """Report each epoch that all configurations have completed, with its results.

        Epochs that were trained in one job are reported together. Each is reported with its part of
        the time. A search reports its decisions instead.
        """
        if self._request.search:
            return
        reportable = list(self._list_reportable(state))
        now = time.monotonic()
        for epoch, keys in reportable:
            losses = {key: state.configs[key].mean_loss(epoch) for key in keys}
            evaluations = [
                evaluation
                for evaluation in state.evaluations
                if evaluation.mst_key in state.progress
            ]
            seconds = (now - self._epoch_began) / len(reportable)
            yield Step(
                changes=[
                    partial(state.forget_losses, epoch, keys),
                    partial(self._note_epoch, epoch),
                ],
                notes=[partial(self._context.report_epoch, epoch, seconds, evaluations, losses)],
            )
        if reportable:
            self._epoch_began = now

    def _list_reportable(self, state: RunState) -> Iterator[tuple[int, list[int]]]:
        """Yield the next epochs to report, each with the configurations that trained in it."""
        for epoch in range(self._last_epoch + 1, self._request.spec.epochs + 1):
            keys = self._find_reportable(state, epoch)
            if not keys:
                return
            yield epoch, keys

    def _find_reportable(self, state: RunState, epoch: int) -> list[int]:
        """Return the configurations that have trained in an epoch; none until all are done."""
        committed = state.committed
        if not schedule.is_epoch_complete(committed, epoch):
            return []
        keys = [
            key
            for key, progress in committed.items()
            if state.stopped_early.get(key, epoch) >= epoch
            and (epoch in state.configs[key].losses or not progress.finished)
        ]
        evaluated_keys = {
            evaluation.mst_key for evaluation in state.evaluations if evaluation.epoch == epoch
        }
        if epoch in self._request.spec.evaluate_epochs and not evaluated_keys.issuperset(keys):
            return []
        return keys

    def _note_epoch(self, epoch: int) -> None:
        self._last_epoch = epoch

    def report_trained(self, state: RunState) -> Step:
        """Report configurations that train no further, and those that are finished.

        With a budget nothing is reported: visits that are cancelled may be stored nevertheless.
        """
        request = self._request
        if request.deadline or request.cost_limits:
            return Step()
        side_work = self._context.side_work
        if isinstance(side_work, NoSideWork):
            return Step()
        committed = state.committed
        trained, finished = self._find_trained(state, committed)
        if trained <= self.trained and finished <= self._finished:
            return Step()
        remaining = estimate_remaining_seconds(state.plan, committed, state.configs)
        if remaining > LAST_SECONDS * request.workers:
            return Step()
        return Step(
            changes=[
                partial(self.trained.update, trained),
                partial(self._finished.update, finished),
            ],
            notes=[
                *(
                    partial(side_work.report_trained, self._run_id, key)
                    for key in sorted(trained - self.trained)
                ),
                *(
                    partial(side_work.report_finished, key)
                    for key in sorted(finished - self._finished)
                ),
            ],
        )

    def _find_trained(
        self, state: RunState, committed: Mapping[int, ConfigProgress]
    ) -> tuple[set[int], set[int]]:
        """Return the configurations that train no further, and those of them that are finished."""
        search = self._request.search
        drops_states = search is not None and search.live_states is not None
        trained = set[int]()
        finished = set[int]()
        for key, progress in committed.items():
            config = state.configs[key]
            if not config.model_state or key in state.saving_best:
                continue
            if progress.finished and (config.is_completed or not drops_states):
                trained.add(key)
                finished.add(key)
            # A search may let any configuration continue.
            elif not search and is_trained(state.plan, progress, config):
                trained.add(key)
        return trained, finished


def count_made_visits(state: RunState) -> int:
    """Return the number of visits that are made, stored or not."""
    return sum(config.visits + config.unstored for config in state.configs.values())


def is_trained(plan: Plan, progress: ConfigProgress, config: ConfigState) -> bool:
    """Return True if a configuration has its final state, although it is still to be evaluated.

    The evaluation may decide which state is the best.
    """
    if progress.max_epoch is not None and progress.max_epoch < plan.epochs:
        return False  # somebody may let it continue
    if progress.paused or progress.kind == "average":
        return False
    if count_remaining_visits(plan, progress).train:
        return False
    return not restores_best(config.config, config.request)


def estimate_remaining_seconds(
    plan: Plan, progress: Mapping[int, ConfigProgress], configs: Mapping[int, ConfigState]
) -> float:
    """Return the seconds that all remaining training visits take, including running ones.

    A configuration without visits is expected to take the mean of the others.
    """
    visits = sum(config.visits for config in configs.values())
    mean_seconds = sum(config.seconds for config in configs.values()) / max(1, visits)
    remaining = 0.0
    for key, position in progress.items():
        seconds = configs[key].mean_visit_seconds
        if seconds is None:
            seconds = mean_seconds
        remaining += count_remaining_visits(plan, position).train * seconds
    return remaining
