"""Ensembles: several configurations of a run as one model, if they predict better together."""

from __future__ import annotations

from typing import NamedTuple

from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.operations.explain.importance import FALLBACK_METRICS
from cerebro_plpy.operations.train.holdout_predictions import Network
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.preprocessing.scoring.ensemble_selection import add_rows, select_greedily
from cerebro_plpy.preprocessing.scoring.metrics import SCORES
from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRows
from cerebro_plpy.tables.models.model_registry import ResultMember, RunResult

COARSE_METRICS = ("accuracy",)
"""Metrics with few values over few rows: members are selected by the loss.

With 100 to 4,800 training rows, in ten samples of tables, the metric of such members on other rows
was better than that of members selected by it in eight, and equal in two.
"""


class Candidate(NamedTuple):
    """A network that may become a version."""

    result: RunResult
    network: Network
    scored_rows: ScoredRows  # predictions for the hold-out rows; empty if not computed
    template: str | None = None


def build_ensemble(
    context: CallContext, train_spec: TrainSpec, library: list[Candidate]
) -> Candidate:
    """Return the best model that some of the candidates make, alone or together.

    An ensemble has the network of its first member, and the predictions of all.

    Args:
        library: the candidates, the best one first.
    """
    loss = FALLBACK_METRICS[train_spec.task]
    metrics = [train_spec.metric, loss]
    if train_spec.metric in COARSE_METRICS:
        metrics = [loss]
    counts = select_greedily(
        [candidate.scored_rows for candidate in library],
        metrics,
        train_spec.ensemble,
        context.check,
    )
    if len(counts) < 2:
        place = 0 if train_spec.metric in COARSE_METRICS else next(iter(counts), 0)
        return library[place]
    total = sum(counts.values())
    shares = [(library[index], count / total) for index, count in sorted(counts.items())]
    scored_rows = add_rows([(candidate.scored_rows, share) for candidate, share in shares])
    best = shares[0][0]
    result = best.result._replace(
        value=SCORES[train_spec.metric](scored_rows),
        ensemble=tuple(
            ResultMember(
                candidate.result.mst_key, candidate.template, share, candidate.result.state
            )
            for candidate, share in shares
        ),
    )
    return best._replace(result=result, scored_rows=scored_rows)
