"""What the caller hears while a run goes on: each epoch, once every configuration has completed it.

And towards the end, what can be written of it already: each configuration, once it is finished.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence

from cerebro_plpy.run.request.early_stopping import restores_best
from cerebro_plpy.run.request.run_request import Evaluation, FitRequest
from cerebro_plpy.run.state.config_state import ConfigTraining
from cerebro_plpy.run.workers.tasks import Nothing, Surroundings
from cerebro_plpy.scheduling.schedule import schedule
from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress, Plan
from cerebro_plpy.scheduling.schedule.scheduling_policies import count_remaining_visits

# What is written before the end belongs to the caller's transaction, which has an id from then on:
# in a busy database one that is open for hours, with many subtransactions that wrote, makes the
# snapshots of all others dear.
LAST_SECONDS = 60.0


class Announcer:
    """Tells of the epochs of a request in order, after those that were `announced` before the run
    was interrupted.
    """

    def __init__(
        self, run_id: int, request: FitRequest, around: Surroundings, announced: int
    ) -> None:
        self._run_id, self._request, self._around = run_id, request, around
        self._announced = announced
        self.trained: set[int] = set()
        """The configurations that it has told to be trained, which must not be trained on."""
        self._finished: set[int] = set()
        self._epoch_began = time.monotonic()

    def tell(
        self,
        progress: Mapping[int, ConfigProgress],
        training: Mapping[int, ConfigTraining],
        evaluations: Sequence[Evaluation],
        last: Mapping[int, int],
    ) -> None:
        """Tell about each epoch that every configuration has completed, results included; some have
        a `last` one.

        In a search there are none: its decisions are told of.
        """
        while not self._request.search and self._announced < self._request.spec.epochs:
            epoch = self._announced + 1
            trained = [key for key in progress if last.get(key, epoch) >= epoch]
            trained = [
                key
                for key in trained
                if epoch in training[key].losses or not progress[key].finished
            ]
            if not trained or not schedule.is_epoch_complete(progress, epoch):
                return
            done = {e.mst_key for e in evaluations if e.epoch == epoch}
            if epoch in self._request.spec.evaluate_epochs and not done.issuperset(trained):
                return
            now = time.monotonic()
            losses = {key: training[key].mean_loss(epoch) for key in trained}
            alive = [e for e in evaluations if e.mst_key in progress]
            self._around.epoch(epoch, now - self._epoch_began, alive, losses)
            self._epoch_began, self._announced = now, epoch

    def tell_trained(
        self,
        plan: Plan,
        progress: Mapping[int, ConfigProgress],
        training: Mapping[int, ConfigTraining],
        keeping: Collection[int],
    ) -> None:
        """Tell about each configuration that is trained no further, and again when it is finished,
        in the last seconds.

        Never where a budget cancels visits, of which any may be stored all the same, nor where
        nobody waits for it: so they may be trained on. Nor of one whose state may be dropped for
        `live_states`, which nobody may read then.
        """
        if (
            self._request.deadline
            or self._request.cost_limits
            or isinstance(self._around.beside, Nothing)
        ):
            return
        known = {
            key: each
            for key, each in progress.items()
            if training[key].outcome and key not in keeping
        }
        search = self._request.search
        stay = search is None or search.live_states is None
        finished = {
            key
            for key, each in known.items()
            if each.finished and (stay or training[key].completed())
        }
        trained = set(finished)
        if not search:  # which may let anyone go on
            trained |= {key for key, each in known.items() if settled(plan, each, training[key])}
        if trained <= self.trained and finished <= self._finished:
            return
        if seconds_ahead(plan, progress, training) > LAST_SECONDS * self._request.workers:
            return
        for key in sorted(trained - self.trained):
            self._around.beside.trained(self._run_id, key)
        for key in sorted(finished - self._finished):
            self._around.beside.finished(key)
        self.trained |= trained
        self._finished |= finished


def settled(plan: Plan, progress: ConfigProgress, training: ConfigTraining) -> bool:
    """Whether a configuration that is evaluated yet keeps the state that it has: by then it may
    have a best one.
    """
    final = (
        progress.max_epoch is None or progress.max_epoch >= plan.epochs
    )  # else somebody may let it go on
    trained = not (
        progress.paused
        or progress.kind == "average"
        or count_remaining_visits(plan, progress).train
    )
    return final and trained and not restores_best(training.config, training.request)


def seconds_ahead(
    plan: Plan, progress: Mapping[int, ConfigProgress], training: Mapping[int, ConfigTraining]
) -> float:
    """What all visits are still to take that train, those under way included, by the mean of those
    made.
    """
    visits = sum(each.visits for each in training.values())
    usual = sum(each.seconds for each in training.values()) / max(1, visits)
    left = (
        (training[key], count_remaining_visits(plan, each).train) for key, each in progress.items()
    )
    return sum(
        count * (each.seconds / each.visits if each.visits else usual) for each, count in left
    )
