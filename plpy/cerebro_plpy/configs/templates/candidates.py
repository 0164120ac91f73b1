"""The configurations of templates that are tried on a table, in order.

Tuned defaults and good configurations of earlier runs come first, then random ones. A caller's
`space` defines fields: a value fixes a field, and a list replaces the field's own distribution. A
field that a template does not have is ignored for this template.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from random import Random
from typing import NamedTuple

from cerebro_plpy.configs.search_space.distributions import (
    Choices,
    Distribution,
    Range,
    read_distribution,
)
from cerebro_plpy.configs.templates.layers.model_io import Classes, Head
from cerebro_plpy.configs.templates.template import Field, Params, Template, suggest_field
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.records import replace

CONFIG_COUNTS = ((100, 8), (500, 16), (2500, 24), (10_000, 40), (100_000, 100))
"""Numbers of training rows, and of configurations that are worth trying on them.

With more configurations on so few rows, the best one is the best by chance. AutoGluon's presets
have half as many for the fewest rows, but a model of theirs has many networks.
"""
MANY_ROWS = 2000
"""With fewer rows, the templates' starts come after their defaults."""
DIGITS = 4
"""Significant digits of a random number."""
MAX_FRUITLESS_DRAWS = 100
"""Random draws without a new configuration, after which a space counts as exhausted."""
CALIBRATED_METRICS = ("log_loss", "auc", "f1", "balanced_accuracy", "average_precision", "brier")
"""Metrics for which a search goes by the loss, which label smoothing worsens."""


class Proposal(NamedTuple):
    """A configuration to try."""

    template: Template
    params: Params
    reason: str


class PriorConfig(NamedTuple):
    """A good configuration of an earlier run."""

    template: str
    params: Mapping[str, object]
    origin: str  # reason of its proposal
    run_id: int


class PriorConfigs(NamedTuple):
    """Configurations of earlier runs."""

    requested: Sequence[PriorConfig] = ()  # by the call; tried before the defaults
    similar: Sequence[PriorConfig] = ()  # of similar tables; tried after the defaults

    @property
    def runs(self) -> list[int]:
        """The ids of the earlier runs."""
        return list(dict.fromkeys(config.run_id for config in (*self.requested, *self.similar)))


NO_PRIOR_CONFIGS = PriorConfigs()


class SearchGoal(NamedTuple):
    """The target and the space of a search."""

    head: Head
    rows: int  # training rows
    space: Mapping[str, object]  # the caller's definitions of fields


def make_search_goal(
    head: Head, metric: str | None, rows: int, space: Mapping[str, object]
) -> SearchGoal:
    """Return the goal of a search that ranks by a metric."""
    if isinstance(head, Classes) and metric in CALIBRATED_METRICS:
        head = replace(head, calibrated=True)
    return SearchGoal(head, rows, space)


def choose_config_count(rows: int) -> int:
    """Return the number of configurations that are worth trying on so many training rows.

    >>> [choose_config_count(rows) for rows in (5, 100, 300, 2500, 10**9)]
    [8, 8, 12, 24, 100]
    """
    index = bisect([max_rows for max_rows, _ in CONFIG_COUNTS], rows)
    if index == 0:
        return CONFIG_COUNTS[0][1]
    if index == len(CONFIG_COUNTS):
        return CONFIG_COUNTS[-1][1]
    low_rows, low_count = CONFIG_COUNTS[index - 1]
    high_rows, high_count = CONFIG_COUNTS[index]
    return low_count + (high_count - low_count) * (rows - low_rows) // (high_rows - low_rows)


def check_space(module: str, templates: Sequence[Template], space: Mapping[str, object]) -> None:
    """Check the caller's definitions of fields.

    Raises:
        InvalidParameter: no template has such a field, or a field may not have such a value.
    """
    fields = [field for template in templates for field in template.fields]
    names = {field.name for field in fields}
    for name in space:
        if name not in names:
            raise InvalidParameter(
                f"{module} error: space has {name!r}, which is a field of none of the templates"
                f" {', '.join(template.name for template in templates)}.",
                hint=suggest_field(name, names),
            )
    try:
        for field in fields:
            _read_definition(field, space)
    except InvalidParameter as error:
        raise InvalidParameter(
            f"{module} error: space: {error.message}", hint=error.hint
        ) from error


def propose_configs(
    templates: Sequence[Template],
    goal: SearchGoal,
    seed: int,
    prior_configs: PriorConfigs = NO_PRIOR_CONFIGS,
    existing: Iterable[tuple[str, Params]] = (),
    *,
    learning: bool = False,
) -> Iterator[Proposal]:
    """Yield different configurations, alternating between templates.

    The iterator ends when the space is nearly exhausted.

    Args:
        existing: configurations that are not proposed again.
        learning: the search suggests the random configurations itself.

    Raises:
        InvalidParameter: see `check_space`.
    """
    iterators = [
        _propose_forever(template, goal, Random(f"{seed}/{template.name}"))
        for template in templates
    ]
    known_keys = {config_key(*config) for config in existing}

    def select_new(proposals: Iterable[Proposal]) -> Iterator[Proposal]:
        for proposal in proposals:
            key = config_key(proposal.template.name, proposal.params)
            if key not in known_keys:
                known_keys.add(key)
                yield proposal

    yield from select_new(_propose_prior(templates, goal, seed, prior_configs.requested))
    for iterator in iterators:
        yield from select_new(islice(iterator, 1))
    for iterator, template in zip(iterators, templates):
        start_count = len(template.starts) + len(template.find_skewed_starts(goal.head))
        yield from select_new(islice(iterator, start_count))
    yield from select_new(_propose_prior(templates, goal, seed, prior_configs.similar))
    while iterators and not learning:
        # All templates draw their configurations before the first one of a round is yielded.
        drawn_proposals = [
            (iterator, next(select_new(islice(iterator, MAX_FRUITLESS_DRAWS)), None))
            for iterator in iterators
        ]
        iterators = [iterator for iterator, proposal in drawn_proposals if proposal]
        yield from (proposal for _, proposal in drawn_proposals if proposal)


def config_key(template: str, params: Params) -> tuple[object, ...]:
    """Return a hashable key that is the same for equal configurations.

    >>> config_key("linear", {"lr": 1.0, "depth": 2}) == config_key("linear", {"depth": 2, "lr": 1})
    True
    """
    names = sorted(params)
    return (template, *names, *(params[name] for name in names))


def _propose_forever(template: Template, goal: SearchGoal, random: Random) -> Iterator[Proposal]:
    """Yield the defaults and starts of a template within the space, then random ones."""
    defaults = {field.name: field.find_default(goal.head) for field in template.fields}
    starts: tuple[Params, ...] = ({}, *template.starts)
    if goal.rows >= MANY_ROWS:
        starts = (*template.starts, {})
    first, *later_starts = starts
    for start in (first, *template.find_skewed_starts(goal.head), *later_starts):
        values = _fit_space(template, goal.space, {**defaults, **start}, random)
        reason = "good to begin with" if start else "usual values"
        yield Proposal(template, template.params(goal.head, goal.rows, values), reason)
    distributions = find_distributions(template, goal)
    while True:
        values = {
            name: round_value(distribution.draw(random))
            for name, distribution in distributions.items()
        }
        params = template.params(goal.head, goal.rows, values)
        yield Proposal(template, params, "drawn at random")


def find_distributions(template: Template, goal: SearchGoal) -> dict[str, Distribution]:
    """Return the distribution of each field of a template."""
    return {
        field.name: _read_definition(field, goal.space) or field.find_distribution(goal.head)
        for field in template.fields
    }


def _propose_prior(
    templates: Sequence[Template], goal: SearchGoal, seed: int, configs: Sequence[PriorConfig]
) -> Iterator[Proposal]:
    """Yield the configurations of templates that are tried.

    If the fields of a template have changed, the remaining ones are used.
    """
    by_name = {template.name: template for template in templates}
    for number, config in enumerate(configs):
        template = by_name.get(config.template)
        if template is None:
            continue
        values = {
            field.name: config.params.get(field.name, field.find_default(goal.head))
            for field in template.fields
        }
        random = Random(f"{seed}/{config.template}/{number}")
        with suppress(InvalidParameter):
            values = _fit_space(template, goal.space, values, random)
            params = template.params(goal.head, goal.rows, values)
            yield Proposal(template, params, config.origin)


def _fit_space(
    template: Template, space: Mapping[str, object], values: Mapping[str, object], random: Random
) -> dict[str, object]:
    """Return the values, with random ones of the space instead of those outside it."""
    definitions = {field.name: _read_definition(field, space) for field in template.fields}
    fitted = {}
    for name, value in values.items():
        distribution = definitions[name]
        if distribution is not None and not _contains(distribution, value):
            value = distribution.draw(random)
        fitted[name] = value
    return fitted


def round_value(value: object) -> object:
    """Return a number with few digits, for readability; further digits do not matter."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    return value


def _read_definition(field: Field, space: Mapping[str, object]) -> Distribution | None:
    """Return the caller's definition of a field, if there is one."""
    if field.name not in space:
        return None
    definition = space[field.name]
    if not isinstance(definition, list):
        return Choices((field.check_value(definition),))
    distribution = read_distribution(field.name, definition, field.is_whole)
    if isinstance(distribution, Range):
        field.check_value(distribution.low)
        field.check_value(distribution.high)
        return distribution
    return Choices(tuple(field.check_value(value) for value in distribution.values))


def _contains(distribution: Distribution, value: object) -> bool:
    if isinstance(distribution, Range):
        return isinstance(value, (int, float)) and distribution.low <= value <= distribution.high
    return value in distribution.values
