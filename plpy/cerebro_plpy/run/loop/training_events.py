"""The start of visits, and the events of visits that train: they are made, and then stored."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial

from cerebro_plpy.database.sessions.async_dispatcher import Statement
from cerebro_plpy.platform.visit_protocol import BatchResult, Worker
from cerebro_plpy.records import replace
from cerebro_plpy.run.loop.evaluation_events import take_metrics
from cerebro_plpy.run.loop.recovery import abandon_fused, fail_config
from cerebro_plpy.run.loop.run_objects import Run
from cerebro_plpy.run.loop.step import Effect, Step
from cerebro_plpy.run.loop.stopping import stop_early
from cerebro_plpy.run.state import config_jobs
from cerebro_plpy.run.state.config_state import ConfigState, RetainedState
from cerebro_plpy.run.workers.events import FusedStored, StatesStored, VisitsBegun, VisitsTrained
from cerebro_plpy.run.workers.tasks import FusedTask, VisitTask
from cerebro_plpy.scheduling.schedule.schedule import VisitBatch


def start_visits(run: Run) -> Iterator[Step]:
    """Start the visits that idle workers make next, on at most as many workers as requested."""
    state = run.state
    pool = run.pool
    capacity = run.request.workers - pool.busy_count
    batches = run.chooser.choose(pool.idle, pool.unstored, len(pool.numbers))
    chosen_keys = {batch[0].mst_key for _, batch in batches}
    for number, batch in batches:
        config = state.configs[batch[0].mst_key]
        worker = pool.get_worker(number, config.framework)
        fused = run.fusion.choose(worker, batch, chosen_keys, len(pool.numbers))
        if fused:
            # A worker stores its last state before it makes fused visits.
            if capacity > 0 and not pool.is_busy(number):
                yield start_fused(run, worker, fused)
                capacity -= 1
            continue
        if capacity <= 0 and not pool.is_busy(number):
            continue
        if pool.may_start(worker, batch, list(config_jobs.list_datasets(config, batch))):
            capacity -= not pool.is_busy(number)
            yield start_batch(run, worker, batch)


def start_batch(run: Run, worker: Worker, batch: VisitBatch) -> Step:
    """Return the step that starts a batch on a worker."""
    key = batch[0].mst_key
    config = run.state.configs[key]
    # Copies that are averaged do not start from one another's states.
    unstored = run.pool.find_unstored(key) if config.unstored else None
    return Step(
        log=log_first_visit(run, config, batch),
        changes=[partial(run.state.start_visits, batch, unstored)],
        tasks=[partial(give_batch, run, worker, batch)],
    )


def log_first_visit(run: Run, config: ConfigState, batch: VisitBatch) -> list[Statement]:
    """Return the statement that logs the first attempt at the first visit of a configuration."""
    is_first = not config.visits and config.attempt_key(batch) not in config.attempts
    if not is_first or batch[0].kind != "train":
        return []
    return [run.log.log_config_running(config.mst_key)]


def give_batch(run: Run, worker: Worker, batch: VisitBatch) -> None:
    """Give a worker a batch that has begun."""
    config = run.state.configs[batch[0].mst_key]
    if batch[0].kind == "evaluate":
        run.pool.evaluate(worker, batch, config_jobs.build_evaluation(config, batch))
    else:
        run.pool.train(worker, build_visits(run, worker, batch))


def build_visits(run: Run, worker: Worker, batch: VisitBatch) -> VisitTask:
    """Return the task of a batch that has begun."""
    config = run.state.configs[batch[0].mst_key]
    timings = run.stats.timings_of(config, worker)
    rows = run.chooser.remaining_rows(config, len(run.pool.numbers))
    grow_until = find_growth_end(run, config)
    visits = config_jobs.build_visits(config, batch, rows, timings, grow_until)
    return VisitTask(batch, time.monotonic(), visits)


def find_growth_end(run: Run, config: ConfigState) -> float | None:
    """Return when trees of a configuration end to grow; see `Limits.find_growth_end`.

    A run that trains configurations again grows as many trees as before, or none.
    """
    if not config.learns_from_whole_epochs:
        return None
    train = run.request.spec.train
    if train is not None and train.refit_of is not None:
        return None
    return run.state.limits.find_growth_end()


def start_fused(run: Run, worker: Worker, batches: Sequence[VisitBatch]) -> Step:
    """Return the step that starts batches of several configurations in one job."""
    log: list[Statement] = []
    changes: list[Effect] = [partial(run.fusion.note_tried, worker, batches)]
    for batch in batches:
        key = batch[0].mst_key
        log += log_first_visit(run, run.state.configs[key], batch)
        changes += [
            partial(run.state.start_visits, batch),
            partial(run.state.assign_worker, key, worker.number),
        ]
    return Step(log, changes, tasks=[partial(give_fused, run, worker, batches)])


def give_fused(run: Run, worker: Worker, batches: Sequence[VisitBatch]) -> None:
    """Give a worker batches of several configurations that have begun."""
    tasks = [build_visits(run, worker, batch) for batch in batches]
    run.pool.train_fused(worker, FusedTask(tasks))


def on_visits_begun(run: Run, event: VisitsBegun) -> Iterator[Step]:
    """Store the state of the visits before, while the trainer makes those that have begun."""
    yield Step(tasks=[partial(run.pool.store_during, event.worker, event.task)])


def on_visits_trained(run: Run, event: VisitsTrained) -> Iterator[Step]:
    """Let the worker store the state that visits have left."""
    state = run.state
    task = event.task
    batch = task.batch[: event.result.segment_count]
    config = state.configs[task.mst_key]
    result = event.result
    yield record_result(run, event.worker, config, result)
    changes: list[Effect] = [partial(state.shorten, task.batch, len(batch))]
    if not state.plan.is_averaging:
        changes.append(partial(state.hold_unstored, task.mst_key, len(result.training)))
    yield Step(changes=changes)
    is_evaluated_next = bool(result.evaluations)
    if is_evaluated_next:
        result = result._replace(best=config_jobs.find_best(config, result))
    elif state.is_running(batch):
        is_evaluated_next = state.progress_after(batch).kind == "evaluate"
    yield Step(
        tasks=[
            partial(
                run.pool.hold_states,
                event.worker,
                replace(task, batch=batch),
                result,
                is_evaluated_next=is_evaluated_next,
            )
        ]
    )


def record_result(run: Run, worker: Worker, config: ConfigState, result: BatchResult) -> Step:
    """Return the step that records the times of visits, and warnings about them."""
    key = config.timing_key(worker)
    log: list[Statement] = []
    for _, measured in result.training:
        if measured["timings"]:
            log += run.log.log_timings(key, measured["timings"])
    notes = [partial(run.context.notify, text) for text in run.stats.take_notes(config, result)]
    return Step(log=log, changes=[partial(run.stats.add, worker, config, result)], notes=notes)


def on_states_stored(run: Run, event: StatesStored) -> Iterator[Step]:
    """Take over visits that the log has, also if their configuration no longer waits for them."""
    state = run.state
    task = event.task
    config = state.configs[task.mst_key]
    training_seconds = sum(result["seconds"] for result in task.result.results)
    hop_seconds = task.worker_seconds(time.monotonic()) - training_seconds
    best = None
    if task.result.best:
        stored = task.result.best.stored._replace(base=event.results[-1].base_table)
        best = RetainedState(task.result.best.epoch, stored)
    yield Step(
        changes=[
            partial(run.stats.add_hop, hop_seconds),
            partial(state.store_visits, task.batch, event.results, best),
        ]
    )
    evaluations = task.result.evaluations
    for visit, result in evaluations:
        if task.mst_key in state.progress:
            yield take_metrics(run, config, visit.epoch, result["metrics"])
    yield Step(changes=[partial(state.complete_stored, task.batch)])
    yield from follow_visits(run, config)
    if evaluations and task.mst_key in state.progress:
        yield stop_early(run, config)
    if task.next_task:
        yield Step(tasks=[partial(run.pool.finish, event.worker, task.next_task)])


def follow_visits(run: Run, config: ConfigState) -> Iterator[Step]:
    """Start clones from the stored state of a configuration, and log if it is completed."""
    yield from run.sources.start_clones(config)
    if config.is_completed and config.mst_key not in run.state.stopped:
        yield Step(log=[run.log.log_config_completed(config.mst_key)])


def on_fused_stored(run: Run, event: FusedStored) -> Iterator[Step]:
    """Take over the stored visits of several configurations."""
    state = run.state
    training_seconds = 0.0
    for task, fused in zip(event.task.tasks, event.results):
        config = state.configs[task.mst_key]
        if fused.error:
            continue
        yield record_result(run, event.worker, config, fused.batch)
        training_seconds += sum(result.seconds for result in fused.results)
        yield Step(
            changes=[
                partial(state.store_visits, task.batch, fused.results),
                partial(state.complete_stored, task.batch),
            ]
        )
    if event.results:
        seconds = time.monotonic() - event.task.tasks[0].started_at - training_seconds
        hop_seconds = seconds / len(event.results)
        yield Step(changes=[partial(run.stats.add_hop, hop_seconds)])
    else:
        yield abandon_fused(run, event.worker, event.task, None)
    for task, fused in zip(event.task.tasks, event.results):
        if fused.error and state.is_running(task.batch):
            yield fail_config(run, task.mst_key, fused.error)
    for task in event.task.tasks:
        yield from follow_visits(run, state.configs[task.mst_key])
