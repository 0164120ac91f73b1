"""Which points of a search space to try next: the only module that knows Optuna and cmaes.

A request brings all that is to be known, the trials of the search among it, so that nothing is
remembered here between two of them, and the same request has the same answer.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from cerebro_trainer.errors import RequestError
from cerebro_trainer.wire.fields import integer, items, number, record, text, typed

try:
    import cmaes
    import optuna
except ImportError as missing:
    raise RequestError(
        f"no configurations can be suggested: {missing}",
        sqlstate="55000",
        hint="Install the packages optuna and cmaes for the interpreter that trainer_python in "
        "cerebro.setting names. automl_method 'hyperband' and the sampler 'random' do without.",
    ) from missing

optuna.logging.set_verbosity(optuna.logging.ERROR)

Distributions: TypeAlias = dict[str, optuna.distributions.BaseDistribution]
Number: TypeAlias = "optuna.distributions.IntDistribution | optuna.distributions.FloatDistribution"
Point: TypeAlias = dict[str, Any]
ALTERNATIVE = "alternative"
ALGORITHMS = ("rand", "tpe", "cmaes")
STATES = {
    "running": optuna.trial.TrialState.RUNNING,
    "stopped": optuna.trial.TrialState.PRUNED,
    "completed": optuna.trial.TrialState.COMPLETE,
    "failed": optuna.trial.TrialState.COMPLETE,
}
TRIES = 100
"""For a point that was not tried before, by the sampler that was asked for, and then as many by
random search.
"""


def suggest(header: Mapping[str, Any]) -> list[Point]:
    """As many points as are wanted, all different from each other and from those of the trials.

    Fewer, where a small space has hardly one left. A trial is a point, its values by epoch, and its
    state: one that failed was the worst; of one that was stopped its values up to there are
    weighed.
    """
    space = [_distributions(alternative) for alternative in _alternatives(header)]
    trials, count = items(header, "trials"), integer(header, "count", minimum=1)
    seed = _seed(integer(header, "seed"), len(trials))
    random = optuna.samplers.RandomSampler(seed=seed)
    algorithm = text(header, "algorithm", ALGORITHMS)
    sampler = random if algorithm == "rand" else _tpe(seed)
    study = optuna.create_study()
    for trial in trials:
        study.add_trial(_frozen(trial, space))
    seen = {_identity(record(trial, "point")) for trial in trials}
    evolution = Evolution(study.trials, space, seed) if algorithm == "cmaes" else None
    points: list[Point] = []
    while len(points) < count:
        point = _new(study, sampler, space, seen, evolution) or _new(study, random, space, seen)
        if point is None:
            break
        seen.add(_identity(point))
        points.append(point)
    return points


def _tpe(seed: int) -> optuna.samplers.BaseSampler:
    """Its options are passed explicitly, because what is usual changed with version 5."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return optuna.samplers.TPESampler(
            seed=seed, multivariate=True, group=True, constant_liar=True
        )


def _new(
    study: optuna.Study,
    sampler: optuna.samplers.BaseSampler,
    space: Sequence[Distributions],
    seen: set[tuple[Any, ...]],
    evolution: Evolution | None = None,
) -> Point | None:
    """A point that was not seen before. It counts as being tried, so that the next one keeps away
    from it.
    """
    study.sampler = sampler
    for _ in range(TRIES):
        trial = study.ask()
        chosen = int(trial.suggest_categorical(ALTERNATIVE, range(len(space))))
        values = {name: _drawn(trial, name, found) for name, found in space[chosen].items()}
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
        if evolution:
            values |= evolution.ask(chosen)
        point = {"alternative": chosen, "values": values}
        if _identity(point) not in seen:
            study.add_trial(_frozen({"point": point, "values": [], "state": "running"}, space))
            return point
    return None


class Evolution:
    """CMA-ES (Hansen, arXiv 1604.00772) over the numbers of each alternative, where there are two
    or more of them.

    Generations are made of the trials that are done, in their order, and are told anew each time:
    so its state is the log of the search and nothing else. Choices are drawn by another sampler.
    """

    def __init__(
        self, trials: Sequence[optuna.trial.FrozenTrial], space: Sequence[Distributions], seed: int
    ) -> None:
        self._numbers: list[dict[str, Number]] = [
            {
                name: found
                for name, found in alternative.items()
                if isinstance(
                    found,
                    (optuna.distributions.IntDistribution, optuna.distributions.FloatDistribution),
                )
            }
            for alternative in space
        ]
        done = [trial for trial in trials if trial.value is not None and math.isfinite(trial.value)]
        self._optimizers = [
            self._told(
                number, [trial for trial in done if trial.params[ALTERNATIVE] == number], seed
            )
            for number in range(len(space))
        ]

    def _told(
        self, number: int, trials: Sequence[optuna.trial.FrozenTrial], seed: int
    ) -> cmaes.CMA | None:
        numbers = self._numbers[number]
        if len(numbers) < 2:
            return None
        middle, bounds = np.full(len(numbers), 0.5), np.array([[0.0, 1.0]] * len(numbers))
        optimizer = cmaes.CMA(mean=middle, sigma=1 / 6, bounds=bounds, seed=seed)
        size = optimizer.population_size
        for start in range(0, len(trials) - size + 1, size):
            generation = trials[start : start + size]
            optimizer.tell(
                [(_place(trial.params, numbers), float(trial.value or 0.0)) for trial in generation]
            )
        return optimizer

    def ask(self, alternative: int) -> dict[str, Any]:
        """Values of the numbers of an alternative; none where there are too few of them."""
        optimizer, numbers = self._optimizers[alternative], self._numbers[alternative]
        if optimizer is None:
            return {}
        return {
            name: _at(numbers[name], float(place))
            for name, place in zip(numbers, optimizer.ask(), strict=True)
        }


def _place(params: Mapping[str, Any], numbers: Mapping[str, Number]) -> np.ndarray[Any, Any]:
    """Where values lie between their bounds, from 0 to 1."""
    found = []
    for name, distribution in numbers.items():
        low, high, value = (
            _scaled(distribution, each)
            for each in (distribution.low, distribution.high, params[name])
        )
        found.append((value - low) / (high - low) if high > low else 0.5)
    return np.array(found)


def _at(distribution: Number, place: float) -> float:
    low, high = _scaled(distribution, distribution.low), _scaled(distribution, distribution.high)
    value = low + place * (high - low)
    value = min(
        max(math.exp(value) if distribution.log else value, distribution.low), distribution.high
    )
    return round(value) if isinstance(distribution, optuna.distributions.IntDistribution) else value


def _scaled(distribution: Number, value: float) -> float:
    return math.log(value) if distribution.log else float(value)


def _drawn(
    trial: optuna.Trial, name: str, distribution: optuna.distributions.BaseDistribution
) -> Any:
    """A value of a distribution."""
    if isinstance(distribution, optuna.distributions.CategoricalDistribution):
        return trial.suggest_categorical(name, distribution.choices)
    if isinstance(distribution, optuna.distributions.IntDistribution):
        return trial.suggest_int(name, distribution.low, distribution.high, log=distribution.log)
    assert isinstance(distribution, optuna.distributions.FloatDistribution)
    return trial.suggest_float(name, distribution.low, distribution.high, log=distribution.log)


def _frozen(trial: Mapping[str, Any], space: Sequence[Distributions]) -> optuna.trial.FrozenTrial:
    """A trial as Optuna has it."""
    point = record(trial, "point")
    chosen = integer(point, "alternative", minimum=0)
    if chosen >= len(space):
        raise RequestError(f"a trial is of alternative {chosen}, but there are {len(space)}")
    state = text(trial, "state", tuple(STATES))
    values = {int(epoch): _worst(value) for epoch, value in typed(trial, "values", list)}
    last = values[max(values)] if values and state != "failed" else math.inf
    alternative = optuna.distributions.CategoricalDistribution(range(len(space)))
    return optuna.trial.create_trial(
        state=STATES[state],
        value=last if STATES[state] == optuna.trial.TrialState.COMPLETE else None,
        intermediate_values=values,
        params={ALTERNATIVE: chosen, **record(point, "values")},
        distributions={ALTERNATIVE: alternative, **space[chosen]},
    )


def _worst(value: float) -> float:
    return float(value) if math.isfinite(value) else math.inf


def _alternatives(header: Mapping[str, Any]) -> list[list[dict[str, Any]]]:
    found = typed(header, "space", list)
    if not found:
        raise RequestError('"space" has no alternative')
    return [items({"an alternative": alternative}, "an alternative") for alternative in found]


def _distributions(alternative: Sequence[Mapping[str, Any]]) -> Distributions:
    return {text(dimension, "name"): _distribution(dimension) for dimension in alternative}


def _distribution(dimension: Mapping[str, Any]) -> optuna.distributions.BaseDistribution:
    kind = text(dimension, "kind", ("choice", "whole", "real"))
    if kind == "choice":
        return optuna.distributions.CategoricalDistribution(
            range(integer(dimension, "count", minimum=1))
        )
    log = typed(dimension, "log", bool)
    if kind == "whole":
        return optuna.distributions.IntDistribution(
            integer(dimension, "low"), integer(dimension, "high"), log=log
        )
    return optuna.distributions.FloatDistribution(
        number(dimension, "low"), number(dimension, "high"), log=log
    )


def _identity(point: Mapping[str, Any]) -> tuple[Any, ...]:
    return (point["alternative"], *sorted(point["values"].items()))


def _seed(given: int, trials: int) -> int:
    """Another one for every batch, because a sampler begins anew with each."""
    return int.from_bytes(hashlib.sha256(f"{given}/{trials}".encode()).digest()[:4], "little")
