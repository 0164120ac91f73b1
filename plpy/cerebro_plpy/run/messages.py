"""What a run tells its user while it goes on, in the words that users of MADlib know; and how it ranks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from cerebro_plpy.configs.config import Config
from cerebro_plpy.configs.keras_names import LOSSES
from cerebro_plpy.configs.per_output import Measured
from cerebro_plpy.configs.spec import Ranking
from cerebro_plpy.run.request import Evaluation, FitRequest

LOSS = Measured("loss", "loss")
TITLES = {"training": "Training", "validation": "Validation"}


def larger_is_better(metric: str) -> bool:
    """Whether a larger value of a metric is the better one.

    >>> larger_is_better("accuracy"), larger_is_better("loss"), larger_is_better("mean_squared_error")
    (True, False, False)
    """
    smaller = metric in LOSSES or "loss" in metric or "error" in metric or metric.startswith("false_")
    return metric == "cosine_similarity" or not smaller


def ranking_of(configs: Sequence[Config], has_validation: bool) -> Ranking:
    """What ranks the configurations of a run: data set, metric, and whether larger is better.

    The first metric where all configurations have the same one, else the loss.
    """
    firsts = {config.metrics[0] if config.metrics else LOSS for config in configs}
    name, metric = firsts.pop() if len(firsts) == 1 else LOSS
    return Ranking("validation" if has_validation else "training", name, larger_is_better(metric))


def best(evaluations: Iterable[Evaluation], request: FitRequest) -> tuple[int, float] | None:
    """The mst_key with the best newest value of the metric that ranks, and that value; NaN never wins."""
    ranking = request.spec.ranking
    sign = -1.0 if ranking.descending else 1.0
    metrics = {config.mst_key: [m.logged for m in config.metrics] for config in request.configs}
    values = {
        item.mst_key: item.loss
        if ranking.metric == "loss"
        else item.metrics[metrics[item.mst_key].index(ranking.metric)]
        for item in evaluations
        if item.dataset == ranking.dataset
    }
    real = {key: value for key, value in values.items() if value == value}
    if not real:
        return None
    winner = min(real, key=lambda key: (sign * real[key], key))
    return winner, real[winner]


def epoch_lines(
    epoch: int, seconds: float, evaluations: Sequence[Evaluation], losses: Mapping[int, float], request: FitRequest
) -> str:
    """The message at the end of an epoch. `losses` are the mean losses while training, by mst_key."""
    lines = [f"Time for training in iteration {epoch}: {seconds:.3f} sec"]
    for dataset, title in TITLES.items():
        of_set = [item for item in evaluations if item.dataset == dataset and item.epoch == epoch]
        if of_set:
            lines.append(f"{title} set after iteration {epoch}:")
            lines += [f"mst_key={i.mst_key}: metric={metric_text(i)}, loss={i.loss}" for i in of_set]
    if len(lines) == 1:
        lines.append(f"Mean loss while training in iteration {epoch}:")
        lines += [f"mst_key={key}: loss={loss}" for key, loss in sorted(losses.items())]
    return "\n".join([*lines, *best_lines(evaluations, request)])


def best_lines(evaluations: Sequence[Evaluation], request: FitRequest) -> list[str]:
    """A line about the best configuration so far, where there is one."""
    winner = best(evaluations, request)
    if not winner:
        return []
    ranking = request.spec.ranking
    return [f"Best so far: mst_key={winner[0]}, {ranking.dataset} {ranking.metric}={winner[1]}"]


def stopped_line(stopped: Collection[int], evaluations: Sequence[Evaluation], request: FitRequest) -> str:
    """The message at the end of a run whose time was over before all was trained."""
    said = f"max_runtime was over: {len(stopped)} of {len(request.configs)} configurations ended early"
    return "\n".join([said, *best_lines(evaluations, request)])


def metric_text(evaluation: Evaluation) -> str:
    """The first metric, or None where the configuration has none."""
    return str(evaluation.metrics[0] if evaluation.metrics else None)
