"""The objects of a run that handlers of events use."""

from __future__ import annotations

from typing import NamedTuple

from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.run.loop.added_configs import ConfigSource
from cerebro_plpy.run.loop.choice import VisitChooser
from cerebro_plpy.run.loop.fusion import FusionChooser
from cerebro_plpy.run.loop.reporting import Reporter
from cerebro_plpy.run.loop.worker_scaling import WorkerScaling
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.run.state.run_state import RunState
from cerebro_plpy.run.state.runtime_stats import RuntimeStats
from cerebro_plpy.run.workers.run_context import RunContext
from cerebro_plpy.run.workers.worker_pool import WorkerPool
from cerebro_plpy.scheduling.search.search_state import SearchState


class Run(NamedTuple):
    """One run while it trains. Handlers read it, and change it by steps only."""

    request: FitRequest
    context: RunContext
    log: RunLog
    state: RunState
    stats: RuntimeStats
    pool: WorkerPool
    chooser: VisitChooser
    fusion: FusionChooser
    scaling: WorkerScaling
    sources: ConfigSource
    reporter: Reporter
    search: SearchState | None  # None if nothing decides which configurations go on
