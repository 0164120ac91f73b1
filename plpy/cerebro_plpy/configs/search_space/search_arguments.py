"""The search that a call names, with its parameters as JSON: checked whole before anything
begins.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from cerebro_plpy.configs.json_arguments import read_lists
from cerebro_plpy.configs.params.keras_names import near_matches
from cerebro_plpy.configs.search_space import sampling
from cerebro_plpy.configs.search_space.sampling import (
    CMAES,
    RANDOM,
    SAMPLERS,
    TPE,
    Sampling,
    read_sampling,
)
from cerebro_plpy.configs.search_space.search_rules import (
    DIAGONALS,
    FIRST_EPOCHS,
    GRID,
    HALVING,
    HYPERBAND,
    PARAMETERS,
    PATIENCE,
    PBT,
    SearchRule,
)
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.limits import PARAMETERS as COUNTS
from cerebro_plpy.limits import check
from cerebro_plpy.scheduling.search.hyperband import Hyperband

TARGET = "target"
"""A parameter of all of them: the value of the metric that ranks at which all is over."""
LIVE_STATES = "live_states"
"""Another one: how many configurations that rest keep their states, where they will hardly go on.
"""
MAX_VISITS = "max_visits"
"""And another: how many visits are made in all."""
MAX_CPU, MAX_COST = "max_cpu", "max_cost"
"""Two more: how many processor seconds a run may use, and what it may cost."""
QUANTILE = "quantile"
"""Of population based training: so large a part of all stops after a step."""
AUTO = "auto"
DRAWS = (AUTO, RANDOM)
"""Searches over templates that are no rules: all configurations are trained as far as they get
better.
"""
LEARNERS = (TPE, CMAES)
BRED = Sampling(RANDOM, {}, 0)
"""Of templates nothing is drawn in population based training but what is near others."""
LEAST: Mapping[str, int] = {
    "eta": 2, FIRST_EPOCHS: 1, "grace_epochs": 0, "others": 1, "R": 2, "skip_last": 0,
    "interval": 1, "patience": 1,
}  # fmt: skip


def read_rule(
    module: str, name: str | None, text: str | None, epochs: int | None, *, templates: bool = False
) -> SearchRule | None:
    """The rule that a call asks for; None where it asks for none. InvalidParameter where it is
    none, or cannot be.

    The run has so many epochs, if that is known. Configurations of `templates` are drawn of their
    fields, which no search parameter tells.
    """
    others = (*DRAWS, *LEARNERS) if templates else SAMPLERS
    if name is None or (templates and name in DRAWS):
        if text is not None:
            raise InvalidParameter(
                f"{module} error: search_params is {text:.80}, but there is no search.",
                hint=f"Add search => one of {', '.join(map(repr, PARAMETERS))}.",
            )
        return None
    if name not in PARAMETERS and name not in others:
        raise InvalidParameter(
            f"{module} error: search is {name!r}; expected one of "
            f"{', '.join((*others, *PARAMETERS))}.",
            hint=near_matches(name, (*others, *PARAMETERS)),
        )
    given: Any = {} if text is None else read_lists("search_params", text)
    if not isinstance(given, dict):
        raise InvalidParameter(
            f"{module} error: search_params is {text!r:.80}; expected a JSON object.",
            hint="For example search_params => '{\"eta\": 4}'.",
        )
    target = _target(module, given)
    bounds: dict[str, Any] = {**_bounds(module, given), **_allowed(module, given, templates)}
    rule = GRID if name in SAMPLERS else name
    if name == PBT:
        bounds[QUANTILE] = _quantile(module, given.pop(QUANTILE, 0.25))
    if name == PATIENCE:
        bounds.update(_watched(module, given))
    drawn = _learner(module, name, given) if templates else _sampling(module, name, given)
    if name == PBT and drawn is None:
        _refuse_population(module)
    parameters = _parameters(module, rule, given, epochs)
    if templates and FIRST_EPOCHS not in given:
        parameters.pop(FIRST_EPOCHS, None)  # it grows with the epochs
    return SearchRule(rule, parameters, target, drawn, **bounds)


def _bounds(module: str, given: dict[str, Any]) -> dict[str, int | None]:
    """What bounds a run under any rule; it is taken out of the parameters."""
    bounds = {key: given.pop(key, None) for key in (LIVE_STATES, MAX_VISITS)}
    for key, bound in bounds.items():
        if bound is not None and (type(bound) is not int or bound < 1):
            raise InvalidParameter(
                f"{module} error: {key} in search_params is {bound!r:.80}; expected a whole "
                "number, at least 1."
            )
        if bound is not None:
            check(f"{key} in search_params", bound, COUNTS[key])
    return bounds


def _allowed(module: str, given: dict[str, Any], templates: bool) -> dict[str, float | None]:
    """What a run may cost; it is taken out of the parameters."""
    found = {key: given.pop(key, None) for key in (MAX_CPU, MAX_COST)}
    for key, value in found.items():
        if value is not None and templates:
            raise InvalidParameter(
                f"{module} error: search_params has {key!r}, which is an argument of its own here.",
                hint="max_cpu => '10 minutes'" if key == MAX_CPU else "max_cost => 0.5",
            )
        if value is not None and (type(value) not in (int, float) or not 0 < value < math.inf):
            unit = "a number of seconds" if key == MAX_CPU else "a number"
            raise InvalidParameter(
                f"{module} error: {key} in search_params is {value!r:.80}; expected {unit} above 0."
            )
    return found


def _target(module: str, given: dict[str, Any]) -> float | None:
    """The value at which all is over, if any; it is taken out of the parameters."""
    target = given.pop(TARGET, None)
    if target is not None and (type(target) not in (int, float) or not math.isfinite(target)):
        raise InvalidParameter(
            f"{module} error: target in search_params is {target!r:.80}; expected a number."
        )
    return None if target is None else float(target)


def _quantile(module: str, value: object) -> float:
    if type(value) not in (int, float) or not 0 < value <= 0.5:  # type: ignore[operator]
        raise InvalidParameter(
            f"{module} error: quantile in search_params is {value!r:.80}; expected a number above "
            "0, at most 0.5."
        )
    return float(value)  # type: ignore[arg-type]


def _watched(module: str, given: dict[str, Any]) -> dict[str, Any]:
    """What patience watches, and what counts as better; it is taken out of the parameters."""
    least, metric = given.pop("min_delta", 0.0), given.pop("metric", None)
    if type(least) not in (int, float) or not 0 <= least < math.inf:
        raise InvalidParameter(
            f"{module} error: min_delta in search_params is {least!r:.80}; expected a number."
        )
    if metric is not None and (not isinstance(metric, str) or not metric):
        raise InvalidParameter(
            f"{module} error: metric in search_params is {metric!r:.80}; expected a name such as "
            "'val_loss'."
        )
    return {"min_delta": float(least), "metric": metric}


def _refuse_population(module: str) -> None:
    raise InvalidParameter(
        f"{module} error: search is {PBT!r}, but search_params has no space in which parameters "
        "could change.",
        hint=f'search_params => \'{{"space": {{...}}, "configs": 8}}\', for example with space '
        f"{sampling.EXAMPLE}.",
    )


def _sampling(module: str, name: str, given: dict[str, Any]) -> Sampling | None:
    """What is drawn beside the configurations that are there; it is taken out of the parameters."""
    values = {key: given.pop(key) for key in sampling.PARAMETERS if key in given}
    if name in SAMPLERS and sampling.SAMPLER in values:
        raise InvalidParameter(
            f"{module} error: search_params has a sampler, but search is one: {name!r}."
        )
    if not values and name not in SAMPLERS:
        return None
    if name == GRID:
        raise InvalidParameter(
            f"{module} error: search_params has {next(iter(values))!r}, but 'grid' draws nothing.",
            hint="Name a sampler as the search, such as 'tpe'.",
        )
    found = read_sampling(module, values, name if name in SAMPLERS else RANDOM)
    check_learning(module, name, found)
    return found


def _learner(module: str, name: str, given: dict[str, Any]) -> Sampling | None:
    """What draws configurations of templates while the run goes on; it is taken out of the
    parameters.
    """
    if sampling.START_FROM in given:
        raise InvalidParameter(
            f"{module} error: search_params has {sampling.START_FROM!r}, which is an argument of "
            "its own here.",
            hint="start_from => '{run:12}'",
        )
    bred = BRED if name == PBT else None
    if name not in LEARNERS and sampling.SAMPLER not in given:
        return bred
    if name in (*LEARNERS, GRID) and sampling.SAMPLER in given:
        raise InvalidParameter(
            f"{module} error: search_params has a sampler, but search is {name!r}."
        )
    sampler = given.pop(sampling.SAMPLER, name)
    if sampler not in SAMPLERS:
        raise InvalidParameter(
            f"{module} error: sampler in search_params is {sampler!r:.80}; expected one of "
            f"{', '.join(SAMPLERS)}.",
            hint=near_matches(str(sampler), SAMPLERS),
        )
    found = Sampling(sampler, {}, 0)
    check_learning(module, name, found)
    return found if found.learns else bred


def check_learning(module: str, name: str, found: Sampling) -> None:
    """Raises InvalidParameter where a search draws nothing while there is something to learn
    from.
    """
    if found.learns and name in (HALVING, HYPERBAND, DIAGONALS, PBT):
        raise InvalidParameter(
            f"{module} error: sampler in search_params is {found.sampler!r}, but {name!r} begins "
            "with all of its configurations, when there is nothing to learn from yet.",
            hint="'asha' draws one after the other.",
        )


def _parameters(
    module: str, name: str, given: Mapping[str, Any], epochs: int | None
) -> dict[str, int]:
    known = PARAMETERS[name]
    for key, value in given.items():
        if key not in known:
            raise InvalidParameter(
                f"{module} error: search_params has {key!r}, which {name!r} does not know; expected"
                f" {', '.join((*known, TARGET))}.",
                hint=near_matches(key, (*known, TARGET)),
            )
        if type(value) is not int or value < LEAST[key]:
            raise InvalidParameter(
                f"{module} error: {key} in search_params is {value!r:.80}; expected a whole "
                f"number, at least {LEAST[key]}."
            )
        check(f"{key} in search_params", value, COUNTS[key])
    found = {**known, **given}
    if name == DIAGONALS:
        Hyperband(**found).check(module)
    for key in (FIRST_EPOCHS, "interval"):
        if epochs is not None and found.get(key, 1) > epochs:
            raise InvalidParameter(
                f"{module} error: {key} in search_params is {found[key]}, but there are {epochs} "
                "epochs."
            )
    return found
