"""Which points of a search space to try next: the only module that knows Optuna.

A request brings all that is to be known, the finished trials among it, so that nothing is remembered here between
two of them, and the same request has the same answer.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from cerebro_trainer.errors import RequestError
from cerebro_trainer.wire.fields import integer, items, number, record, text, typed

try:
    import optuna
except ImportError as missing:
    raise RequestError(
        f"no configurations can be suggested: {missing}",
        sqlstate="55000",
        hint="Install Optuna (the package optuna) for the interpreter that trainer_python in cerebro.setting names."
        " automl_method 'hyperband' does without.",
    ) from missing

optuna.logging.set_verbosity(optuna.logging.ERROR)

Distributions: TypeAlias = dict[str, optuna.distributions.BaseDistribution]
Point: TypeAlias = dict[str, Any]
ALTERNATIVE = "alternative"
ALGORITHMS = ("rand", "tpe")
TRIES = 100
"""For a point that was not tried before, by the sampler that was asked for, and then as many by random search."""


def suggest(header: Mapping[str, Any]) -> list[Point]:
    """As many points as are wanted, all different from each other and from those of the trials.

    Fewer, where a small space has hardly one left.
    """
    space = [_distributions(alternative) for alternative in _alternatives(header)]
    trials, count = items(header, "trials"), integer(header, "count", minimum=1)
    seed = _seed(integer(header, "seed"), len(trials))
    random = optuna.samplers.RandomSampler(seed=seed)
    wanted = text(header, "algorithm", ALGORITHMS)
    sampler = random if wanted == "rand" else optuna.samplers.TPESampler(seed=seed, constant_liar=True)
    study = optuna.create_study()
    for trial in trials:
        study.add_trial(_finished(trial, space))
    seen = {_identity(record(trial, "point")) for trial in trials}
    points: list[Point] = []
    while len(points) < count:
        point = _new(study, sampler, space, seen) or _new(study, random, space, seen)
        if point is None:
            break
        seen.add(_identity(point))
        points.append(point)
    return points


def _new(
    study: optuna.Study,
    sampler: optuna.samplers.BaseSampler,
    space: Sequence[Distributions],
    seen: set[tuple[Any, ...]],
) -> Point | None:
    """A point that was not seen before. It counts as being tried, so that the next one keeps away from it."""
    study.sampler = sampler
    for _ in range(TRIES):
        trial = study.ask()
        chosen = int(trial.suggest_categorical(ALTERNATIVE, range(len(space))))
        values = {name: _drawn(trial, name, found) for name, found in space[chosen].items()}
        point = {"alternative": chosen, "values": values}
        if _identity(point) not in seen:
            return point
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
    return None


def _drawn(trial: optuna.Trial, name: str, distribution: optuna.distributions.BaseDistribution) -> Any:
    """A value of a distribution."""
    if isinstance(distribution, optuna.distributions.CategoricalDistribution):
        return trial.suggest_categorical(name, distribution.choices)
    if isinstance(distribution, optuna.distributions.IntDistribution):
        return trial.suggest_int(name, distribution.low, distribution.high, log=distribution.log)
    assert isinstance(distribution, optuna.distributions.FloatDistribution)
    return trial.suggest_float(name, distribution.low, distribution.high, log=distribution.log)


def _finished(trial: Mapping[str, Any], space: Sequence[Distributions]) -> optuna.trial.FrozenTrial:
    """A trial that is done; one without a loss was the worst."""
    point = record(trial, "point")
    chosen = integer(point, "alternative", minimum=0)
    if chosen >= len(space):
        raise RequestError(f"a trial is of alternative {chosen}, but there are {len(space)}")
    loss = None if trial.get("loss") is None else number(trial, "loss")
    alternative = optuna.distributions.CategoricalDistribution(range(len(space)))
    return optuna.trial.create_trial(
        value=math.inf if loss is None or math.isnan(loss) else loss,
        params={ALTERNATIVE: chosen, **record(point, "values")},
        distributions={ALTERNATIVE: alternative, **space[chosen]},
    )


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
        return optuna.distributions.CategoricalDistribution(range(integer(dimension, "count", minimum=1)))
    log = typed(dimension, "log", bool)
    if kind == "whole":
        return optuna.distributions.IntDistribution(integer(dimension, "low"), integer(dimension, "high"), log=log)
    return optuna.distributions.FloatDistribution(number(dimension, "low"), number(dimension, "high"), log=log)


def _identity(point: Mapping[str, Any]) -> tuple[Any, ...]:
    return (point["alternative"], *sorted(point["values"].items()))


def _seed(given: int, trials: int) -> int:
    """Another one for every batch, because a sampler begins anew with each."""
    return int.from_bytes(hashlib.sha256(f"{given}/{trials}".encode()).digest()[:4], "little")
