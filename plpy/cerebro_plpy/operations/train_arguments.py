"""The arguments of `cerebro.train` and `cerebro.plan`, and the checks that need no table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from cerebro_plpy import limits
from cerebro_plpy.configs.json_arguments import read_lists
from cerebro_plpy.configs.params import frameworks
from cerebro_plpy.configs.params.keras_names import guess_match
from cerebro_plpy.configs.search_space.search_arguments import AUTO, read_search_rule
from cerebro_plpy.configs.search_space.search_rules import PBT, SearchRule
from cerebro_plpy.configs.templates.candidates import check_space
from cerebro_plpy.configs.templates.networks.custom import wrap_network
from cerebro_plpy.configs.templates.registry import DEFAULT_TEMPLATES, find_template
from cerebro_plpy.configs.templates.template import Template
from cerebro_plpy.configs.train_spec import REFITS
from cerebro_plpy.database.call_checks import check_flat, check_positive, read_seconds
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.source_query import check_source_arguments
from cerebro_plpy.errors import (
    FeatureNotSupported,
    InvalidParameter,
    NullNotAllowed,
    UndefinedObject,
    quote_text,
)
from cerebro_plpy.operations.cost_matrix import parse_costs
from cerebro_plpy.operations.fit.cost_limits import make_cost_limits
from cerebro_plpy.preprocessing.learning.target import CLASSIFICATION, REGRESSION
from cerebro_plpy.preprocessing.scoring.class_costs import Costs
from cerebro_plpy.records import dataclass
from cerebro_plpy.scheduling.quota.cost_limits import CostLimits
from cerebro_plpy.tables import architectures
from cerebro_plpy.trainer_client import settings

MODULE = "train"
DEFAULT_BUDGET = "5 minutes"
MIN_BUDGET_SECONDS = 1.0
LOSS = "loss"
RMSE = "root_mean_squared_error"
METRICS: Mapping[str, Mapping[str, str]] = {
    CLASSIFICATION: {
        "accuracy": "accuracy", "log_loss": LOSS, "auc": LOSS, "f1": LOSS,
        "balanced_accuracy": LOSS, "average_precision": LOSS, "brier": LOSS,
    },
    REGRESSION: {"rmse": RMSE, "mae": "mean_absolute_error", "r2": "r2_score", "mape": RMSE},
}  # fmt: skip
"""Metrics that compare models by task, the default first, each with the metric of the search.

The metrics of a search have Keras' names: trainers compute them after each epoch, and the loss in
any case.
"""
FINAL_METRICS = ("auc", "f1", "balanced_accuracy", "average_precision", "brier", "mape")
"""Metrics that are computed at the end only, from the predictions for the hold-out rows.

They choose the version. Until then, the search compares configurations by another metric.
"""
SEARCH_NAMES = {LOSS: "log_loss", RMSE: "rmse"}
"""Names of the metrics that search for `FINAL_METRICS`, as the argument has them."""
STORED_MODEL = re.compile(r"(?P<table>.+):(?P<id>[0-9]{1,9})", re.DOTALL)
"""The name of a model of an architecture table, in place of a template."""


@dataclass(frozen=True)
class TrainArguments:
    """The arguments as passed, None for NULL; sql/56-named-models.sql has the help of each."""

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
    query: str | None = None  # in place of a source; missing in tasks of older sessions
    refit: str | None = None  # missing there, too
    costs: str | None = None  # missing there, too


class ParsedArguments(NamedTuple):
    """The arguments, as far as they can be parsed without the table."""

    target: str
    budget: float  # seconds
    types: Mapping[str, str]  # kinds of features, by column
    templates: tuple[Template, ...]
    space: Mapping[str, object]  # definitions of fields of templates
    rule: SearchRule | None
    cost_limits: CostLimits | None
    costs: Costs  # of mistakes


def read_arguments(db: Database, module: str, arguments: TrainArguments) -> ParsedArguments:
    """Parse and check the arguments, as far as that needs no table.

    Raises:
        InvalidParameter, NullNotAllowed, FeatureNotSupported, UndefinedObject: an argument is
            wrong.
    """
    db.platform.check_process(module)
    limits.check_record(module, arguments)
    check_source_arguments(module, arguments.source, arguments.query)
    if not arguments.target:
        raise NullNotAllowed(
            f"{module} error: target is NULL or empty.", hint="Name the column to predict."
        )
    if arguments.query is not None and not arguments.model:
        raise NullNotAllowed(
            f"{module} error: model is NULL or empty, and a query has no name that a model could "
            "have.",
            hint=f"Name the model, such as model => {quote_text(arguments.target)}.",
        )
    budget = read_budget(db, module, arguments.budget or DEFAULT_BUDGET)
    assert budget is not None
    for name in ("configs", "epochs", "ensemble", "workers", "min_group_rows"):
        check_positive(module, name, getattr(arguments, name))
    if arguments.group_by is None and arguments.min_group_rows is not None:
        raise InvalidParameter(
            f"{module} error: min_group_rows is {arguments.min_group_rows}, but there is no "
            "group_by.",
            hint="Leave min_group_rows out, unless group_by names a column.",
        )
    if arguments.group_by is not None:
        db.platform.check_groups(module)
    if arguments.backend is not None and arguments.backend not in frameworks.BACKENDS:
        raise InvalidParameter(
            f"{module} error: backend is {arguments.backend!r}; expected one of "
            f"{', '.join(frameworks.BACKENDS)}."
        )
    _check_refit(module, arguments.refit)
    rule = read_search_rule(
        module, arguments.search, arguments.search_params, arguments.epochs, templates=True
    )
    if arguments.group_by is not None and rule is not None and rule.name == PBT:
        raise FeatureNotSupported(
            f"{module} error: search is {PBT!r}, but there is group_by: there are no populations "
            "of groups.",
            hint="Leave group_by out, or take another search, such as 'asha'.",
        )
    templates = read_templates(db, module, arguments.models)
    space = parse_object(module, "space", arguments.space)
    check_space(module, templates, space)
    types = _parse_types(module, arguments.types)
    max_cpu = read_seconds(db, module, "max_cpu", arguments.max_cpu)
    cost_limits = make_cost_limits(module, settings.read(db), max_cpu, arguments.max_cost)
    costs = parse_costs(module, arguments.costs)
    return ParsedArguments(
        arguments.target, budget, types, templates, space, rule, cost_limits, costs
    )


def _check_refit(module: str, refit: str | None) -> None:
    if refit is not None and refit not in REFITS:
        raise InvalidParameter(
            f"{module} error: refit is {refit!r}; expected one of {', '.join(map(repr, REFITS))}.",
            hint="Leave refit out for the default.",
        )


def read_budget(db: Database, module: str, text: str | None) -> float | None:
    """Return a budget in seconds; None for NULL.

    Raises:
        InvalidParameter: it is too short for any training.
    """
    budget = read_seconds(db, module, "budget", text)
    if budget is not None and budget < MIN_BUDGET_SECONDS:
        raise InvalidParameter(
            f"{module} error: budget is {text!r}; expected at least {MIN_BUDGET_SECONDS:g} second.",
            hint="It is the time for the whole call, such as budget => '10 minutes'.",
        )
    return budget


def _parse_types(module: str, text: str | None) -> Mapping[str, str]:
    """Return the kinds of features that the caller requests, by column."""
    types = parse_object(module, "types", text)
    for name, kind in types.items():
        if not isinstance(kind, str):
            raise InvalidParameter(
                f"{module} error: types says {kind!r} of column {name!r}; expected a text.",
                hint='For example {"zip": "category"}.',
            )
    return types


def read_templates(
    db: Database, module: str, names: list[str | None] | None
) -> tuple[Template, ...]:
    """Return the named templates; NULL stands for the default ones.

    Args:
        names: names of templates, or 'table:id' for a model of an architecture table.
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
    return tuple(
        _read_template(db, module, name) for name in dict.fromkeys(names) if name is not None
    )


def _read_template(db: Database, module: str, name: str) -> Template:
    match = STORED_MODEL.fullmatch(name)
    if match is None:
        return find_template(name)
    table = architectures.find_table(Catalog(db, module), match["table"])
    number = int(match["id"])
    models = architectures.read_architectures(LocalSession(db), table, [number])
    if number not in models:
        raise UndefinedObject(
            f"{module} error: models names {name!r}, but {table.spelling} has no model {number}.",
            hint=f"SELECT model_id, name FROM {table.quoted};",
        )
    if models[number].has_weights:
        raise FeatureNotSupported(
            f"{module} error: models names {name!r}, which has weights to begin from; expected one "
            "without.",
            hint="Load the architecture alone. madlib_fit_multiple_model() trains on from weights.",
        )
    return wrap_network(name, models[number].json)


def parse_object(module: str, name: str, text: str | None) -> dict[str, Any]:
    """Parse an argument that is a JSON object; NULL stands for an empty one."""
    value = {} if text is None else read_lists(name, text)
    if not isinstance(value, dict):
        raise InvalidParameter(
            f"{module} error: {name} is {text!r:.80}; expected a JSON object.",
            hint=f"For example {name} => '{{}}'.",
        )
    return value


def may_return(arguments: TrainArguments) -> bool:
    """Return whether a run may end before its budget: the call leaves its effort open."""
    is_open = not (arguments.configs or arguments.epochs or arguments.group_by)
    return is_open and arguments.search in (None, AUTO)


def resolve_metric(module: str, task: str, name: str | None) -> str:
    """Return the metric that compares models for a task; NULL stands for the default one."""
    metrics = METRICS[task]
    if name is not None and name not in metrics:
        raise InvalidParameter(
            f"{module} error: metric is {name!r}; expected one of {', '.join(metrics)} for {task}.",
            hint=guess_match(name, metrics),
        )
    return name or next(iter(metrics))
