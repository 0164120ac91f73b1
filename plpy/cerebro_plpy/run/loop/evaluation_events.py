"""The events of evaluations: segments are evaluated, metrics computed, and best states retained."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.run.loop.recovery import fail_config
from cerebro_plpy.run.loop.run_objects import Run
from cerebro_plpy.run.loop.search import report_values
from cerebro_plpy.run.loop.step import Effect, Step
from cerebro_plpy.run.loop.stopping import stop_early
from cerebro_plpy.run.state import config_jobs
from cerebro_plpy.run.state.config_state import ConfigState, RetainedState, make_evaluations
from cerebro_plpy.run.workers.events import BestSaved, MetricsComputed, PartsEvaluated
from cerebro_plpy.run.workers.tasks import BestStateTask, MetricsTask
from cerebro_plpy.trainer_client import responses


def on_parts_evaluated(run: Run, event: PartsEvaluated) -> Iterator[Step]:
    """Add the sums of segments; compute the metrics when all segments are there."""
    state = run.state
    task = event.task
    key = task.mst_key
    batch = task.batch[: len(event.parts)]
    if not state.is_running(task.batch):
        return
    yield Step(
        changes=[
            partial(state.shorten, task.batch, len(batch)),
            partial(state.add_parts, key, task.epoch, event.parts),
        ]
    )
    config = state.configs[key]
    if not config.parts[task.epoch].keys() >= state.plan.segments_of(key):
        yield Step(changes=[partial(state.complete, batch)])
        return
    # The visits are completed when their metrics are logged: a resumed run needs the metrics, or
    # makes the visits again.
    metrics_task = MetricsTask(batch, config_jobs.add_up(config, task.epoch))
    yield Step(
        changes=[partial(state.forget_parts, key, task.epoch)],
        tasks=[partial(run.pool.start_follow_up, event.worker, metrics_task)],
    )


def on_metrics_computed(run: Run, event: MetricsComputed) -> Iterator[Step]:
    """Log the metrics of an epoch; retain the state if it is the best."""
    state = run.state
    task = event.task
    if not state.is_running(task.batch):
        return
    config = state.configs[task.mst_key]
    evaluations = make_evaluations(task.mst_key, task.epoch, event.metrics, elapsed=0.0)
    names = [name for name, _ in config.config.metrics]
    statement = run.log.log_metrics(evaluations, names)
    step = take_metrics(run, config, task.epoch, event.metrics)
    yield step._replace(log=[statement, *step.log])
    if task.mst_key not in state.progress:
        return
    step = follow_metrics(run, config, event.worker)
    yield step._replace(changes=[partial(state.complete, task.batch), *step.changes])


def follow_metrics(run: Run, config: ConfigState, worker: Worker | None) -> Step:
    """Return the step that follows new metrics: retain the state if it is the best.

    Otherwise EarlyStopping may stop the configuration.

    Args:
        worker: the worker that retains the state; None for any.
    """
    epoch = config.find_epoch_to_retain()
    if epoch is None:
        return stop_early(run, config)
    task = BestStateTask(config_jobs.newest_as_best(config, epoch))
    start = partial(run.pool.queue_follow_up, task)
    if worker:
        start = partial(run.pool.start_follow_up, worker, task)
    return Step(changes=[partial(run.state.start_saving, config.mst_key)], tasks=[start])


def take_metrics(run: Run, config: ConfigState, epoch: int, metrics: Mapping[str, Any]) -> Step:
    """Return the step that takes over metrics; it fails a configuration whose loss diverged."""
    key = config.mst_key
    diverged = responses.find_diverged(metrics)
    if diverged:
        loss = metrics[diverged]["loss"]
        return fail_config(
            run, key, f"the loss over the {diverged} set was {loss} after epoch {epoch}"
        )
    elapsed = time.monotonic() - run.state.limits.began
    evaluations = make_evaluations(key, epoch, metrics, elapsed)
    changes: list[Effect] = [partial(run.state.add_evaluations, key, evaluations)]
    return Step(changes=[*changes, *report_values(run, key, evaluations)])


def on_best_saved(run: Run, event: BestSaved) -> Iterator[Step]:
    """Note that a best state is retained."""
    state = run.state
    key = event.task.mst_key
    if key not in state.progress:
        return
    best = RetainedState(event.task.best.epoch, event.stored)
    yield Step(changes=[partial(state.retain_best, key, best)])
    yield stop_early(run, state.configs[key])
