"""The messages of a run to its caller, in MADlib's words."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.run_spec import Ranking
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.run.log.step_log import DecisionRow
from cerebro_plpy.run.request.ranking import ranked_value
from cerebro_plpy.run.request.run_request import Evaluation, FitRequest
from cerebro_plpy.run.state.run_state import RunState

TITLES = {"training": "Training", "validation": "Validation"}


class RankedValue(NamedTuple):
    """A value of the metric that ranks, with the loss after the same epoch."""

    mst_key: int
    value: float
    loss: float


def find_best(
    evaluations: Sequence[Evaluation], configs: Iterable[Config], ranking: Ranking
) -> tuple[int, float] | None:
    """Return the configuration with the best value after any epoch; NaN never wins."""
    configs_by_key = {config.mst_key: config for config in configs}
    values = [
        RankedValue(
            evaluation.mst_key,
            ranked_value(evaluation, configs_by_key[evaluation.mst_key], ranking),
            evaluation.loss,
        )
        for evaluation in evaluations
        if evaluation.mst_key in configs_by_key and evaluation.dataset == ranking.dataset
    ]
    return choose_best(values, ranking)


def describe_work(state: RunState, remaining_samples: int) -> str:
    """Return how many configurations are done, how many failed, and the best one so far.

    Configurations that the budget ended before their first visit are not done.

    Args:
        remaining_samples: number of configurations that a search may still add.
    """
    total = len(state.configs) + remaining_samples
    done = sum(
        progress.finished and state.configs[key].visits > 0
        for key, progress in state.progress.items()
    )
    parts = [f"{done} of {count_nouns(total, 'configuration')} done"]
    if state.failed:
        parts.append(f"{len(state.failed)} failed")
    configs = [progress.config for progress in state.configs.values()]
    of_all_rows = [config for config in configs if config.group is None]
    best = find_best(state.evaluations, of_all_rows, state.request.spec.ranking)
    if best is not None:
        mst_key, value = best
        name = state.configs[mst_key].config.template or f"mst_key {mst_key}"
        parts.append(f"best {value:.4g} {state.request.spec.ranking.metric} ({name})")
    return ", ".join(parts)


def choose_best(values: Iterable[RankedValue], ranking: Ranking) -> tuple[int, float] | None:
    """Return the best value with its mst_key; the loss decides between equal values.

    NaN never wins.
    """
    sign = -1.0 if ranking.descending else 1.0
    numbers = [value for value in values if not math.isnan(value.value)]

    def make_key(value: RankedValue) -> tuple[float, bool, float, int]:
        return sign * value.value, math.isnan(value.loss), value.loss, value.mst_key

    best = min(numbers, key=make_key, default=None)
    return best and (best.mst_key, best.value)


def describe_start(run_id: int, request: FitRequest) -> str:
    """Return the message at the start of a run, with the query that shows its progress."""
    end = " It is removed from the log at its end." if request.is_quiet else ""
    amounts = [count_nouns(len(request.configs), "configuration")]
    if request.spec.train is None:
        amounts.append(count_nouns(len(request.source.segments), "segment"))
        amounts.append(count_nouns(request.spec.epochs, "iteration"))
    else:
        amounts.append(count_nouns(request.spec.epochs, "epoch"))
    return (
        f"run {run_id}: {', '.join(amounts)}; SELECT * FROM cerebro.progress WHERE "
        f"run_id = {run_id};{end}"
    )


def describe_decisions(rows: Iterable[DecisionRow]) -> str:
    """Return the message about decisions that were made at once."""
    return "\n".join(f"mst_key={row.mst_key}: {row.action} ({row.reason})" for row in rows)


def describe_epoch(
    epoch: int,
    seconds: float,
    evaluations: Sequence[Evaluation],
    losses: Mapping[int, float],
    request: FitRequest,
) -> str:
    """Return the message at the end of an epoch.

    Args:
        evaluations: all so far; those of later epochs are left out.
        losses: mean training losses by mst_key, shown if nothing was evaluated.
    """
    evaluations = [evaluation for evaluation in evaluations if evaluation.epoch <= epoch]
    lines = [f"Time for training in iteration {epoch}: {format_seconds(seconds)} sec"]
    for dataset, title in TITLES.items():
        measured = [
            evaluation
            for evaluation in evaluations
            if evaluation.dataset == dataset and evaluation.epoch == epoch
        ]
        if measured:
            lines.append(f"{title} set after iteration {epoch}:")
        for evaluation in measured:
            metric = format_metric(evaluation)
            lines.append(f"mst_key={evaluation.mst_key}: metric={metric}, loss={evaluation.loss}")
    if len(lines) == 1:
        lines.append(f"Mean loss while training in iteration {epoch}:")
        lines += [f"mst_key={key}: loss={loss}" for key, loss in sorted(losses.items())]
    return "\n".join([*lines, *describe_best(evaluations, request)])


def describe_best(evaluations: Sequence[Evaluation], request: FitRequest) -> list[str]:
    """Return the line about the best configuration so far, if there is one.

    From epoch to epoch its value gets never worse.
    """
    best = find_best(evaluations, request.configs, request.spec.ranking)
    if best is None:
        return []
    mst_key, value = best
    ranking = request.spec.ranking
    return [f"Best so far: mst_key={mst_key}, {ranking.dataset} {ranking.metric}={value}"]


def describe_stopped(
    limit: str, stopped: Collection[int], evaluations: Sequence[Evaluation], request: FitRequest
) -> str:
    """Return the message at the end of a run that ended before all was trained.

    Args:
        limit: the limit that ended it.
    """
    total = count_nouns(len(request.configs), "configuration")
    text = f"{limit}: {len(stopped)} of {total} ended early"
    return "\n".join([text, *describe_best(evaluations, request)])


def describe_all_failed(count: int) -> str:
    """Return the error of a run whose configurations have all failed.

    >>> describe_all_failed(1), describe_all_failed(3)
    ('the only configuration failed', 'all 3 configurations failed')
    """
    if count == 1:
        return "the only configuration failed"
    return f"all {count_nouns(count, 'configuration')} failed"


def describe_untrained(mst_keys: Sequence[int]) -> str:
    """Return the message about configurations that users have added, and that were not trained."""
    keys = ", ".join(map(str, mst_keys))
    return (
        f"mst_key {keys} was added while the run trained, and the run ended before it could be "
        "trained: cerebro.config has the reason. Give the run more time, or add it earlier."
    )


def format_seconds(seconds: float) -> str:
    """Return seconds with at least three digits that say something.

    >>> format_seconds(12.3456), format_seconds(0.0123456), format_seconds(0.0000123456)
    ('12.346', '0.0123', '0.0000123')
    """
    if seconds >= 0.1 or seconds <= 0:
        return f"{seconds:.3f}"
    return f"{seconds:.{2 - math.floor(math.log10(seconds))}f}"


def format_metric(evaluation: Evaluation) -> str:
    """Return the first metric as text; None if the configuration has none."""
    return str(evaluation.metrics[0] if evaluation.metrics else None)
