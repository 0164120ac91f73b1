"""The ends of configurations that no rule decides: EarlyStopping, max_runtime, and the budget.

The budget of a run ends it by the clock or by cost. A replay ends configurations where the log says
that the budget ended them. A configuration whose training is cut short still has a model if it was
trained on one segment.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from cerebro_plpy.errors import ConfigFailure, QueryCanceled
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.run.loop import messages
from cerebro_plpy.run.loop.run_objects import Run
from cerebro_plpy.run.loop.search import close_search, end_by_cost, report_end
from cerebro_plpy.run.loop.step import Step
from cerebro_plpy.run.request.early_stopping import compute_stopping_status, describe_stop
from cerebro_plpy.run.request.run_request import BUDGET_OVER
from cerebro_plpy.run.state.config_state import ConfigState
from cerebro_plpy.run.state.limits import TIME_OVER
from cerebro_plpy.run.state.run_state import RunState
from cerebro_plpy.scheduling.schedule import schedule
from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress
from cerebro_plpy.scheduling.schedule.scheduling_policies import count_remaining_visits

MIN_HINT_SECONDS = 60
HINT_FACTOR = 4
"""The budget that a hint suggests is so many times that of the call."""


class BudgetOver(QueryCanceled):
    """A visit was still running when the budget of its run was over."""


def stop_early(run: Run, config: ConfigState) -> Step:
    """Return the step that stops a configuration if EarlyStopping says so."""
    key = config.mst_key
    status = compute_stopping_status(config.config, config.request, config.evaluations)
    if status.stopped_epoch in (None, config.epochs) or key in run.state.stopped:
        return Step()
    if key in run.state.continued or config.is_at_recorded_end:
        return Step()
    reason = describe_stop(config.config, config.request, status)
    return Step(
        log=[run.log.log_config_stopped(key, reason)],
        changes=[
            partial(run.state.stop_early, key, status.stopped_epoch),
            *report_end(run, key, reason),
        ],
    )


def stop_in_time(run: Run) -> Iterator[Step]:
    """When max_runtime has passed, let the running visits be the last ones."""
    limits = run.state.limits
    if limits.is_time_over:
        yield stop_lost(run)
        return
    if time.monotonic() < limits.max_runtime:
        return
    yield Step(changes=[partial(limits.note_time_over)])
    yield close_search(run)
    plan = run.state.plan
    stopped = {key: schedule.stop(plan, progress) for key, progress in run.state.progress.items()}
    shortened = [
        key
        for key, progress in stopped.items()
        if count_remaining_visits(plan, progress).train
        < count_remaining_visits(plan, run.state.progress[key]).train
    ]
    yield Step(
        log=[run.log.log_config_stopped(key, TIME_OVER) for key in shortened],
        changes=[
            *(partial(run.state.set_progress, key, progress) for key, progress in stopped.items()),
            partial(run.state.limit, shortened),
        ],
    )


def stop_lost(run: Run) -> Step:
    """Return the step that logs configurations whose last visits were lost with their trainers.

    A visit that was running when max_runtime passed is not made again if its state is lost too.
    """
    state = run.state
    lost = [
        key
        for key, progress in state.progress.items()
        if progress.finished
        and progress.max_epoch is None
        and not state.configs[key].is_completed
        and key not in state.stopped
        and key not in state.stopped_early
    ]
    if not lost:
        return Step()
    return Step(
        log=[run.log.log_config_stopped(key, TIME_OVER) for key in lost],
        changes=[partial(state.limit, lost)],
    )


def keep_to_budget(run: Run, *, has_state: bool) -> Iterator[Step]:
    """When the budget is over, take the configurations to their ends.

    A best state is retained nevertheless: the log has the metrics that make it the best.

    Args:
        has_state: a configuration has a state; until then the run has longer.
    """
    state = run.state
    cost_limits = run.request.cost_limits
    if cost_limits and not state.limits.exceeded:
        exceeded = cost_limits.find_exceeded(run.context.read_usage())
        if exceeded:
            yield Step(changes=[partial(state.limits.exceed, exceeded)])
    yield return_early(run)
    if state.limits.is_ending:
        yield close_search(run)
    if not (state.limits.has_budget or run.request.replay.endings):
        return
    shortened = {}
    for key, progress in state.progress.items():
        shorter = shorten(state, key, progress, has_state=has_state)
        if shorter is not progress and shorter != progress:
            shortened[key] = shorter
    if not shortened:
        return
    limited = [
        state.progress[key]
        for key, shorter in shortened.items()
        if key not in state.stopped
        and count_remaining_visits(state.plan, shorter)
        != count_remaining_visits(state.plan, state.progress[key])
    ]
    step = log_ends(run, limited, state.limits.end_reason)
    progress_changes = [
        partial(state.set_progress, key, shorter) for key, shorter in shortened.items()
    ]
    yield step._replace(changes=[*step.changes, *progress_changes])


def return_early(run: Run) -> Step:
    """Return the step that ends the run if nothing better is expected in the rest of its budget."""
    limits = run.state.limits
    if limits.is_ending:
        return Step()
    watch = limits.return_watch
    progress = run.state.progress
    keys = watch.starts | progress.keys()
    ended_keys = {key for key in keys if key not in progress or progress[key].finished}
    reason = watch.find_reason(time.monotonic(), ended_keys)
    if reason is None:
        return Step()
    text = f"stopped after {run.context.describe_time()}: {reason}"
    return Step(changes=[partial(watch.end, reason)], notes=[partial(run.context.notify, text)])


def shorten(
    state: RunState, mst_key: int, progress: ConfigProgress, *, has_state: bool
) -> ConfigProgress:
    """Return what a configuration has still to do by the budget; its progress if that is all."""
    config = state.configs[mst_key]
    if config.is_at_recorded_end:
        if config.ends_unevaluated:
            return schedule.end(progress)
        return schedule.expire(
            state.plan, progress, has_retained_state=False, evaluated=config.is_evaluated
        )
    limits = state.limits
    if not limits.has_budget:
        return progress
    if limits.is_over(has_state=has_state) or was_evaluated_mid_epoch(config, progress):
        return schedule.end(progress)
    is_awaited = limits.awaits_state and not has_state and mst_key == find_first(state)
    if is_awaited or not limits.is_ending:
        return progress
    return schedule.expire(
        state.plan,
        progress,
        has_retained_state=config.best is not None,
        evaluated=config.is_evaluated,
    )


def find_first(state: RunState) -> int | None:
    """Return the configuration that is to have a state if no other one has; it begins even late."""
    unfinished = (key for key, progress in state.progress.items() if not progress.finished)
    return min(unfinished, default=None)


def was_evaluated_mid_epoch(config: ConfigState, progress: ConfigProgress) -> bool:
    """Return True if the budget ended a configuration before its run was interrupted.

    Only a budget that is over evaluates the middle of an epoch.
    """
    is_mid_epoch = progress.kind == "train" and progress.epoch == config.epoch
    return config.is_evaluated and is_mid_epoch


def cancel_at_end(run: Run, *, has_state: bool) -> Step:
    """Return the step that cancels all tasks once the budget is over."""
    limits = run.state.limits
    if limits.is_cancelled or not limits.is_over(has_state=has_state):
        return Step()
    return Step(
        changes=[partial(limits.note_cancelled)],
        tasks=[partial(run.pool.cancel, BudgetOver(BUDGET_OVER))],
    )


def close(run: Run) -> Iterator[Step]:
    """Close the run: log why configurations have ended that a rule was still to decide on."""
    yield close_search(run)
    state = run.state
    undecided = sorted(
        state.undecided & state.progress.keys() - state.stopped - state.stopped_early.keys()
    )
    limited = [state.progress[key] for key in undecided if not state.configs[key].is_completed]
    reason = TIME_OVER if state.limits.is_time_over else state.limits.end_reason
    yield log_ends(run, limited, reason)
    untrained = state.untrained_requests
    if untrained:
        text = messages.describe_untrained(untrained)
        yield Step(notes=[partial(run.context.notify, text)])


def log_ends(run: Run, limited: Sequence[ConfigProgress], reason: str) -> Step:
    """Return the step that logs configurations that a limit ends.

    If it is the cost limit, their ends are decisions, which a replay reads.
    """
    if not limited:
        return Step()
    keys = [progress.mst_key for progress in limited]
    change = partial(run.state.limit, keys)
    if run.state.limits.exceeded:
        step = end_by_cost(run, limited)
        return step._replace(changes=[*step.changes, change])
    return Step(log=[run.log.log_config_stopped(key, reason) for key in keys], changes=[change])


def check_trained(run: Run) -> None:
    """Check that a run with a budget has a state to make a model of.

    Raises:
        ConfigFailure: it has none.
    """
    state = run.state
    if not state.limits.has_budget or state.has_model_state:
        return
    over = BUDGET_OVER
    train = run.request.spec.train
    hint = "Give it a longer budget, or fewer rows."
    if train is not None:
        seconds = max(MIN_HINT_SECONDS, HINT_FACTOR * train.budget)
        hint = (
            f"Networks are compiled first. A call with budget => '{seconds:.0f} seconds' has more "
            "time."
        )
    exceeded = state.limits.exceeded
    if exceeded:
        over = f"{BUDGET_OVER} ({exceeded.limit}: {exceeded.reason})"
        hint = f"Give it a larger {exceeded.limit}, or fewer rows."
    raise ConfigFailure(
        f"{over} before any configuration was trained on one of "
        f"{count_nouns(len(state.plan.segments), 'segment')}",
        detail=describe_failures(state.failed) or None,
        hint=hint,
    )


def describe_failures(failed: Mapping[int, str]) -> str:
    """Return the reasons of failures in one line."""
    return "; ".join(f"mst_key={key}: {reason}" for key, reason in sorted(failed.items()))
