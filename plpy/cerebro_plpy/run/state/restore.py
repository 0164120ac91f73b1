"""The state of a run when it begins or resumes, from its request and its log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.run.request.run_request import FitRequest, SearchRequest
from cerebro_plpy.run.state.config_state import ConfigHistory
from cerebro_plpy.run.state.run_state import RunState
from cerebro_plpy.run.workers.workers import choose_affinity
from cerebro_plpy.scheduling.schedule.placement import assign_segments
from cerebro_plpy.scheduling.schedule.schedule import Plan
from cerebro_plpy.scheduling.schedule.scheduling_policies import LONGEST
from cerebro_plpy.scheduling.search.search_state import Groups, SearchState


class RestoredRun(NamedTuple):
    """A run that can begin or resume."""

    state: RunState
    search: SearchState | None
    resting: Sequence[int]  # configurations that decisions let rest; the log is to say so again


def restore_run(
    request: FitRequest,
    run_id: int,
    workers: Sequence[Worker],
    history: Mapping[int, ConfigHistory],
) -> RestoredRun:
    """Return the state of a run. Nothing is written."""
    state = RunState(request, run_id, make_plan(request, workers), history)
    compilations = {key: config.compilation for key, config in state.configs.items()}
    state.residence = choose_affinity(request, workers, compilations)
    for key, start in request.replay.clone_starts.items():
        if key in state.configs and key not in state.warm_states:
            state.await_parent(key, start)
    decisions = [decision for batch in request.logged_decisions for decision in batch.decisions]
    state.decisions = len(decisions) + request.replans
    search = restore_search(state, request.search) if request.search else None
    restore_commands(state)
    latest = {decision.mst_key: decision for decision in decisions}
    for key, decision in latest.items():
        state.set_max_epoch(key, decision.max_epoch)
        if decision.action == "hold":
            state.pause_config(key)
    resting = [
        key for key, decision in latest.items() if decision.action in ("rest", "hold", "stop")
    ]
    return RestoredRun(state, search, resting)


def make_plan(request: FitRequest, workers: Sequence[Worker]) -> Plan:
    """Return the plan of a run's visits."""
    segments = request.source.segments
    return Plan(
        request.last_epoch,
        segments,
        assign_segments(segments, {worker.number for worker in workers}),
        frozenset(request.spec.list_evaluations_until(request.last_epoch)),
        request.spec.copy_segments,
        request.segment_subsets,
        request.whole_epoch_keys,
        is_segment_bound=not all(worker.is_replaceable for worker in workers),
    )


def restore_search(state: RunState, search: SearchRequest) -> SearchState:
    """Return the search of a run, with its logged decisions; let them limit the configurations."""
    request = state.request
    is_fixed = request.spec.schedule != LONGEST
    sample_count = 0
    group_counts: Mapping[str, int] = {}
    if search.sampling:
        sample_count = search.sampling.remaining
        group_counts = search.sampling.remaining_by_group
    restored = SearchState(
        search.rule,
        search.mst_keys,
        request.workers * 2 if is_fixed else request.workers + 1,
        fixed=is_fixed,
        sample_count=sample_count,
        groups=Groups(search.groups, group_counts),
    )
    values = {key: state.list_own_values(key) for key in search.mst_keys}
    restored.restore(request.logged_decisions, values)
    for key, max_epoch in restored.max_epochs.items():
        state.set_max_epoch(key, max_epoch)
        inherited = restored.trials[key].inherited_epochs
        if inherited and key in state.configs:
            state.set_epochs(key, request.spec.epochs - inherited)
    for key in search.mst_keys:
        if key not in state.configs:
            restored.report_end(key, "it has failed", failed=True)
    return restored


def restore_commands(state: RunState) -> None:
    """Apply the logged decisions of users again."""
    for batch in state.request.logged_decisions:
        for decision in batch.decisions:
            if batch.act == "continue_config":
                state.continued.add(decision.mst_key)
            if batch.act == "clone_config" and decision.mst_key in state.progress:
                state.note_request(decision.mst_key)
                state.prioritize(decision.mst_key)
            if batch.act == "set_epochs" and decision.mst_key in state.progress:
                state.set_epochs(decision.mst_key, decision.max_epoch)
