"""Ensembles: several configurations of a run as one model, if they predict better together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def choose_places(templates: Sequence[str | None], count: int) -> list[int]:
    """Return the places of the configurations that may be members, in ascending order.

    They are the best one of each template, as models that differ predict better together, and then
    the best of all.

    Args:
        templates: of configurations, the best first.
        count: the most configurations to choose.

    >>> choose_places(["boosting", "boosting", "boosting", "realmlp", "linear"], 4)
    [0, 1, 3, 4]
    >>> choose_places(["boosting", "boosting", "realmlp"], 1)
    [0]
    """
    first_places = {template: place for place, template in reversed(list(enumerate(templates)))}
    places = sorted(first_places.values())[:count]
    extra_places = [place for place in range(len(templates)) if place not in places]
    return sorted([*places, *extra_places[: count - len(places)]])


def choose_shares(
    context: CallContext, train_spec: TrainSpec, library: Sequence[ScoredRows]
) -> dict[int, float]:
    """Return the shares of the models that predict best together, by their places.

    Args:
        library: the predictions of each model for the same rows, the best model first.
    """
    loss = FALLBACK_METRICS[train_spec.task]
    metrics = [train_spec.metric, loss]
    if train_spec.metric in COARSE_METRICS:
        metrics = [loss]
    counts = select_greedily(library, metrics, train_spec.ensemble, context.check)
    if len(counts) < 2:
        place = 0 if train_spec.metric in COARSE_METRICS else next(iter(counts), 0)
        return {place: 1.0}
    total = sum(counts.values())
    return {place: count / total for place, count in sorted(counts.items())}


def combine_candidates(
    train_spec: TrainSpec, library: Sequence[Candidate], shares: Mapping[int, float]
) -> Candidate:
    """Return the model that some of the candidates make, alone or together.

    An ensemble has the network of its first member, and the predictions of all.

    Args:
        library: candidates that have predicted the hold-out rows, if there are several shares.
        shares: of the prediction, by the place of a candidate.
    """
    members = [(library[place], share) for place, share in sorted(shares.items())]
    best = members[0][0]
    if len(members) < 2:
        return best
    scored_rows = add_rows([(candidate.scored_rows, share) for candidate, share in members])
    result = best.result._replace(
        value=SCORES[train_spec.metric](scored_rows),
        ensemble=tuple(
            ResultMember(
                candidate.result.mst_key, candidate.template, share, candidate.result.state
            )
            for candidate, share in members
        ),
    )
    return best._replace(result=result, scored_rows=scored_rows)
