"""The configurations of one run and what is known of them, for all who decide about them."""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.run.state.config_state import ConfigTraining
from cerebro_plpy.run.state.progress_tracker import Positions
from cerebro_plpy.scheduling.schedule.schedule import VisitBatch


class Roster(NamedTuple):
    """What was asked, where it is logged, and by mst_key where each configuration stands and what
    it came to.

    Of those in `keeping` the state is being copied.
    """

    request: FitRequest
    log: RunLog
    positions: Positions
    training: dict[int, ConfigTraining]
    keeping: Set[int]

    def begin(self, tour: VisitBatch, unstored: VisitBatch | None = None) -> int:
        """A tour begins, from what another one leaves where that is unstored; which attempt it is,
        from 1.
        """
        self.positions.begin(tour, unstored)
        training = self.training[tour[0].mst_key]
        attempt = training.begin(tour)
        if not training.visits and attempt == 1 and tour[0].kind == "train":
            self.log.log_config_running(tour[0].mst_key)
        return attempt
