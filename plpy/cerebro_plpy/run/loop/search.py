"""The search of a run: its rule decides which configurations go on, and everything is logged.

All decisions that follow from one result are one step, so a resumed run reads complete steps.
Without a search nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.database.sessions.async_dispatcher import Statement
from cerebro_plpy.run.log.step_log import DecisionRow
from cerebro_plpy.run.loop.run_objects import Run
from cerebro_plpy.run.loop.step import Effect, Step
from cerebro_plpy.run.request.run_request import Evaluation, FitRequest
from cerebro_plpy.run.state.run_state import RunState
from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress
from cerebro_plpy.scheduling.search.grouped_search import trials_of_group
from cerebro_plpy.scheduling.search.promotion_rules import Decision
from cerebro_plpy.scheduling.search.search_state import DecisionBatch, SearchState


def decide(run: Run) -> Iterator[Step]:
    """Ask the rule about new results, and end configurations that rest when nothing is left."""
    state = run.state
    if run.search and not state.is_search_closed:
        yield from ask_rule(run, run.search)
    yield release_states(run)
    if state.is_all_paused or state.awaits_lost_parent:
        return
    if all(progress.finished or progress.awaits_decision for progress in state.progress.values()):
        yield close_search(run)


def fill_workers(run: Run, idle: int) -> Iterator[Step]:
    """Let more configurations begin or go on if workers are idle."""
    if idle > 0 and run.search and not run.state.is_search_closed:
        run.search.fill_workers(idle)
        yield from ask_rule(run, run.search)


def ask_rule(run: Run, search: SearchState) -> Iterator[Step]:
    """Ask the rule about each new result, and do what it decides."""
    for batch in search.decide():
        if batch.sample_count:
            yield from sample_configs(run, search, batch)
        else:
            yield apply_decisions(run, search, batch)
            yield drop_losing_states(run, search)


def apply_decisions(run: Run, search: SearchState, batch: DecisionBatch) -> Step:
    """Return the step of the decisions that follow from one result."""
    clones = [
        run.sources.derive(decision) for decision in batch.decisions if decision.action == "clone"
    ]
    rows = number_decisions(run, batch)
    changes: list[Effect] = [change for clone in clones for change in clone.changes]
    changes.append(partial(run.state.count_decisions, len(rows)))
    for decision in batch.decisions:
        changes += follow_decision(run, search, decision)
    return Step(
        log=[
            *(statement for clone in clones for statement in clone.log),
            *run.log.log_decisions(search_name(run.request), rows),
        ],
        changes=changes,
        notes=report_decisions(run, rows),
    )


def follow_decision(run: Run, search: SearchState, decision: Decision) -> Iterator[Effect]:
    """Yield the changes that follow from the decision of a rule."""
    state = run.state
    key = decision.mst_key
    is_new = decision.action == "clone"
    inherited = search.trials[key].inherited_epochs
    if inherited and (is_new or key in state.configs):
        yield partial(state.set_epochs, key, run.request.spec.epochs - inherited)
    if key not in state.progress and not is_new:
        return  # it has failed
    if decision.action == "stop":
        yield partial(state.stop, key)
    elif decision.action == "rest":
        yield partial(state.free_worker, key)
    else:
        yield partial(state.set_max_epoch, key, decision.max_epoch)


def sample_configs(run: Run, search: SearchState, batch: DecisionBatch) -> Iterator[Step]:
    """Add configurations that the sampler suggests; if it has fewer, it is not asked again."""
    trials = trials_of_group(search.trials, batch.group)
    sampled = run.sources.sample(batch.sample_count, trials, batch.group)
    log: Sequence[Statement] = ()
    changes: list[Effect] = []
    if sampled.configs:
        log = sampled.log
        changes += [*sampled.changes, *enter_search(run, sampled.configs, max_epoch=0)]
    if len(sampled.configs) < batch.sample_count:
        changes.append(partial(search.stop_sampling, batch.group))
    yield Step(log=log, changes=changes, notes=sampled.notes)


def enter_search(run: Run, configs: Sequence[Config], max_epoch: int) -> Iterator[Effect]:
    """Yield the changes that let added configurations train until the end of an epoch."""
    for config in configs:
        yield partial(run.state.set_max_epoch, config.mst_key, max_epoch)
        if run.search:
            yield partial(run.search.add_config, config.mst_key, config.group)


def drop_losing_states(run: Run, search: SearchState) -> Step:
    """Return the step that ends configurations which will hardly go on, beyond `live_states`."""
    request = run.request.search
    if request is None or request.live_states is None:
        return Step()
    progress = run.state.progress
    losers = [
        key
        for key in search.rule.list_losers(search.trials)
        if key in progress and not progress[key].paused and not run.state.configs[key].released
    ]
    keys = losers[: max(0, len(losers) - request.live_states)]
    if not keys:
        return Step()
    reason = "its state is dropped for live_states"
    decisions = [Decision(key, "stop", search.trials[key].max_epoch, reason) for key in keys]
    rows = number_decisions(run, DecisionBatch(None, tuple(decisions)))
    return Step(
        log=run.log.log_decisions(search_name(run.request), rows),
        changes=[
            partial(run.state.count_decisions, len(rows)),
            *(partial(search.override, decision) for decision in decisions),
            partial(run.state.plan_release, keys),
        ],
    )


def release_states(run: Run) -> Step:
    """Return the step that drops states which are to go, once nobody stores or copies them."""
    state = run.state
    keys = [
        key
        for key in sorted(state.unreleased)
        if not state.configs[key].unstored and key not in state.saving_best
    ]
    if not keys:
        return Step()
    return Step(
        log=[run.log.log_released(keys)],
        changes=[partial(state.release, keys)],
        tasks=[partial(run.log.drop_released, keys)],
    )


def close_search(run: Run) -> Step:
    """Return the step that closes the search: configurations that rest have come to their end."""
    state = run.state
    undecided: list[int] = []
    if run.search:
        undecided = [key for key, trial in run.search.trials.items() if trial.is_running]
    resting = [key for key, progress in state.progress.items() if progress.awaits_decision]
    if state.is_search_closed and not resting:
        return Step()
    return Step(
        log=[run.log.log_search_end()] if state.decisions else [],  # else nothing could rest
        changes=[
            *(
                partial(state.end if state.configs[key].is_evaluated else state.stop, key)
                for key in resting
            ),
            partial(state.close_search, undecided),
        ],
    )


def end_by_cost(run: Run, positions: Sequence[ConfigProgress]) -> Step:
    """Return the step that ends configurations because the run has cost as much as it may."""
    exceeded = run.state.limits.exceeded
    assert exceeded is not None
    decisions = [
        Decision(progress.mst_key, "stop", run.state.max_epoch_of(progress), exceeded.reason)
        for progress in positions
    ]
    rows = number_decisions(run, DecisionBatch(None, tuple(decisions)))
    return Step(
        log=run.log.log_decisions(exceeded.limit, rows),
        changes=[partial(run.state.count_decisions, len(rows))],
        notes=report_decisions(run, rows),
    )


def report_end(run: Run, mst_key: int, reason: str, *, failed: bool = False) -> list[Effect]:
    """Return the change that lets the rule know that a configuration has ended."""
    if run.search is None:
        return []
    return [partial(run.search.report_end, mst_key, reason, failed=failed)]


def report_values(run: Run, mst_key: int, evaluations: Sequence[Evaluation]) -> Iterator[Effect]:
    """Yield the changes that let the rule know the values of a configuration."""
    if run.search is None:
        return
    for epoch, value in run.state.list_values(mst_key, evaluations).items():
        yield partial(run.search.report_value, mst_key, epoch, value)


def number_decisions(run: Run, batch: DecisionBatch) -> list[DecisionRow]:
    """Return the rows of the log for decisions that were made at once."""
    state = run.state
    return [
        make_row(state, number, batch.cause, decision)
        for number, decision in enumerate(batch.decisions, state.decisions + 1)
    ]


def make_row(state: RunState, number: int, cause: int | None, decision: Decision) -> DecisionRow:
    """Return the row of a decision, with what its configuration has done so far."""
    config = state.configs.get(decision.mst_key)  # None for a clone that is added now
    visits = 0
    epoch = 0
    reason = decision.reason
    if config is not None:
        visits = config.visits
        values = state.list_values(decision.mst_key, config.evaluations)
        epoch = max(values, default=0)
        if epoch:
            ranking = state.request.spec.ranking
            value = values[epoch] * state.ranking_sign
            reason = f"{ranking.metric} {value:.6g} after epoch {epoch}: {decision.reason}"
    return DecisionRow(
        number,
        decision.mst_key,
        decision.action,
        epoch,
        visits,
        decision.max_epoch,
        cause,
        reason,
    )


def report_decisions(run: Run, rows: Sequence[DecisionRow]) -> list[Effect]:
    """Return the note about decisions, if there are any."""
    if not rows:
        return []
    evaluations = (
        evaluation for config in run.state.configs.values() for evaluation in config.evaluations
    )
    return [partial(run.context.report_decisions, rows, evaluations)]


def search_name(request: FitRequest) -> str:
    """Return the name of the search; empty without one."""
    return request.search.name if request.search else ""
