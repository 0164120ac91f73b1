"""What the caller hears while a run goes on: each epoch, once every configuration has completed it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from cerebro_plpy.hopping import schedule
from cerebro_plpy.hopping.schedule import ConfigProgress
from cerebro_plpy.run.request import Evaluation, FitRequest
from cerebro_plpy.run.tasks import Surroundings
from cerebro_plpy.run.training import ConfigTraining


class Announcer:
    """Tells of the epochs of a request in order, after those that were `announced` before the run was interrupted."""

    def __init__(self, request: FitRequest, around: Surroundings, announced: int) -> None:
        self._request, self._around = request, around
        self._announced = announced
        self._epoch_began = time.monotonic()

    def tell(
        self,
        progress: Mapping[int, ConfigProgress],
        training: Mapping[int, ConfigTraining],
        evaluations: Sequence[Evaluation],
        last: Mapping[int, int],
    ) -> None:
        """Tell about each epoch that every configuration has completed, results included; some have a `last` one."""
        while self._announced < self._request.spec.epochs:
            epoch = self._announced + 1
            trained = [key for key in progress if last.get(key, epoch) >= epoch]
            if not trained or not schedule.epoch_completed(progress, epoch):
                return
            done = {e.mst_key for e in evaluations if e.epoch == epoch}
            if epoch in self._request.spec.evaluate_epochs and not done.issuperset(trained):
                return
            now = time.monotonic()
            losses = {key: training[key].mean_loss(epoch) for key in trained}
            alive = [e for e in evaluations if e.mst_key in progress]
            self._around.epoch(epoch, now - self._epoch_began, alive, losses)
            self._epoch_began, self._announced = now, epoch
