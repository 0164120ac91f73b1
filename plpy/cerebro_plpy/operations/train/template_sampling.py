"""Sampling of configurations from the fields of the templates that a call of `cerebro.train` tries.

A search begins with good defaults of the templates. Its sampler learns from their results and from
earlier runs, and suggests further configurations during the run. Population based training varies
the best configurations instead.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from cerebro_plpy.configs.run_spec import RunSpec
from cerebro_plpy.configs.search_space.sampling import Sampling
from cerebro_plpy.configs.templates.candidates import make_search_goal
from cerebro_plpy.configs.templates.registry import find_template
from cerebro_plpy.configs.templates.template import Template
from cerebro_plpy.configs.templates.template_space import TemplateSpace
from cerebro_plpy.database.sessions.spi import Row
from cerebro_plpy.operations.fit.prior_runs import has_point
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.run.request.run_request import SamplingPlan
from cerebro_plpy.tables.template_configs import find_loaded_templates, read_head


def plan_sampling(
    spec: RunSpec,
    sampling: Sampling,
    templates: Sequence[Template],
    configs: Mapping[int, Mapping[str, Any]],
    groups: Sequence[str | None],
) -> SamplingPlan:
    """Plan the configurations that are added to the existing ones.

    Each group has a selection of its own, as have all rows.

    Args:
        configs: `template` and `params` of existing configurations, by mst_key.
        groups: group of each configuration of the call or the search; None for all rows.
    """
    train = spec.train
    assert train is not None
    goal = make_search_goal(read_head(train), train.metric, train.split.training_rows, train.space)
    space = TemplateSpace(templates, goal, Recipe.from_json(train.recipe).table)
    counts = Counter(groups)
    count = 0
    if sampling.learns:
        count = train.configs
    return SamplingPlan(
        space=space,
        sampler=sampling.sampler,
        remaining=max(0, count - counts[None]),
        points={},
        existing_points={key: space.find_point(config) for key, config in configs.items()},
        remaining_by_group={
            group: max(0, count - counts[group]) for group in train.grouping.layouts
        },
    )


def resume_sampling(spec: RunSpec, sampling: Sampling, log: Sequence[Row]) -> SamplingPlan:
    """Plan the sampling of an interrupted run.

    Args:
        log: its configurations, including those that commands have added.
    """
    assert spec.train is not None
    loaded = find_loaded_templates({row["template"]: row["architecture"] for row in log})
    templates = [loaded.get(name) or find_template(name) for name in spec.train.template_names]
    configs = {
        row["mst_key"]: {"template": row["template"], "params": json.loads(row["params"])}
        for row in log
        if has_point(row)
    }
    points = {
        row["mst_key"]: json.loads(row["point"] or "null")
        for row in log
        if row["source"] == "search"
    }
    groups = [row["group_value"] for row in log if row["source"] in ("call", "search")]
    return plan_sampling(spec, sampling, templates, configs, groups)._replace(points=points)
