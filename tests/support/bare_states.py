"""The state of a run without a request: a plan, and where configurations stand."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

from cerebro_plpy.run.state.run_state import RunState
from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress, Plan


def bare_state(plan: Plan, progress: Mapping[int, ConfigProgress]) -> RunState:
    """Return the state of a run that has this plan and nothing else."""
    request = SimpleNamespace(
        backends={},
        warm_states={},
        configs=(),
        deadline=None,
        cost_limits=None,
        max_runtime=None,
    )
    state = RunState(request, 1, plan, {})  # type: ignore[arg-type]
    state.progress.update(progress)
    return state
