"""What searches come to over the curves of a pool, by the visits that they make.

A search of ours is judged by the product's own rule and course, with two configurations under way
for each worker, an epoch of each after the other. Random search and Optuna have one trial after
another, so that what they learn is known to the next; that is the best that they can do with so
many visits.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from bench.pools import Curve, Pool
from cerebro_plpy.configs.search_space.distributions import Range
from cerebro_plpy.scheduling.search.promotion_rules import Rule
from cerebro_plpy.scheduling.search.search_state import SearchState

WIDTH = 4
TRIES = 20
"""Suggestions of a family of which no configuration is left, before any other is taken."""
Space = Mapping[str, Mapping[str, BaseDistribution]]
"""What is searched of each family, by its fields."""

optuna.logging.set_verbosity(optuna.logging.ERROR)


class Tally:
    """The visits of a search, and how its best value fell."""

    def __init__(self, pool: Pool) -> None:
        self.visits, self.best = 0, math.inf
        self._segments = pool.segments
        self._steps: list[tuple[int, float]] = []

    def epoch(self, value: float) -> None:
        """A configuration was trained for an epoch, and has this value."""
        self.visits += self._segments
        if value < self.best:
            self.best = value
            self._steps.append((self.visits, value))

    def until(self, bound: float) -> int | None:
        """After how many visits it had a value as good as that."""
        return next((visits for visits, value in self._steps if value <= bound), None)

    def within(self, visits: int) -> float:
        """The best value that it had after so many visits; the first one where it had none yet."""
        return min(
            (value for made, value in self._steps if made <= visits), default=self._steps[0][1]
        )


def order(pool: Pool, curves: Sequence[Curve], number: int) -> Sequence[Curve]:
    """Curves of a pool in an order of their own: no search begins with what is usual."""
    return random.Random(f"{pool.table}/{pool.seed}/{number}").sample(curves, len(curves))


def by_rule(pool: Pool, curves: Sequence[Curve], rule: Rule) -> Tally:
    """A rule of ours, which takes configurations in their order."""
    tally, done = Tally(pool), dict.fromkeys(range(len(curves)), 0)
    course = SearchState(rule, done, WIDTH, fixed=True)
    while True:
        for _ in course.decide():
            pass
        going = [
            key
            for key, trial in course.trials.items()
            if trial.is_running and done[key] < trial.max_epoch
        ]
        if not going:
            return tally
        for key in going:
            _train(course, tally, key, curves[key], done)


def _train(course: SearchState, tally: Tally, key: int, curve: Curve, done: dict[int, int]) -> None:
    """Another epoch of a configuration, unless it gets no better."""
    if done[key] < len(curve.values):
        tally.epoch(curve.values[done[key]])
        done[key] += 1
    if done[key] == course.trials[key].max_epoch:
        course.report_value(key, done[key], curve.values[-1 + done[key]])
    elif done[key] == len(curve.values):
        course.report_end(key, "it gets no better")
        done[key] = course.trials[key].max_epoch


def one_by_one(pool: Pool, curves: Sequence[Curve], budget: int) -> Tally:
    """Random search: each configuration to its end, in their order."""
    tally = Tally(pool)
    for value in (value for curve in curves for value in curve.values):
        if tally.visits >= budget:
            break
        tally.epoch(value)
    return tally


def by_optuna(
    pool: Pool, budget: int, sampler: optuna.samplers.BaseSampler, pruner: optuna.pruners.BasePruner
) -> Tally:
    """Optuna's sampler and pruner. What it suggests is the nearest configuration of the pool that
    it has not had; it is told that one's values, as they come, and at the end the best of them."""
    tally, left, space = Tally(pool), list(pool.curves), space_of(pool)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        warnings.simplefilter("ignore", RuntimeWarning)  # medians of values that are infinite
        study = optuna.create_study(sampler=sampler, pruner=pruner)
        while left and tally.visits < budget:
            curve = left.pop(_suggested(study, space, left))
            study.enqueue_trial(_point(curve, space))
            _try(study, space, curve, tally, budget)
    return tally


def _try(study: optuna.Study, space: Space, curve: Curve, tally: Tally, budget: int) -> None:
    trial = study.ask()
    _drawn(trial, space)
    for epoch, value in enumerate(curve.values, 1):
        if tally.visits >= budget:
            return
        tally.epoch(value)
        trial.report(value, epoch)
        if trial.should_prune():
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            return
    study.tell(trial, min(curve.values))


def _suggested(study: optuna.Study, space: Space, left: Sequence[Curve]) -> int:
    """The place of the configuration that is nearest to what the sampler suggests."""
    for _ in range(TRIES):
        trial = study.ask()
        family, values = _drawn(trial, space)
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
        same = [place for place, curve in enumerate(left) if curve.family == family]
        if same:
            return min(same, key=lambda place: _distance(space[family], values, left[place].params))
    return 0


def _drawn(trial: optuna.Trial, space: Space) -> tuple[str, Mapping[str, Any]]:
    family = str(trial.suggest_categorical("family", sorted(space)))
    return family, {
        name: _value(trial, f"{family}/{name}", found) for name, found in space[family].items()
    }


def _value(trial: optuna.Trial, name: str, found: BaseDistribution) -> Any:
    if isinstance(found, CategoricalDistribution):
        return trial.suggest_categorical(name, found.choices)
    if isinstance(found, IntDistribution):
        return trial.suggest_int(name, found.low, found.high)
    assert isinstance(found, FloatDistribution)
    return trial.suggest_float(name, found.low, found.high, log=found.log)


def _point(curve: Curve, space: Space) -> dict[str, Any]:
    fields = {f"{curve.family}/{name}": curve.params[name] for name in space[curve.family]}
    return {"family": curve.family, **fields}


def _distance(
    fields: Mapping[str, BaseDistribution], one: Mapping[str, Any], other: Mapping[str, Any]
) -> float:
    """How far two configurations of a family lie apart: a range is as long as the step from a
    choice to another.
    """
    return sum(_apart(found, one[name], other[name]) ** 2 for name, found in fields.items())


def _apart(found: BaseDistribution, one: Any, other: Any) -> float:
    if isinstance(found, CategoricalDistribution):
        return float(one != other)
    assert isinstance(found, (IntDistribution, FloatDistribution))
    scale: Callable[[float], float] = math.log if found.log else float
    return (scale(one) - scale(other)) / (scale(found.high) - scale(found.low))


def space_of(pool: Pool) -> Space:
    """What differs among the configurations of a pool, family by family, as Optuna has it."""
    found: dict[str, dict[str, list[Any]]] = {}
    for curve in pool.curves:
        for name, value in curve.params.items():
            found.setdefault(curve.family, {}).setdefault(name, []).append(value)
    return {
        family: {
            name: _distribution(pool.ranges.get((family, name)), values)
            for name, values in fields.items()
            if len(set(values)) > 1
        }
        for family, fields in found.items()
    }


def _distribution(draw: object, values: Sequence[Any]) -> BaseDistribution:
    if not isinstance(draw, Range) or not all(isinstance(value, (int, float)) for value in values):
        return CategoricalDistribution(sorted(set(values), key=repr))
    low, high = (
        min(draw.low, *values),
        max(draw.high, *values),
    )  # what is usual may lie beside what is drawn
    if draw.is_integer:
        return IntDistribution(int(low), int(high))
    return FloatDistribution(low, high, log=draw.distribution == "log" and low > 0)
