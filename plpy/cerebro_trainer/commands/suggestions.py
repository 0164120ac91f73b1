"""Suggestions of the next points of a search space; the only module that uses Optuna and cmaes.

A request contains everything that a suggestion depends on, including the trials of the search. The
module keeps no state between requests, and the same request has the same answer.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from cerebro_trainer.errors import RequestError
from cerebro_trainer.wire.fields import Header, integer, items, number, record, text, typed

try:
    import cmaes
    import optuna
    from optuna.distributions import (
        BaseDistribution,
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial, TrialState
except ImportError as missing:
    raise RequestError(
        f"no configurations can be suggested: {missing}",
        sqlstate="55000",
        hint="Install the packages optuna and cmaes for the interpreter that trainer_python in "
        "cerebro.setting names. automl_method 'hyperband' and the sampler 'random' do without.",
    ) from missing

optuna.logging.set_verbosity(optuna.logging.ERROR)

Distributions: TypeAlias = dict[str, BaseDistribution]
Numeric: TypeAlias = IntDistribution | FloatDistribution
Point: TypeAlias = dict[str, Any]
"""A point: the index of an alternative of the space, and values of its dimensions."""
PointKey: TypeAlias = tuple[Any, ...]
ALTERNATIVE = "alternative"
ALGORITHMS = ("rand", "tpe", "cmaes")
STATES = {
    "running": TrialState.RUNNING,
    "stopped": TrialState.PRUNED,
    "completed": TrialState.COMPLETE,
    "failed": TrialState.COMPLETE,
}
MAX_TRIES = 100
"""Attempts to find a new point with the requested sampler, and then again with random search."""


def suggest(header: Header) -> list[Point]:
    """Suggest points that differ from each other and from those of the trials.

    There are fewer than requested if a small space has hardly any new point left. A trial has a
    point, its loss by epoch, and a state. A failed trial counts as the worst; a stopped trial
    counts with its losses up to its last epoch.
    """
    space = [_read_distributions(alternative) for alternative in _read_alternatives(header)]
    trials = items(header, "trials")
    count = integer(header, "count", minimum=1)
    seed = _derive_seed(integer(header, "seed"), len(trials))
    random_sampler = optuna.samplers.RandomSampler(seed=seed)
    sampler: BaseSampler = random_sampler
    algorithm = text(header, "algorithm", ALGORITHMS)
    if algorithm != "rand":
        sampler = _create_tpe_sampler(seed)
    study = optuna.create_study()
    for trial in trials:
        study.add_trial(_convert_trial(trial, space))
    used_points = {_make_key(record(trial, "point")) for trial in trials}
    evolution = None
    if algorithm == "cmaes":
        evolution = Evolution(study.trials, space, seed)
    points: list[Point] = []
    while len(points) < count:
        point = _find_new_point(study, sampler, space, used_points, evolution)
        if point is None:
            point = _find_new_point(study, random_sampler, space, used_points)
        if point is None:
            break
        used_points.add(_make_key(point))
        points.append(point)
    return points


def _create_tpe_sampler(seed: int) -> BaseSampler:
    """Create the sampler with explicit options, because version 5 has other defaults."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return optuna.samplers.TPESampler(
            seed=seed, multivariate=True, group=True, constant_liar=True
        )


def _find_new_point(
    study: optuna.Study,
    sampler: BaseSampler,
    space: Sequence[Distributions],
    used_points: set[PointKey],
    evolution: Evolution | None = None,
) -> Point | None:
    """Sample until a point is new, and add it to the study as a running trial.

    The sampler keeps away from running trials.
    """
    study.sampler = sampler
    for _ in range(MAX_TRIES):
        trial = study.ask()
        alternative = int(trial.suggest_categorical(ALTERNATIVE, range(len(space))))
        values = {
            name: _sample(trial, name, distribution)
            for name, distribution in space[alternative].items()
        }
        study.tell(trial, state=TrialState.FAIL)
        if evolution:
            values |= evolution.sample(alternative)
        point = {"alternative": alternative, "values": values}
        if _make_key(point) not in used_points:
            running = {"point": point, "values": [], "state": "running"}
            study.add_trial(_convert_trial(running, space))
            return point
    return None


class Evolution:
    """CMA-ES (Hansen, arXiv 1604.00772) over the numeric dimensions of each alternative.

    An alternative with fewer than two numeric dimensions, and all choices, are left to another
    sampler. Generations consist of the completed trials in their order, and are replayed for each
    request, so that the log of the search is the only state.
    """

    def __init__(
        self, trials: Sequence[FrozenTrial], space: Sequence[Distributions], seed: int
    ) -> None:
        self._dimensions = [_select_numeric(distributions) for distributions in space]
        completed = [
            trial for trial in trials if trial.value is not None and math.isfinite(trial.value)
        ]
        self._optimizers = []
        for alternative, dimensions in enumerate(self._dimensions):
            own_trials = [trial for trial in completed if trial.params[ALTERNATIVE] == alternative]
            self._optimizers.append(_replay_generations(dimensions, own_trials, seed))

    def sample(self, alternative: int) -> dict[str, Any]:
        """Sample the numeric dimensions of an alternative; none if there are fewer than two."""
        optimizer = self._optimizers[alternative]
        if optimizer is None:
            return {}
        dimensions = self._dimensions[alternative]
        return {
            name: _scale_from_unit(distribution, float(position))
            for (name, distribution), position in zip(
                dimensions.items(), optimizer.ask(), strict=True
            )
        }


def _select_numeric(distributions: Distributions) -> dict[str, Numeric]:
    return {
        name: distribution
        for name, distribution in distributions.items()
        if isinstance(distribution, IntDistribution | FloatDistribution)
    }


def _replay_generations(
    dimensions: Mapping[str, Numeric], trials: Sequence[FrozenTrial], seed: int
) -> cmaes.CMA | None:
    """Return an optimizer that has seen all complete generations of trials."""
    if len(dimensions) < 2:
        return None
    mean = np.full(len(dimensions), 0.5)
    bounds = np.array([[0.0, 1.0]] * len(dimensions))
    optimizer = cmaes.CMA(mean=mean, sigma=1 / 6, bounds=bounds, seed=seed)
    size = optimizer.population_size
    for start in range(0, len(trials) - size + 1, size):
        generation = trials[start : start + size]
        optimizer.tell(
            [
                (_scale_to_unit(trial.params, dimensions), float(trial.value or 0.0))
                for trial in generation
            ]
        )
    return optimizer


def _scale_to_unit(
    params: Mapping[str, Any], dimensions: Mapping[str, Numeric]
) -> np.ndarray[Any, Any]:
    """Return the positions of values between their bounds, from 0 to 1."""
    positions = []
    for name, distribution in dimensions.items():
        low = _transform(distribution, distribution.low)
        high = _transform(distribution, distribution.high)
        value = _transform(distribution, params[name])
        positions.append((value - low) / (high - low) if high > low else 0.5)
    return np.array(positions)


def _scale_from_unit(distribution: Numeric, position: float) -> float:
    """Return the value at a position between the bounds."""
    low = _transform(distribution, distribution.low)
    high = _transform(distribution, distribution.high)
    value = low + position * (high - low)
    if distribution.log:
        value = math.exp(value)
    value = min(max(value, distribution.low), distribution.high)
    if isinstance(distribution, IntDistribution):
        return round(value)
    return value


def _transform(distribution: Numeric, value: float) -> float:
    return math.log(value) if distribution.log else float(value)


def _sample(trial: optuna.Trial, name: str, distribution: BaseDistribution) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return trial.suggest_categorical(name, distribution.choices)
    if isinstance(distribution, IntDistribution):
        return trial.suggest_int(name, distribution.low, distribution.high, log=distribution.log)
    assert isinstance(distribution, FloatDistribution)
    return trial.suggest_float(name, distribution.low, distribution.high, log=distribution.log)


def _convert_trial(trial: Header, space: Sequence[Distributions]) -> FrozenTrial:
    """Convert a trial of a request to one of Optuna."""
    point = record(trial, "point")
    alternative = integer(point, "alternative", minimum=0)
    if alternative >= len(space):
        raise RequestError(f"a trial is of alternative {alternative}, but there are {len(space)}")
    state = text(trial, "state", tuple(STATES))
    losses = {int(epoch): _bound_loss(loss) for epoch, loss in typed(trial, "values", list)}
    value = None
    if STATES[state] == TrialState.COMPLETE:
        value = math.inf
        if losses and state != "failed":
            value = losses[max(losses)]
    alternatives = CategoricalDistribution(range(len(space)))
    return optuna.trial.create_trial(
        state=STATES[state],
        value=value,
        intermediate_values=losses,
        params={ALTERNATIVE: alternative, **record(point, "values")},
        distributions={ALTERNATIVE: alternatives, **space[alternative]},
    )


def _bound_loss(loss: float) -> float:
    """Return the loss; NaN and -infinity become infinity, the worst loss."""
    return float(loss) if math.isfinite(loss) else math.inf


def _read_alternatives(header: Header) -> list[list[dict[str, Any]]]:
    alternatives = typed(header, "space", list)
    if not alternatives:
        raise RequestError('"space" has no alternative')
    return [items({"an alternative": entry}, "an alternative") for entry in alternatives]


def _read_distributions(alternative: Sequence[Header]) -> Distributions:
    return {text(dimension, "name"): _read_distribution(dimension) for dimension in alternative}


def _read_distribution(
    dimension: Header,
) -> BaseDistribution:
    kind = text(dimension, "kind", ("choice", "whole", "real"))
    if kind == "choice":
        count = integer(dimension, "count", minimum=1)
        return CategoricalDistribution(range(count))
    log = typed(dimension, "log", bool)
    if kind == "whole":
        low, high = (integer(dimension, bound) for bound in ("low", "high"))
        return IntDistribution(low, high, log=log)
    return FloatDistribution(number(dimension, "low"), number(dimension, "high"), log=log)


def _make_key(point: Header) -> PointKey:
    return (point["alternative"], *sorted(point["values"].items()))


def _derive_seed(seed: int, trials: int) -> int:
    """Return a seed that differs between batches, because a sampler starts anew for each batch."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{trials}".encode()).digest()[:4], "little")
