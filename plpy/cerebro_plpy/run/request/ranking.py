"""The ranking of configurations: the data set and metric by which a run compares them."""

from __future__ import annotations

from collections.abc import Sequence

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.params.keras_names import larger_is_better
from cerebro_plpy.configs.params.output_losses import LOSS
from cerebro_plpy.configs.run_spec import Ranking
from cerebro_plpy.run.request.run_request import Evaluation


def choose_ranking(
    configs: Sequence[Config], has_validation: bool, *, by_loss: bool = False
) -> Ranking:
    """Return the ranking of a run.

    The first metric ranks if it is the same in all configurations, else the loss.

    Args:
        by_loss: the loss ranks, whatever the metrics are.
    """
    firsts = {LOSS if by_loss or not config.metrics else config.metrics[0] for config in configs}
    name, metric = firsts.pop() if len(firsts) == 1 else LOSS
    return Ranking("validation" if has_validation else "training", name, larger_is_better(metric))


def ranked_value(evaluation: Evaluation, config: Config, ranking: Ranking) -> float:
    """Return the value of the metric that ranks."""
    if ranking.metric == LOSS.logged_name:
        return evaluation.loss
    names = [metric.logged_name for metric in config.metrics]
    return evaluation.metrics[names.index(ranking.metric)]
