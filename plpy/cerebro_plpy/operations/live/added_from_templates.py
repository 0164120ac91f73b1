"""Configurations of templates that a command adds to a live run of `cerebro.train`.

Their fields are chosen and checked in the session that issues the command, so that the run has
exactly these.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from math import prod
from typing import Any, NamedTuple

from cerebro_plpy.configs.architecture.model_shapes import have_same_sizes
from cerebro_plpy.configs.params.keras_names import guess_match
from cerebro_plpy.configs.templates.candidates import (
    SearchGoal,
    check_space,
    config_key,
    find_distributions,
    make_search_goal,
    propose_configs,
)
from cerebro_plpy.configs.templates.registry import TEMPLATES, select_suitable
from cerebro_plpy.configs.templates.template import Template
from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.errors import DatatypeMismatch, FeatureNotSupported, InvalidParameter, quote_text
from cerebro_plpy.limits import TRIED_CONFIGS, Poll, poll_between
from cerebro_plpy.operations.live.learning_rates import rename_rate
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.tables.template_configs import TemplateConfig, find_loaded_templates, read_head

MODELS = "models"
RATE = "lr"
"""Field of the learning rate of networks."""


class TemplateRun(NamedTuple):
    """A run of `cerebro.train`."""

    train: TrainSpec
    templates: Mapping[str, Template]  # that configurations may have, by name
    configs: Sequence[TemplateConfig]
    poll: Poll  # to call between many configurations

    def make_goal(self, space: Mapping[str, object]) -> SearchGoal:
        """Return the goal of the run's search with a caller's space."""
        train = self.train
        return make_search_goal(read_head(train), train.metric, train.split.training_rows, space)

    def build_architecture(self, config: TemplateConfig) -> Mapping[str, Any]:
        """Return the network of a configuration.

        Raises:
            InvalidParameter: it does not fit the table.
        """
        inputs = Recipe.from_json(self.train.recipe).table
        head = read_head(self.train)
        text = config.template.build_architecture(inputs, head, config.params, epochs=1)
        architecture: JsonObject = json.loads(text)
        return architecture


def find_template_run(db: Database, module: str, run_id: int | None) -> TemplateRun | None:
    """Return a run of `cerebro.train`; None for another run.

    Raises:
        FeatureNotSupported: no configuration can be added to the run.
    """
    runs = db.peek(sql("act.trained"), run_id)
    if not runs:
        return None
    train = TrainSpec.from_json(json.loads(runs[0]["train"]))
    if train.start:
        raise FeatureNotSupported(
            f"{module} error: run {run_id} refreshes a version of model {train.model!r}: "
            "configurations cannot be added to it.",
            hint=f"To try others: {_suggest_train_call(train)}",
        )
    rows = db.peek(sql("act.configs"), run_id)
    suitable = select_suitable(TEMPLATES, Recipe.from_json(train.recipe).table)
    loaded = find_loaded_templates({row["template"]: row["architecture"] for row in rows})
    templates = {**{template.name: template for template in suitable}, **loaded}
    configs = [_read_config(templates, row) for row in rows]
    return TemplateRun(train, templates, configs, db.check_interrupts)


def _suggest_train_call(train: TrainSpec) -> str:
    """Return a call that tries configurations for a model, its best ones first."""
    model = quote_text(train.model)
    if train.query is not None:
        return (
            f"SELECT * FROM cerebro.train(NULL, {quote_text(train.target)}, {model}, "
            f"start_from => ARRAY[{model}], query => {quote_text(train.query.text)});"
        )
    names = map(quote_text, (train.relation, train.target, train.model))
    return f"SELECT * FROM cerebro.train({', '.join(names)}, start_from => ARRAY[{model}]);"


def _read_config(templates: Mapping[str, Template], row: Row) -> TemplateConfig:
    """Read a configuration of the log."""
    return TemplateConfig(templates[row["template"]], json.loads(row["params"]))


def change_config(
    module: str, run: TemplateRun, row: Row, fields: Mapping[str, object], warm: bool
) -> JsonObject:
    """Return the row of a configuration with other values of fields.

    Args:
        row: the configuration to change.
        fields: values by name; None stands for the default value.
        warm: the new configuration will start from the weights of the other one.
    """
    config = _read_config(run.templates, row)
    changes: Mapping[str, object] = fields
    if RATE in config.params:
        changes = rename_rate(module, fields, RATE)
    values: dict[str, object] = {**config.params, **changes}
    values = {name: value for name, value in values.items() if value is not None}
    goal = run.make_goal({})
    try:
        params = config.template.params(goal.head, goal.rows, values)
    except InvalidParameter as error:
        raise InvalidParameter(f"{module} error: {error.message}", hint=error.hint) from error
    changed_config = TemplateConfig(config.template, params)
    if warm and not config.template.resumes_states:
        raise FeatureNotSupported(
            f"{module} error: mst_key {row['mst_key']} is of template {config.template.name!r}, "
            "whose configurations cannot begin from the state of another one.",
            hint="Write warm => false: the clone then begins anew.",
        )
    if warm and not have_same_sizes(
        run.build_architecture(config), run.build_architecture(changed_config)
    ):
        raise DatatypeMismatch(
            f"{module} error: the weights of mst_key {row['mst_key']} do not fit a network with"
            f" {', '.join(f'{name} => {value!r}' for name, value in fields.items())}.",
            hint="Write warm => false: the clone then begins anew.",
        )
    return _make_row(changed_config)


def draw_configs(
    module: str, run: TemplateRun, space: Mapping[str, Any], n: int | None
) -> list[JsonObject]:
    """Draw configurations that a run does not have; without `n`, all of the space."""
    default_names = list(dict.fromkeys(config.template.name for config in run.configs))
    templates = _find_templates(module, run, space.get(MODELS, default_names))
    fields = {name: value for name, value in space.items() if name != MODELS}
    return _draw_configs(module, run, templates, fields, n)


def draw_configs_around(
    module: str, run: TemplateRun, row: Row, space: Mapping[str, Any], n: int | None
) -> list[JsonObject]:
    """Draw configurations like the one in `row`, in which only the fields of a space vary."""
    config = _read_config(run.templates, row)
    check_space(module, [config.template], space)
    return _draw_configs(module, run, [config.template], {**config.params, **space}, n)


def _find_templates(module: str, run: TemplateRun, names: object) -> list[Template]:
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise InvalidParameter(
            f"{module} error: {MODELS} of the space is {names!r:.80}; expected names of templates.",
            hint="SELECT DISTINCT template FROM cerebro.template;",
        )
    for name in names:
        if name not in run.templates:
            raise InvalidParameter(
                f"{module} error: {MODELS} of the space names {name!r}; expected templates that "
                f"are for the columns of the run: {', '.join(run.templates)}.",
                hint=guess_match(name, run.templates),
            )
    return [run.templates[name] for name in dict.fromkeys(names)]


def _draw_configs(
    module: str,
    run: TemplateRun,
    templates: Sequence[Template],
    space: Mapping[str, Any],
    n: int | None,
) -> list[JsonObject]:
    check_space(module, templates, space)
    if n is not None and not 1 <= n <= TRIED_CONFIGS.maximum:
        raise InvalidParameter(
            f"{module} error: configs is {n}; expected a number of configurations, from 1 to "
            f"{TRIED_CONFIGS.maximum}."
        )
    goal = run.make_goal(space)
    if n is None:
        configs = _list_new_configs(module, run, templates, goal)
    else:
        existing = [(config.template.name, config.params) for config in run.configs]
        proposals = propose_configs(templates, goal, secrets.randbits(31), existing=existing)
        configs = [
            TemplateConfig(proposal.template, proposal.params)
            for proposal in islice(poll_between(proposals, run.poll), n)
        ]
    if not configs:
        raise InvalidParameter(f"{module} error: the run has all configurations of the space.")
    for config in {config.template.name: config for config in configs}.values():
        run.build_architecture(config)  # a template with a loaded network may not fit
    return [_make_row(config) for config in configs]


def _list_new_configs(
    module: str, run: TemplateRun, templates: Sequence[Template], goal: SearchGoal
) -> list[TemplateConfig]:
    """Return all configurations of a space without ranges, except those of the run."""
    existing = {config_key(config.template.name, config.params) for config in run.configs}
    configs = poll_between(_list_all_configs(module, templates, goal), run.poll)
    return [
        config
        for config in configs
        if config_key(config.template.name, config.params) not in existing
    ]


def _list_all_configs(
    module: str, templates: Sequence[Template], goal: SearchGoal
) -> Iterator[TemplateConfig]:
    """Yield all configurations of a space without ranges."""
    choices = []
    for template in templates:
        distributions = find_distributions(template, goal)
        choices.append({name: draw.values or () for name, draw in distributions.items()})
    sizes = [prod(map(len, fields.values())) for fields in choices]
    if min(sizes) < 1 or sum(sizes) > TRIED_CONFIGS.maximum:
        raise InvalidParameter(
            f"{module} error: the space has ranges, or more than {TRIED_CONFIGS.maximum} "
            "configurations; expected configs, the number of them to draw.",
            hint="A field that it does not name is drawn from its own range: see the view "
            "cerebro.template.",
        )
    for template, fields in zip(templates, choices):
        for values in product(*fields.values()):
            params = template.params(goal.head, goal.rows, dict(zip(fields, values)))
            yield TemplateConfig(template, params)


def _make_row(config: TemplateConfig) -> JsonObject:
    return {"template": config.template.name, "params": dict(config.params)}
