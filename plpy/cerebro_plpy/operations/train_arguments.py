"""The arguments of `cerebro.train` and `cerebro.plan`, and what can be said of them without a look
at the table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from cerebro_plpy import limits
from cerebro_plpy.configs.json_arguments import read_lists
from cerebro_plpy.configs.params import frameworks
from cerebro_plpy.configs.params.keras_names import near_matches
from cerebro_plpy.configs.search_space.search_arguments import read_search_rule
from cerebro_plpy.configs.search_space.search_rules import PBT, SearchRule
from cerebro_plpy.configs.templates.candidates import check_space
from cerebro_plpy.configs.templates.networks.custom import wrap_network
from cerebro_plpy.configs.templates.registry import DEFAULT_TEMPLATES, find_template
from cerebro_plpy.configs.templates.template import Template
from cerebro_plpy.database.call_checks import check_flat, check_positive, read_seconds
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import (
    FeatureNotSupported,
    InvalidParameter,
    NullNotAllowed,
    UndefinedObject,
)
from cerebro_plpy.operations.fit.cost_limits import make_cost_limits
from cerebro_plpy.preprocessing.learning.target import CLASSIFICATION, REGRESSION
from cerebro_plpy.records import dataclass
from cerebro_plpy.scheduling.quota.cost_limits import CostLimits
from cerebro_plpy.tables import architectures
from cerebro_plpy.trainer_client import settings

MODULE = "train"
BUDGET = "5 minutes"
LEAST_SECONDS = 1.0
METRICS: Mapping[str, Mapping[str, str]] = {
    CLASSIFICATION: {"accuracy": "accuracy", "log_loss": "loss", "auc": "auc"},
    REGRESSION: {"rmse": "root_mean_squared_error", "mae": "mean_absolute_error", "r2": "r2_score"},
}
"""What models are compared by, the usual one first, and Keras' names; a loss is computed anyway."""
_LOADED = re.compile(r"(?P<table>.+):(?P<id>[0-9]{1,9})", re.DOTALL)
"""A model of an architecture table, in the place of a template."""


@dataclass(frozen=True)
class TrainArguments:
    """The arguments as they came, None for NULL."""

    source: str | None
    target: str | None
    model: str | None
    budget: str | None
    columns: str | None
    types: str | None
    task: str | None
    split: str | None
    weight: str | None
    models: list[str | None] | None
    space: str | None
    search: str | None
    search_params: str | None
    metric: str | None
    configs: int | None
    epochs: int | None
    ensemble: int | None
    start_from: list[str | None] | None
    seed: int | None
    backend: str | None
    workers: int | None
    use_gpus: bool | None
    background: bool | None
    group_by: str | None
    min_group_rows: int | None
    max_cost: float | None
    max_cpu: str | None


class ParsedArguments(NamedTuple):
    """What they come to, as far as that can be said without the table; `budget` is in seconds.
    Without an `allowance` the run may cost what it does."""

    target: str
    budget: float
    types: Mapping[str, str]
    templates: tuple[Template, ...]
    space: Mapping[str, object]
    rule: SearchRule | None
    cost_limits: CostLimits | None


def read_arguments(db: Database, module: str, arguments: TrainArguments) -> ParsedArguments:
    """Check what can be checked without the table."""
    db.platform.check_process(module)
    limits.check_record(module, arguments)
    if not arguments.target:
        raise NullNotAllowed(
            f"{module} error: target is NULL or empty.", hint="Name the column to predict."
        )
    budget = read_seconds(db, module, "budget", arguments.budget or BUDGET)
    assert budget is not None
    if budget < LEAST_SECONDS:
        raise InvalidParameter(
            f"{module} error: budget is {arguments.budget!r}; expected at least {LEAST_SECONDS:g} "
            "second.",
            hint=f"It is the time for everything; without one it is {BUDGET}.",
        )
    for name in ("configs", "epochs", "ensemble", "workers", "min_group_rows"):
        check_positive(module, name, getattr(arguments, name))
    if arguments.group_by is None and arguments.min_group_rows is not None:
        raise InvalidParameter(
            f"{module} error: min_group_rows is {arguments.min_group_rows}, but there is no "
            "group_by.",
            hint="Name a column: group_by => 'country'.",
        )
    if arguments.group_by is not None:
        db.platform.check_groups(module)
    if arguments.backend is not None and arguments.backend not in frameworks.BACKENDS:
        raise InvalidParameter(
            f"{module} error: backend is {arguments.backend!r}; expected one of "
            f"{', '.join(frameworks.BACKENDS)}."
        )
    rule = read_search_rule(
        module, arguments.search, arguments.search_params, arguments.epochs, templates=True
    )
    if arguments.group_by is not None:
        _check_population(module, rule)
    templates = read_templates(db, module, arguments.models)
    space = parse_object(module, "space", arguments.space)
    check_space(module, templates, space)
    kinds = _parse_types(module, arguments.types)
    max_cpu = read_seconds(db, module, "max_cpu", arguments.max_cpu)
    allowed = make_cost_limits(module, settings.read(db), max_cpu, arguments.max_cost)
    return ParsedArguments(arguments.target, budget, kinds, templates, space, rule, allowed)


def _parse_types(module: str, text: str | None) -> Mapping[str, str]:
    """What columns are to be taken for."""
    types = parse_object(module, "types", text)
    wrong = [name for name, kind in types.items() if not isinstance(kind, str)]
    if wrong:
        raise InvalidParameter(
            f"{module} error: types says {types[wrong[0]]!r} of column {wrong[0]!r}; expected a "
            "text.",
            hint='For example {"zip": "category"}.',
        )
    return {name: str(kind) for name, kind in types.items()}


def _check_population(module: str, rule: SearchRule | None) -> None:
    if rule and rule.name == PBT:
        raise FeatureNotSupported(
            f"{module} error: search is {PBT!r}, but there is group_by: there are no populations "
            "of groups.",
            hint="Leave group_by out, or take another search, such as 'asha'.",
        )


def read_templates(
    db: Database, module: str, names: list[str | None] | None
) -> tuple[Template, ...]:
    """The templates of these names, or for 'table:id' that of an architecture; the usual ones where
    there are none.
    """
    check_flat(module, "models", names)
    if names is None:
        return DEFAULT_TEMPLATES
    if not names or None in names:
        raise NullNotAllowed(
            f"{module} error: models is {names}; expected names of templates, or NULL for the "
            "usual ones.",
            hint="SELECT * FROM cerebro.template;",
        )
    return tuple(_template(db, module, name) for name in dict.fromkeys(names) if name is not None)


def _template(db: Database, module: str, name: str) -> Template:
    loaded = _LOADED.fullmatch(name)
    if loaded is None:
        return find_template(name)
    table, number = (
        architectures.find_table(Catalog(db, module), loaded["table"]),
        int(loaded["id"]),
    )
    found = architectures.read_architectures(LocalSession(db), table, [number])
    if number not in found:
        raise UndefinedObject(
            f"{module} error: models names {name!r}, but {table.spelling} has no model {number}.",
            hint=f"SELECT model_id, name FROM {table.quoted};",
        )
    if found[number].has_weights:
        raise FeatureNotSupported(
            f"{module} error: models names {name!r}, which has weights to begin from; expected one "
            "without.",
            hint="Load the architecture alone. madlib_fit_multiple_model() trains on from weights.",
        )
    return wrap_network(name, found[number].json)


def parse_object(module: str, name: str, text: str | None) -> dict[str, Any]:
    """An argument that is a JSON object; NULL is an empty one."""
    value = {} if text is None else read_lists(name, text)
    if not isinstance(value, dict):
        raise InvalidParameter(
            f"{module} error: {name} is {text!r:.80}; expected a JSON object.",
            hint=f"For example {name} => '{{}}'.",
        )
    return value


def resolve_metric(module: str, task: str, wanted: str | None) -> str:
    """What models for a task are compared by."""
    known = METRICS[task]
    if wanted is not None and wanted not in known:
        raise InvalidParameter(
            f"{module} error: metric is {wanted!r}; expected one of {', '.join(known)} for {task}.",
            hint=near_matches(wanted, known),
        )
    return wanted or next(iter(known))
