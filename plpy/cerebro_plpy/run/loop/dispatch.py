"""What idle workers are to do next: who may be visited now, in what order, and how many visits are
made together.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence

from cerebro_plpy.run.loop.budget import Budget
from cerebro_plpy.run.request.early_stopping import compute_stopping_status, restores_best
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.run.state.config_state import ConfigTraining
from cerebro_plpy.run.state.progress_tracker import Positions
from cerebro_plpy.run.state.runtime_stats import Measurements
from cerebro_plpy.run.workers.tasks import Storing
from cerebro_plpy.scheduling.schedule import visit_batches
from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress, Plan, VisitBatch
from cerebro_plpy.scheduling.schedule.scheduling_policies import (
    FOREMOST,
    Prioritised,
    choose_front,
    make_policy,
)
from cerebro_plpy.scheduling.schedule.visit_batches import BatchLimit, Policy


class Choice:
    """By the schedule of a request, and by what is known of its configurations so far."""

    def __init__(
        self,
        request: FitRequest,
        training: Mapping[int, ConfigTraining],
        measurements: Measurements,
        budget: Budget,
    ) -> None:
        self._request, self._training = request, training
        self._measurements, self._budget = measurements, budget

    def tours(
        self,
        positions: Positions,
        unstored: Collection[Storing],
        resting: Collection[int],
        idle: set[int],
        workers: int,
        urgent: Sequence[int],
    ) -> Sequence[tuple[int, VisitBatch]]:
        """Tours for idle workers, of so many; no configuration that is `resting` is visited,
        `urgent` ones go first.

        One whose state is still to be stored can go on where that is.
        """
        plan, left = positions.plan, self._budget.visits_left
        ahead = (
            [] if plan.is_averaging else [task for task in unstored if positions.holds(task.tour)]
        )
        ahead = [task for task in ahead if left(self._training[task.mst_key]) > 0]
        held = {task.mst_key: task.worker.number for task in ahead}
        progress = {
            **positions.progress,
            **{task.mst_key: positions.after(task.tour) for task in ahead},
        }
        awake = {key: each for key, each in progress.items() if not each.awaits_decision}
        eligible = {key: each for key, each in awake.items() if key not in resting}
        if not positions.residence and self._request.spec.schedule == FOREMOST:
            first = choose_front(awake, min(self._request.workers, workers)).union(urgent)
            eligible = {key: each for key, each in eligible.items() if key in first}
        choose = (
            positions.residence.choose_batches
            if positions.residence
            else visit_batches.choose_batches
        )
        policy = Prioritised(self._policy(plan), urgent) if urgent else self._policy(plan)
        return choose(plan, eligible, idle, policy, self.reach, held)

    def vacant(self, positions: Positions, idle: set[int], busy: int) -> int:
        """How many idle workers could have work; so many others are busy."""
        serving = (
            idle if positions.residence else idle.intersection(positions.plan.workers.values())
        )
        return min(len(serving), self._request.workers - busy)

    def rows_ahead(self, positions: Positions, training: ConfigTraining, workers: int) -> int:
        """The rows that one of so many workers is still to train with a configuration's program and
        batch size.
        """
        waiting = ((self._training[key], progress) for key, progress in positions.progress.items())
        alike = (
            (each, progress)
            for each, progress in waiting
            if each.compilation == training.compilation
        )
        rows = sum(each.rows_ahead(positions.plan, progress) for each, progress in alike)
        return rows // (
            positions.residence.workers_per_program(workers) if positions.residence else workers
        )

    def reach(self, progress: ConfigProgress, states: int = 1) -> BatchLimit:
        """How many of a configuration's next visits a worker may make together: all that change no
        state. It may make them of so many states in turn."""
        training = self._training[progress.mst_key]
        if training.alone(progress):
            return BatchLimit(1)
        if progress.kind == "evaluate":
            return BatchLimit(len(progress.waiting_segments))
        left = (
            self._budget.visits_left(training),
            self._until_copied(training),
            training.before_tried(),
        )
        visits, evaluations = self._measurements.together(training, states)
        return BatchLimit(min(visits, *left), min(evaluations, self._evaluations(training)))

    def _evaluations(self, training: ConfigTraining) -> int:
        """How many evaluations there may be among a configuration's next visits: those that decide
        nothing, and one that may."""
        request = self._request
        alone = training.config.fit.callbacks.tensorboard is not None or training.evaluation_tried
        if alone or self._budget.ends_unevaluated(training):
            return 0
        if request.search:
            return 1
        certain = compute_stopping_status(
            training.config, request, training.evaluations
        ).safe_values
        held = (
            self._measurements.held(training)
            if restores_best(training.config, request)
            else certain
        )
        return min(certain, held, sys.maxsize - 1) + 1

    def _until_copied(self, training: ConfigTraining) -> int:
        """How many visits a configuration may make until it has a state from which a clone is to
        begin.
        """
        key, made = training.config.mst_key, training.visits + training.unstored
        starts = self._request.replay.clone_starts.values()
        return min(
            (s.visits - made for s in starts if s.parent == key and s.visits > made),
            default=sys.maxsize,
        )

    def _policy(self, plan: Plan) -> Policy:
        name, recorded = self._request.spec.schedule, self._request.replay.orders
        programs = {key: each.compilation for key, each in self._training.items()}
        measured = {
            key: each.seconds / each.visits for key, each in self._training.items() if each.visits
        }
        seconds = {**(self._request.plan.visit_seconds if self._request.plan else {}), **measured}
        return make_policy(name, self._training, plan.segments, recorded, seconds, programs)
