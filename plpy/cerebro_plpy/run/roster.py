"""The configurations of one run and what is known of them, for all who decide about them."""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

from cerebro_plpy.run.log import RunLog
from cerebro_plpy.run.positions import Positions
from cerebro_plpy.run.request import FitRequest
from cerebro_plpy.run.training import ConfigTraining


class Roster(NamedTuple):
    """What was asked, where it is logged, and by mst_key where each configuration stands and what it came to.

    Of those in `keeping` the state is being copied.
    """

    request: FitRequest
    log: RunLog
    positions: Positions
    training: dict[int, ConfigTraining]
    keeping: Set[int]
