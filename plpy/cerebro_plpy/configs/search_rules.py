"""Search rules by the names and parameters that a call gives them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.configs.keras_names import near_matches
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.hopping.rules import Asha, Median, Rule, Stepwise, UntilReached, halving, hyperband, rungs
from cerebro_plpy.records import dataclass

GRID, HALVING, HYPERBAND, ASHA, MEDIAN = "grid", "halving", "hyperband", "asha", "median"
PARAMETERS: Mapping[str, Mapping[str, int]] = {
    GRID: {},
    HALVING: {"eta": 3, "first_epochs": 1},
    HYPERBAND: {"eta": 3},
    ASHA: {"eta": 3, "first_epochs": 1},
    MEDIAN: {"grace_epochs": 1, "others": 5},
}
"""Their parameters, whole numbers, with what is usual."""
TARGET = "target"
"""A parameter of all of them: the value of the metric that ranks at which all is over."""
LEAST: Mapping[str, int] = {"eta": 2, "first_epochs": 1, "grace_epochs": 0, "others": 1}


class Span(NamedTuple):
    """The epochs of a run, and those after which metrics are computed anyway; whether larger values are better."""

    epochs: int
    evaluated: Sequence[int]
    descending: bool = False


@dataclass(frozen=True)
class SearchRule:
    """A rule as a call names it, with all of its parameters."""

    name: str
    parameters: Mapping[str, int]
    target: float | None = None

    @property
    def every_epoch(self) -> bool:
        """Whether it looks at each evaluation, so that there should be many."""
        return self.name in (GRID, MEDIAN)

    def share(self, epochs: int) -> float:
        """About what part of so many epochs a configuration trains.

        >>> round(SearchRule("asha", {"eta": 3, "first_epochs": 1}).share(27), 3), SearchRule("grid", {}).share(27)
        (0.111, 1.0)
        """
        if self.name in (GRID, MEDIAN):
            return 1.0
        eta = self.parameters["eta"]
        ends = rungs(epochs, eta, min(epochs, self.parameters.get("first_epochs", 1)))
        steps = [end - start for start, end in zip((0, *ends), ends)]
        halved: float = sum(step / eta**number for number, step in enumerate(steps)) / epochs
        return halved if self.name in (HALVING, ASHA) else min(1.0, len(ends) * halved)

    def over(self, mst_keys: Sequence[int], span: Span) -> Rule:
        """The rule for a run of these configurations."""
        rule = self._over(mst_keys, span)
        if self.target is None:
            return rule
        return UntilReached(rule, -self.target if span.descending else self.target)

    def _over(self, mst_keys: Sequence[int], span: Span) -> Rule:
        values, keys = self.parameters, sorted(mst_keys)
        if self.name == ASHA:
            return Asha(span.epochs, values["eta"], values["first_epochs"])
        if self.name == HALVING:
            return halving(keys, span.epochs, values["eta"], values["first_epochs"])
        if self.name == HYPERBAND:
            return hyperband(keys, span.epochs, values["eta"])
        if self.name == MEDIAN:
            return Median(span.evaluated, values["grace_epochs"], values["others"])
        return Stepwise(span.evaluated)


def read_rule(
    module: str, name: str | None, text: str | None, epochs: int | None, others: Sequence[str] = ()
) -> SearchRule | None:
    """The rule that a call asks for; None where it asks for none. InvalidParameter where it is none, or cannot be.

    The run has so many epochs, if that is known. `others` are searches that are none of these.
    """
    if name is None:
        if text is not None:
            raise InvalidParameter(
                f"{module} error: search_params is {text:.80}, but there is no search.",
                hint=f"Add search => one of {', '.join(map(repr, PARAMETERS))}.",
            )
        return None
    if name not in PARAMETERS:
        raise InvalidParameter(
            f"{module} error: search is {name!r}; expected one of {', '.join((*others, *PARAMETERS))}.",
            hint=near_matches(name, (*others, *PARAMETERS)),
        )
    given: Any = {} if text is None else json.loads(text)
    if not isinstance(given, dict):
        raise InvalidParameter(
            f"{module} error: search_params is {text!r:.80}; expected a JSON object.",
            hint="For example search_params => '{\"eta\": 4}'.",
        )
    target = given.pop(TARGET, None)
    if target is not None and (type(target) not in (int, float) or not math.isfinite(target)):
        raise InvalidParameter(f"{module} error: target in search_params is {target!r:.80}; expected a number.")
    return SearchRule(name, _parameters(module, name, given, epochs), None if target is None else float(target))


def _parameters(module: str, name: str, given: Mapping[str, Any], epochs: int | None) -> dict[str, int]:
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
                f"{module} error: {key} in search_params is {value!r:.80}; expected a whole number, at least"
                f" {LEAST[key]}."
            )
    found = {**known, **given}
    if epochs is not None and found.get("first_epochs", 1) > epochs:
        raise InvalidParameter(
            f"{module} error: first_epochs in search_params is {found['first_epochs']}, but there are {epochs} epochs."
        )
    return found
