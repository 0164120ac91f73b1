"""What a run tells its user while it goes on, in the words that users of MADlib know; and how it
ranks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.params.keras_names import larger_is_better
from cerebro_plpy.configs.params.output_losses import LOSS
from cerebro_plpy.configs.run_spec import Ranking
from cerebro_plpy.run.log.run_log import DecisionRow
from cerebro_plpy.run.request.early_stopping import find_best_epoch, restores_best
from cerebro_plpy.run.request.run_request import Evaluation, FitRequest

TITLES = {"training": "Training", "validation": "Validation"}


def ranking_of(configs: Sequence[Config], has_validation: bool, *, loss: bool = False) -> Ranking:
    """What ranks the configurations of a run: data set, metric, and whether larger is better.

    The first metric where all configurations have the same one, else the loss; or always the
    `loss`.
    """
    firsts = {config.metrics[0] if config.metrics and not loss else LOSS for config in configs}
    name, metric = firsts.pop() if len(firsts) == 1 else LOSS
    return Ranking("validation" if has_validation else "training", name, larger_is_better(metric))


def best(evaluations: Sequence[Evaluation], request: FitRequest) -> tuple[int, float] | None:
    """The mst_key whose model has the best value of the metric that ranks, and that value; NaN
    never wins.
    """
    ranking = request.spec.ranking
    sign = -1.0 if ranking.descending else 1.0
    configs = {config.mst_key: config for config in request.configs}
    kept = best_epochs(evaluations, request)
    values = {
        item.mst_key: ranked_value(item, configs[item.mst_key], ranking)
        for item in evaluations
        if item.mst_key in configs
        and item.dataset == ranking.dataset
        and kept.get(item.mst_key, item.epoch) == item.epoch
    }
    real = {key: value for key, value in values.items() if value == value}
    if not real:
        return None
    winner = min(real, key=lambda key: (sign * real[key], key))
    return winner, real[winner]


def ranked_value(evaluation: Evaluation, config: Config, ranking: Ranking) -> float:
    """The value of the metric that ranks."""
    if ranking.metric == LOSS.logged_name:
        return evaluation.loss
    return evaluation.metrics[[each.logged_name for each in config.metrics].index(ranking.metric)]


def best_epochs(evaluations: Sequence[Evaluation], request: FitRequest) -> dict[int, int]:
    """The epochs of which the states are kept, by mst_key, where it is not the newest one."""
    keeping = {c.mst_key: c for c in request.configs if restores_best(c, request)}
    history: dict[int, list[Evaluation]] = {key: [] for key in keeping}
    for each in evaluations:
        if each.mst_key in keeping:
            history[each.mst_key].append(each)
    found = {key: find_best_epoch(config, request, history[key]) for key, config in keeping.items()}
    return {key: epoch for key, epoch in found.items() if epoch is not None}


def decision_lines(rows: Iterable[DecisionRow]) -> str:
    """The message about what was decided at once."""
    return "\n".join(f"mst_key={row.mst_key}: {row.action} ({row.reason})" for row in rows)


def epoch_lines(
    epoch: int,
    seconds: float,
    evaluations: Sequence[Evaluation],
    losses: Mapping[int, float],
    request: FitRequest,
) -> str:
    """The message at the end of an epoch. `losses` are the mean losses while training, by
    mst_key.
    """
    lines = [f"Time for training in iteration {epoch}: {seconds:.3f} sec"]
    for dataset, title in TITLES.items():
        of_set = [item for item in evaluations if item.dataset == dataset and item.epoch == epoch]
        if of_set:
            lines.append(f"{title} set after iteration {epoch}:")
            lines += [
                f"mst_key={i.mst_key}: metric={metric_text(i)}, loss={i.loss}" for i in of_set
            ]
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


def stopped_line(
    stopped: Collection[int], evaluations: Sequence[Evaluation], request: FitRequest
) -> str:
    """The message at the end of a run whose time was over before all was trained."""
    limit = (
        "the budget"
        if request.deadline or request.cost_limits or request.replay.endings
        else "max_runtime"
    )
    said = f"{limit} was over: {len(stopped)} of {len(request.configs)} configurations ended early"
    return "\n".join([said, *best_lines(evaluations, request)])


def metric_text(evaluation: Evaluation) -> str:
    """The first metric, or None where the configuration has none."""
    return str(evaluation.metrics[0] if evaluation.metrics else None)
