"""Configurations of templates that an act lets join a run of `cerebro.train`.

Their fields are chosen and checked in the session of whoever asks, so that the run gets them as
they are.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice, product
from math import prod
from typing import Any, NamedTuple

from cerebro_plpy.configs.architecture.model_shapes import have_same_sizes
from cerebro_plpy.configs.params.keras_names import near_matches
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
from cerebro_plpy.errors import DatatypeMismatch, FeatureNotSupported, InvalidParameter
from cerebro_plpy.limits import TRIED_CONFIGS, Poll, poll_between
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.tables.template_configs import TemplateConfig, find_loaded_templates, read_head

MODELS = "models"


class TemplateRun(NamedTuple):
    """A run of cerebro.train: what its call was asked, the templates that its configurations may be
    of, by name, and the configurations that it has."""

    train: TrainSpec
    templates: Mapping[str, Template]
    configs: Sequence[TemplateConfig]
    poll: Poll  # for who goes through many configurations

    def searched(self, space: Mapping[str, object]) -> SearchGoal:
        """What configurations of it are for, where somebody says that of their fields."""
        return make_search_goal(
            read_head(self.train), self.train.metric, self.train.training_rows, space
        )

    def architecture(self, filled: TemplateConfig) -> Mapping[str, Any]:
        """The network that a template comes to; raises InvalidParameter where it does not fit the
        table.
        """
        inputs = Recipe.from_json(self.train.recipe).table
        found: dict[str, Any] = json.loads(
            filled.template.architecture(inputs, read_head(self.train), filled.params)
        )
        return found


def template_run(db: Database, module: str, run_id: int | None) -> TemplateRun | None:
    """A run, if it is one of cerebro.train; FeatureNotSupported where none can join it."""
    found = db.peek(sql("act.trained"), run_id)
    if not found:
        return None
    train = TrainSpec.from_json(json.loads(found[0]["train"]))
    if train.start:
        raise FeatureNotSupported(
            f"{module} error: run {run_id} refreshes a version of model {train.model!r}: no "
            "configuration can join it.",
            hint="Begin a run by cerebro.train(…, start_from => …).",
        )
    rows = db.peek(sql("act.configs"), run_id)
    named = {
        template.name: template
        for template in select_suitable(TEMPLATES, Recipe.from_json(train.recipe).table)
    }
    templates = {
        **named,
        **find_loaded_templates({row["template"]: row["architecture"] for row in rows}),
    }
    return TemplateRun(
        train, templates, [filled_of(templates, row) for row in rows], db.check_interrupts
    )


def filled_of(templates: Mapping[str, Template], row: Row) -> TemplateConfig:
    """A configuration as the log has it."""
    return TemplateConfig(templates[row["template"]], json.loads(row["params"]))


def changed(
    module: str, run: TemplateRun, config: Row, fields: Mapping[str, object], warm: bool
) -> dict[str, Any]:
    """The row of a configuration with other values of fields; NULL stands for the usual one."""
    before = filled_of(run.templates, config)
    told = {name: value for name, value in fields.items() if value is not None}
    kept = {name: value for name, value in before.params.items() if name not in fields}
    after = _filled(module, run, before.template, {**kept, **told})
    if warm and not have_same_sizes(run.architecture(before), run.architecture(after)):
        raise DatatypeMismatch(
            f"{module} error: the weights of mst_key {config['mst_key']} do not fit a network with"
            f" {', '.join(f'{name} => {value!r}' for name, value in fields.items())}.",
            hint="With warm => false it begins with weights of its own.",
        )
    return _row(after)


def _filled(
    module: str, run: TemplateRun, template: Template, values: Mapping[str, object]
) -> TemplateConfig:
    searched = run.searched({})
    try:
        return TemplateConfig(template, template.params(searched.head, searched.rows, values))
    except InvalidParameter as error:
        raise InvalidParameter(f"{module} error: {error.message}", hint=error.hint) from error


def drawn(
    module: str, run: TemplateRun, space: Mapping[str, Any], n: int | None
) -> list[dict[str, Any]]:
    """So many configurations of a space, or all that it holds, none of which the run has."""
    wanted = space.get(MODELS, list(dict.fromkeys(each.template.name for each in run.configs)))
    return _drawn(
        module, run, _named(module, run, wanted), {k: v for k, v in space.items() if k != MODELS}, n
    )


def around(
    module: str, run: TemplateRun, config: Row, space: Mapping[str, Any], n: int | None
) -> list[dict[str, Any]]:
    """Such configurations that are like one, but for what a space says."""
    filled = filled_of(run.templates, config)
    check_space(module, [filled.template], space)
    return _drawn(module, run, [filled.template], {**filled.params, **space}, n)


def _named(module: str, run: TemplateRun, names: object) -> list[Template]:
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
                hint=near_matches(name, run.templates),
            )
    return [run.templates[name] for name in dict.fromkeys(names)]


def _drawn(
    module: str,
    run: TemplateRun,
    templates: Sequence[Template],
    space: Mapping[str, Any],
    n: int | None,
) -> list[dict[str, Any]]:
    check_space(module, templates, space)
    if n is not None and not 1 <= n <= TRIED_CONFIGS.maximum:
        raise InvalidParameter(
            f"{module} error: n is {n}; expected a number of configurations, from 1 to "
            f"{TRIED_CONFIGS.maximum}."
        )
    searched, there = (
        run.searched(space),
        [(each.template.name, each.params) for each in run.configs],
    )
    if n is None:
        held = {config_key(*each) for each in there}
        every = poll_between(_all(module, templates, searched), run.poll)
        found = [each for each in every if config_key(each.template.name, each.params) not in held]
    else:
        proposed = poll_between(
            propose_configs(templates, searched, secrets.randbits(31), existing=there), run.poll
        )
        found = [TemplateConfig(each.template, each.params) for each in islice(proposed, n)]
    if not found:
        raise InvalidParameter(f"{module} error: the run has all configurations of the space.")
    for template in {each.template.name: each for each in found}.values():
        run.architecture(template)  # one that was loaded may not fit
    return [_row(each) for each in found]


def _all(
    module: str, templates: Sequence[Template], searched: SearchGoal
) -> Iterator[TemplateConfig]:
    """All configurations of a space without ranges."""
    draws = [find_distributions(template, searched) for template in templates]
    counts = [[len(draw.values or ()) for draw in each.values()] for each in draws]
    if not 0 < min(map(prod, counts)) <= sum(map(prod, counts)) <= TRIED_CONFIGS.maximum:
        raise InvalidParameter(
            f"{module} error: the space has ranges, or more than {TRIED_CONFIGS.maximum} "
            "configurations; expected n, how many of them are to be drawn.",
            hint="A field that it does not name is drawn from its own range: see the view "
            "cerebro.template.",
        )
    for template, fields in zip(templates, draws):
        values: Collection[Sequence[object]] = [draw.values or () for draw in fields.values()]
        for each in product(*values):
            yield TemplateConfig(
                template, template.params(searched.head, searched.rows, dict(zip(fields, each)))
            )


def _row(filled: TemplateConfig) -> dict[str, Any]:
    return {"template": filled.template.name, "params": dict(filled.params)}
