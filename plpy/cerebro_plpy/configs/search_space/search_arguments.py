"""The search that a call requests, with its parameters as JSON: checked before the run begins."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from cerebro_plpy.configs.json_arguments import JsonObject, read_lists
from cerebro_plpy.configs.params.keras_names import guess_match
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
from cerebro_plpy.errors import InvalidParameter, quote_text
from cerebro_plpy.limits import PARAMETERS as COUNTS
from cerebro_plpy.limits import check
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.scheduling.search.hyperband import Hyperband

# Parameters of all rules.
TARGET = "target"
"""The search ends when the ranking metric reaches this value."""
LIVE_STATES = "live_states"
"""Number of paused configurations that keep their states although they are unlikely to continue."""
MAX_VISITS = "max_visits"
"""Number of visits in all."""
MAX_CPU = "max_cpu"
"""Processor seconds of the run."""
MAX_COST = "max_cost"
"""Cost of the run."""
LIMIT_VALUES = {MAX_CPU: "an interval or a number of seconds", MAX_COST: "a number"}
"""The limits as values of search_params, in messages."""
OWN_ARGUMENTS = (MAX_CPU, MAX_COST, sampling.START_FROM)
"""Arguments of cerebro.train that other calls have in search_params."""

QUANTILE = "quantile"
"""A parameter of population based training: the part of the population that stops after a step."""
AUTO = "auto"
TEMPLATE_SEARCHES = (AUTO, RANDOM)
"""Searches over templates without a rule: configurations train until they no longer improve."""
LEARNERS = (TPE, CMAES)
CLONES_ONLY = Sampling(RANDOM, {}, 0)
"""Population based training over templates does not sample new configurations, only clones."""
MINIMA: Mapping[str, int] = {
    "eta": 2,
    FIRST_EPOCHS: 1,
    "grace_epochs": 0,
    "others": 1,
    "R": 2,
    "skip_last": 0,
    "interval": 1,
    "patience": 1,
}
"""The smallest value of each parameter of a rule."""


def read_search_rule(
    module: str, name: str | None, text: str | None, epochs: int | None, *, templates: bool = False
) -> SearchRule | None:
    """Return the rule that a call requests, if any.

    Args:
        name: argument `search` of the call.
        text: argument `search_params` of the call.
        epochs: epochs of the run; None if unknown.
        templates: configurations are sampled from the fields of templates, not from a space.

    Raises:
        InvalidParameter: the rule is unknown, or the parameters are invalid.
    """
    samplers: tuple[str, ...] = SAMPLERS
    pop_sampling = _pop_sampling
    if templates:
        samplers = (*TEMPLATE_SEARCHES, *LEARNERS)
        pop_sampling = _pop_template_sampling
    if name is None or (templates and name in TEMPLATE_SEARCHES):
        if text is not None:
            raise InvalidParameter(
                f"{module} error: search_params is {text:.80}, but there is no search.",
                hint=f"Write search => 'asha', or another one of {', '.join(PARAMETERS)}.",
            )
        return None
    if name not in PARAMETERS and name not in samplers:
        raise InvalidParameter(
            f"{module} error: search is {name!r}; expected one of "
            f"{', '.join((*samplers, *PARAMETERS))}.",
            hint=guess_match(name, (*samplers, *PARAMETERS)),
        )
    values: Any = {} if text is None else read_lists("search_params", text)
    if not isinstance(values, dict):
        raise InvalidParameter(
            f"{module} error: search_params is {text!r:.80}; expected a JSON object.",
            hint="For example search_params => '{\"eta\": 4}'.",
        )
    if templates:
        _refuse_own_arguments(module, values)
    target = _pop_target(module, values)
    options: dict[str, Any] = {
        **_pop_bounds(module, values),
        **_pop_cost_limits(module, values),
    }
    if name == PBT:
        options[QUANTILE] = _check_quantile(module, values.pop(QUANTILE, 0.25))
    if name == PATIENCE:
        options.update(_pop_patience(module, values))
    requested = pop_sampling(module, name, values)
    if name == PBT and requested is None:
        _refuse_population(module)
    rule = GRID if name in SAMPLERS else name
    parameters = _check_parameters(module, rule, values, epochs)
    if templates and FIRST_EPOCHS not in values:
        parameters.pop(FIRST_EPOCHS, None)  # the default grows with the epochs
    return SearchRule(rule, parameters, target, requested, **options)


def _pop_bounds(module: str, values: dict[str, Any]) -> dict[str, int | None]:
    """Return the bounds of a run under any rule, and remove them from the parameters."""
    bounds = {key: values.pop(key, None) for key in (LIVE_STATES, MAX_VISITS)}
    for key, bound in bounds.items():
        if bound is None:
            continue
        if type(bound) is not int or bound < 1:
            raise _invalid(module, key, bound, "a whole number, at least 1")
        check(f"{key} in search_params", bound, COUNTS[key])
    return bounds


def _refuse_own_arguments(module: str, values: Mapping[str, Any]) -> None:
    """Refuse parameters that are arguments of their own in calls with templates."""
    for key in OWN_ARGUMENTS:
        if values.get(key) is None:
            continue
        rest = {name: value for name, value in values.items() if name != key}
        raise InvalidParameter(
            f"{module} error: search_params has {key!r}, which is an argument of its own here.",
            hint=f"Write {key} => {_write_argument(key, values[key])}, search_params => "
            f"{quote_text(json.dumps(rest))}.",
        )


def _write_argument(key: str, value: object) -> str:
    """Return a parameter of search_params as it is typed as an argument."""
    if key == sampling.START_FROM:
        runs = value if isinstance(value, list) else [value]
        return f"ARRAY[{', '.join(quote_text(str(run)) for run in runs)}]"
    if isinstance(value, str):
        return quote_text(value)
    if key == MAX_CPU:
        return quote_text(count_nouns(str(value), "second"))
    return str(value)


def _pop_cost_limits(module: str, values: dict[str, Any]) -> dict[str, float | None]:
    """Return the cost limits, and remove them from the parameters."""
    limits = {key: values.pop(key, None) for key in (MAX_CPU, MAX_COST)}
    for key, value in limits.items():
        if value is None:
            continue
        if type(value) not in (int, float) or not 0 < value < math.inf:
            raise _invalid(module, key, value, f"{LIMIT_VALUES[key]} above 0")
    return limits


def _pop_target(module: str, values: dict[str, Any]) -> float | None:
    """Return the target, if any, and remove it from the parameters."""
    target = values.pop(TARGET, None)
    if target is None:
        return None
    if type(target) not in (int, float) or not math.isfinite(target):
        raise _invalid(module, TARGET, target, "a number")
    return float(target)


def _check_quantile(module: str, value: object) -> float:
    if type(value) not in (int, float) or not 0 < value <= 0.5:  # type: ignore[operator]
        raise _invalid(module, QUANTILE, value, "a number above 0, at most 0.5")
    return float(value)  # type: ignore[arg-type]


def _pop_patience(module: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of patience that are not integers, and remove them from the others."""
    min_delta = values.pop("min_delta", 0.0)
    metric = values.pop("metric", None)
    if type(min_delta) not in (int, float) or not 0 <= min_delta < math.inf:
        raise _invalid(module, "min_delta", min_delta, "a number")
    if metric is not None and (not isinstance(metric, str) or not metric):
        raise _invalid(module, "metric", metric, "a name such as 'val_loss'")
    return {"min_delta": float(min_delta), "metric": metric}


def _invalid(module: str, key: str, value: object, expected: str) -> InvalidParameter:
    return InvalidParameter(
        f"{module} error: {key} in search_params is {value!r:.80}; expected {expected}."
    )


def _refuse_population(module: str) -> None:
    raise InvalidParameter(
        f"{module} error: search is {PBT!r}, but search_params has no space in which parameters "
        "could change.",
        hint=f'Write search_params => \'{{"configs": 8, "space": {sampling.EXAMPLE}}}\'.',
    )


def _pop_sampling(module: str, name: str, values: dict[str, Any]) -> Sampling | None:
    """Return the sampling of further configurations, and remove it from the parameters."""
    options = {key: values.pop(key) for key in sampling.PARAMETERS if key in values}
    if name in SAMPLERS and sampling.SAMPLER in options:
        raise InvalidParameter(
            f"{module} error: search_params has a sampler, but search is one: {name!r}."
        )
    if not options and name not in SAMPLERS:
        return None
    if name == GRID:
        raise InvalidParameter(
            f"{module} error: search_params has {next(iter(options))!r}, but 'grid' draws nothing.",
            hint="Name a sampler as the search, such as 'tpe'.",
        )
    result = read_sampling(module, options, name if name in SAMPLERS else RANDOM)
    check_sampler(module, name, result)
    return result


def _pop_template_sampling(module: str, name: str, values: dict[str, Any]) -> Sampling | None:
    """Return the sampling of templates during the run, and remove it from the parameters."""
    default = CLONES_ONLY if name == PBT else None
    if name not in LEARNERS and sampling.SAMPLER not in values:
        return default
    if name in (*LEARNERS, GRID) and sampling.SAMPLER in values:
        raise InvalidParameter(
            f"{module} error: search_params has a sampler, but search is {name!r}."
        )
    sampler = values.pop(sampling.SAMPLER, name)
    if sampler not in SAMPLERS:
        raise InvalidParameter(
            f"{module} error: sampler in search_params is {sampler!r:.80}; expected one of "
            f"{', '.join(SAMPLERS)}.",
            hint=guess_match(str(sampler), SAMPLERS),
        )
    result = Sampling(sampler, {}, 0)
    check_sampler(module, name, result)
    if not result.learns:
        return default
    return result


def check_sampler(module: str, name: str, requested: Sampling) -> None:
    """Check that a sampler that learns has results to learn from when it samples.

    Raises:
        InvalidParameter: the rule starts all configurations at once.
    """
    if requested.learns and name in (HALVING, HYPERBAND, DIAGONALS, PBT):
        raise InvalidParameter(
            f"{module} error: sampler in search_params is {requested.sampler!r}, but {name!r} "
            "begins with all of its configurations, when there is nothing to learn from yet.",
            hint="'asha' draws one after the other.",
        )


def _check_parameters(
    module: str, name: str, values: JsonObject, epochs: int | None
) -> dict[str, int]:
    defaults = PARAMETERS[name]
    for key, value in values.items():
        if key not in defaults:
            raise InvalidParameter(
                f"{module} error: search_params has {key!r}, which {name!r} does not know; expected"
                f" {', '.join((*defaults, TARGET))}.",
                hint=guess_match(key, (*defaults, TARGET)),
            )
        if type(value) is not int or value < MINIMA[key]:
            raise _invalid(module, key, value, f"a whole number, at least {MINIMA[key]}")
        check(f"{key} in search_params", value, COUNTS[key])
    parameters = {**defaults, **values}
    if name == DIAGONALS:
        Hyperband(**parameters).check(module)
    for key in (FIRST_EPOCHS, "interval"):
        if epochs is not None and parameters.get(key, 1) > epochs:
            raise InvalidParameter(
                f"{module} error: {key} in search_params is {parameters[key]}, "
                f"but there are {count_nouns(epochs, 'epoch')}."
            )
    return parameters
