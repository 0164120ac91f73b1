"""Simulate searches over the learning curves of a pool, and count their visits.

A search of ours uses the product's own rule and search state. Two configurations train for each
worker, an epoch of each after the other. Random search and Optuna run one trial after another, so
that each trial knows the results of the earlier ones; that suits them best.
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
"""Suggestions of a family without remaining configurations before any other is taken."""
Space = Mapping[str, Mapping[str, BaseDistribution]]
"""The distributions of each family's fields."""

optuna.logging.set_verbosity(optuna.logging.ERROR)


class Tally:
    """The visits of a search, and its best value after each improvement."""

    def __init__(self, pool: Pool) -> None:
        self.visits = 0
        self.best = math.inf
        self._segments = pool.segments
        self._steps: list[tuple[int, float]] = []

    def add_epoch(self, value: float) -> None:
        """Count an epoch of a configuration, which results in a value."""
        self.visits += self._segments
        if value < self.best:
            self.best = value
            self._steps.append((self.visits, value))

    def until(self, bound: float) -> int | None:
        """Return the visits until a value was at most `bound`; None if it never was."""
        return next((visits for visits, value in self._steps if value <= bound), None)

    def within(self, visits: int) -> float:
        """Return the best value within some visits; the first value if there was none yet."""
        return min(
            (value for visits_made, value in self._steps if visits_made <= visits),
            default=self._steps[0][1],
        )


def shuffle(pool: Pool, curves: Sequence[Curve], number: int) -> Sequence[Curve]:
    """Return curves in a random order, so that a search does not start with the usual values."""
    return random.Random(f"{pool.table}/{pool.seed}/{number}").sample(curves, len(curves))


def search_by_rule(pool: Pool, curves: Sequence[Curve], rule: Rule) -> Tally:
    """Simulate a search by a rule of ours, which takes configurations in their order."""
    tally = Tally(pool)
    epochs_done = dict.fromkeys(range(len(curves)), 0)
    search = SearchState(rule, epochs_done, WIDTH, fixed=True)
    while True:
        for _ in search.decide():
            pass
        running = [
            key
            for key, trial in search.trials.items()
            if trial.is_running and epochs_done[key] < trial.max_epoch
        ]
        if not running:
            return tally
        for key in running:
            _train_epoch(search, tally, key, curves[key], epochs_done)


def _train_epoch(
    search: SearchState, tally: Tally, key: int, curve: Curve, epochs_done: dict[int, int]
) -> None:
    """Train a configuration for another epoch, unless its curve has ended."""
    if epochs_done[key] < len(curve.values):
        tally.add_epoch(curve.values[epochs_done[key]])
        epochs_done[key] += 1
    if epochs_done[key] == search.trials[key].max_epoch:
        search.report_value(key, epochs_done[key], curve.values[-1 + epochs_done[key]])
    elif epochs_done[key] == len(curve.values):
        search.report_end(key, "it gets no better")
        epochs_done[key] = search.trials[key].max_epoch


def search_randomly(pool: Pool, curves: Sequence[Curve], budget: int) -> Tally:
    """Simulate a random search: train each configuration to its end, in their order."""
    tally = Tally(pool)
    for value in (value for curve in curves for value in curve.values):
        if tally.visits >= budget:
            break
        tally.add_epoch(value)
    return tally


def search_by_optuna(
    pool: Pool, budget: int, sampler: optuna.samplers.BaseSampler, pruner: optuna.pruners.BasePruner
) -> Tally:
    """Simulate a search by a sampler and a pruner of Optuna.

    A suggestion stands for the nearest remaining configuration of the pool. Optuna receives the
    values of its curve, and at the end the best value.
    """
    tally = Tally(pool)
    remaining = list(pool.curves)
    space = make_space(pool)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        warnings.simplefilter("ignore", RuntimeWarning)  # medians of values that are infinite
        study = optuna.create_study(sampler=sampler, pruner=pruner)
        while remaining and tally.visits < budget:
            curve = remaining.pop(_suggest_index(study, space, remaining))
            study.enqueue_trial(_make_point(curve, space))
            _run_trial(study, space, curve, tally, budget)
    return tally


def _run_trial(study: optuna.Study, space: Space, curve: Curve, tally: Tally, budget: int) -> None:
    trial = study.ask()
    _draw_values(trial, space)
    for epoch, value in enumerate(curve.values, 1):
        if tally.visits >= budget:
            return
        tally.add_epoch(value)
        trial.report(value, epoch)
        if trial.should_prune():
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            return
    study.tell(trial, min(curve.values))


def _suggest_index(study: optuna.Study, space: Space, remaining: Sequence[Curve]) -> int:
    """Return the index of the configuration that is nearest to the sampler's suggestion."""
    for _ in range(TRIES):
        trial = study.ask()
        family, values = _draw_values(trial, space)
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
        same = [index for index, curve in enumerate(remaining) if curve.family == family]
        if same:
            return min(
                same,
                key=lambda index: _measure_distance(space[family], values, remaining[index].params),
            )
    return 0


def _draw_values(trial: optuna.Trial, space: Space) -> tuple[str, Mapping[str, Any]]:
    family = str(trial.suggest_categorical("family", sorted(space)))
    return family, {
        name: _draw_value(trial, f"{family}/{name}", distribution)
        for name, distribution in space[family].items()
    }


def _draw_value(trial: optuna.Trial, name: str, distribution: BaseDistribution) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return trial.suggest_categorical(name, distribution.choices)
    if isinstance(distribution, IntDistribution):
        return trial.suggest_int(name, distribution.low, distribution.high)
    assert isinstance(distribution, FloatDistribution)
    return trial.suggest_float(name, distribution.low, distribution.high, log=distribution.log)


def _make_point(curve: Curve, space: Space) -> dict[str, Any]:
    fields = {f"{curve.family}/{name}": curve.params[name] for name in space[curve.family]}
    return {"family": curve.family, **fields}


def _measure_distance(
    fields: Mapping[str, BaseDistribution], first: Mapping[str, Any], second: Mapping[str, Any]
) -> float:
    """Return the squared distance of two configurations of a family.

    The length of a range counts as much as the difference of two choices.
    """
    return sum(
        _measure_field(distribution, first[name], second[name]) ** 2
        for name, distribution in fields.items()
    )


def _measure_field(distribution: BaseDistribution, first: Any, second: Any) -> float:
    if isinstance(distribution, CategoricalDistribution):
        return float(first != second)
    assert isinstance(distribution, (IntDistribution, FloatDistribution))
    scale: Callable[[float], float] = math.log if distribution.log else float
    return (scale(first) - scale(second)) / (scale(distribution.high) - scale(distribution.low))


def make_space(pool: Pool) -> Space:
    """Return the fields that differ among the configurations of each family, as distributions."""
    values_by_field: dict[str, dict[str, list[Any]]] = {}
    for curve in pool.curves:
        for name, value in curve.params.items():
            values_by_field.setdefault(curve.family, {}).setdefault(name, []).append(value)
    return {
        family: {
            name: _make_distribution(pool.ranges.get((family, name)), values)
            for name, values in fields.items()
            if len(set(values)) > 1
        }
        for family, fields in values_by_field.items()
    }


def _make_distribution(draw: object, values: Sequence[Any]) -> BaseDistribution:
    if not isinstance(draw, Range) or not all(isinstance(value, (int, float)) for value in values):
        return CategoricalDistribution(sorted(set(values), key=repr))
    # The usual values may be outside the range of the draws.
    low = min(draw.low, *values)
    high = max(draw.high, *values)
    if draw.is_integer:
        return IntDistribution(int(low), int(high))
    return FloatDistribution(low, high, log=draw.distribution == "log" and low > 0)
