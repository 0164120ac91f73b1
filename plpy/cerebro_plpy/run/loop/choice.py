"""The choice of the next visits: configurations for idle workers, and the number of visits.

Nothing here changes the state of the run.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence

from cerebro_plpy.run.request.early_stopping import compute_stopping_status, restores_best
from cerebro_plpy.run.state.config_state import ConfigState
from cerebro_plpy.run.state.run_state import RunState
from cerebro_plpy.run.state.runtime_stats import RuntimeStats
from cerebro_plpy.run.workers.tasks import StoreTask
from cerebro_plpy.scheduling.schedule import visit_batches
from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress, VisitBatch
from cerebro_plpy.scheduling.schedule.scheduling_policies import (
    FOREMOST,
    Prioritised,
    choose_front,
    make_policy,
)
from cerebro_plpy.scheduling.schedule.visit_batches import BatchLimit, Policy


class VisitChooser:
    """Chooses visits by the schedule of a run, and by what is known of its configurations."""

    def __init__(self, state: RunState, stats: RuntimeStats) -> None:
        self._state = state
        self._request = state.request
        self._stats = stats

    def choose(
        self, idle: set[int], unstored: Collection[StoreTask], workers: int
    ) -> Sequence[tuple[int, VisitBatch]]:
        """Return batches for idle workers, each with the number of its worker.

        A configuration whose state is still to be stored can train on where that state is.

        Args:
            unstored: states that are still to be stored.
            workers: number of workers, including busy ones.
        """
        state = self._state
        progress = dict(state.progress)
        pinned = {}
        for task in unstored:
            if self._may_train_ahead(task):
                progress[task.mst_key] = state.progress_after(task.batch)
                pinned[task.mst_key] = task.worker.number
        running = {
            key: position for key, position in progress.items() if not position.awaits_decision
        }
        eligible = {
            key: position for key, position in running.items() if key not in state.saving_best
        }
        if state.residence is None and self._request.spec.schedule == FOREMOST:
            front = choose_front(running, min(self._request.workers, workers)).union(state.first)
            eligible = {key: position for key, position in eligible.items() if key in front}
        policy = self._make_policy()
        if state.residence is not None:
            return state.residence.choose_batches(
                state.plan, eligible, idle, policy, self.limit_of, pinned
            )
        return visit_batches.choose_batches(
            state.plan, eligible, idle, policy, self.limit_of, pinned
        )

    def _may_train_ahead(self, task: StoreTask) -> bool:
        state = self._state
        if state.plan.is_averaging or not state.may_train_ahead(task.batch):
            return False
        return state.configs[task.mst_key].visits_before_recorded_end > 0

    def count_vacant(self, idle: set[int], busy: int) -> int:
        """Return how many idle workers could have work.

        Args:
            busy: number of other workers, which have work.
        """
        state = self._state
        serving = idle
        if state.residence is None:
            serving = idle.intersection(state.plan.workers.values())
        return min(len(serving), self._request.workers - busy)

    def remaining_rows(self, config: ConfigState, workers: int) -> int:
        """Return the rows that each worker has still to train with a configuration's code."""
        state = self._state
        rows = sum(
            state.configs[key].remaining_rows(state.plan, progress)
            for key, progress in state.progress.items()
            if state.configs[key].compilation == config.compilation
        )
        if state.residence is not None:
            workers = state.residence.workers_per_program(workers)
        return rows // workers

    def limit_of(self, progress: ConfigProgress, states: int = 1) -> BatchLimit:
        """Return how many of a configuration's next visits a worker may make in one job.

        Args:
            states: number of configurations that make the visits together.
        """
        config = self._state.configs[progress.mst_key]
        if config.must_visit_singly(progress):
            return BatchLimit(1)
        if progress.kind == "evaluate":
            return BatchLimit(len(progress.waiting_segments))
        limit = self._stats.batch_limit(config, states)
        visits = min(
            limit.visits,
            config.visits_before_recorded_end,
            config.visits_before_clone,
            config.visits_before_retry,
        )
        return BatchLimit(visits, min(limit.evaluations, self._count_evaluations(config)))

    def _count_evaluations(self, config: ConfigState) -> int:
        """Return how many evaluations may be among the next visits of a batch.

        These are the evaluations that cannot decide anything, and one that may.
        """
        if config.config.fit.callbacks.tensorboard is not None or config.has_tried_evaluation:
            return 0
        if config.ends_unevaluated:
            return 0
        if self._request.search:
            return 1
        status = compute_stopping_status(config.config, self._request, config.evaluations)
        count = status.safe_values
        if restores_best(config.config, self._request):
            count = min(count, self._stats.max_candidates(config))
        return min(count, sys.maxsize - 1) + 1

    def _make_policy(self) -> Policy:
        state = self._state
        seconds: dict[int, float] = {}
        if self._request.plan:
            seconds.update(self._request.plan.visit_seconds)
        for key, config in state.configs.items():
            if config.mean_visit_seconds is not None:
                seconds[key] = config.mean_visit_seconds
        policy = make_policy(
            self._request.spec.schedule,
            state.configs,
            state.plan.segments,
            self._request.replay.orders,
            seconds,
            {key: config.compilation for key, config in state.configs.items()},
        )
        return Prioritised(policy, state.first) if state.first else policy
