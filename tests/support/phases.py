"""The phase of a configuration, derived from the state of its run, and its transitions."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from cerebro_plpy.run.state.run_state import RunState


class Phase(Enum):
    """What a configuration does or waits for."""

    WAITING_FOR_PARENT = "a clone of a replay whose parent's state is missing"
    READY = "may start visits"
    TRAINING = "a worker trains it"
    STORING = "its trained state is to be stored"
    EVALUATING = "workers evaluate it"
    SAVING_BEST = "its best state is being copied"
    AT_LIMIT = "at its last epoch so far; a rule decides"
    HELD = "paused by a user"
    STOPPED = "ended before its last epoch"
    COMPLETED = "trained to its last epoch"
    FAILED = "given up"


ENDS = frozenset({Phase.AT_LIMIT, Phase.HELD, Phase.STOPPED, Phase.COMPLETED, Phase.FAILED})
TRANSITIONS: Mapping[Phase, frozenset[Phase]] = {
    Phase.WAITING_FOR_PARENT: frozenset({Phase.READY, Phase.FAILED}),
    Phase.READY: ENDS | {Phase.TRAINING, Phase.EVALUATING},
    Phase.TRAINING: ENDS | {Phase.STORING, Phase.READY},
    Phase.STORING: ENDS | {Phase.READY, Phase.TRAINING, Phase.EVALUATING, Phase.SAVING_BEST},
    Phase.EVALUATING: ENDS | {Phase.READY, Phase.SAVING_BEST},
    Phase.SAVING_BEST: ENDS | {Phase.READY},
    Phase.AT_LIMIT: frozenset(
        {
            Phase.READY,
            Phase.EVALUATING,
            Phase.HELD,
            Phase.STOPPED,
            Phase.COMPLETED,
            Phase.FAILED,
        }
    ),
    Phase.HELD: frozenset({Phase.READY, Phase.EVALUATING, Phase.STOPPED, Phase.FAILED}),
    Phase.STOPPED: frozenset({Phase.READY}),
    Phase.COMPLETED: frozenset({Phase.READY}),
    Phase.FAILED: frozenset(),
}
"""The phases that may follow each phase, in one step of the loop."""


def find_phase(state: RunState, mst_key: int) -> Phase:
    """Return the phase of a configuration."""
    if mst_key in state.failed:
        return Phase.FAILED
    if mst_key in state.waiting:
        return Phase.WAITING_FOR_PARENT
    if mst_key in state.saving_best:
        return Phase.SAVING_BEST
    config = state.configs[mst_key]
    progress = state.progress[mst_key]
    if progress.finished:
        return Phase.COMPLETED if config.is_completed else Phase.STOPPED
    if config.unstored and not state.is_ahead(mst_key):
        return Phase.STORING
    if progress.running_segments:
        return Phase.EVALUATING if progress.kind == "evaluate" else Phase.TRAINING
    if progress.awaits_decision:
        return Phase.HELD if progress.paused else Phase.AT_LIMIT
    return Phase.READY
