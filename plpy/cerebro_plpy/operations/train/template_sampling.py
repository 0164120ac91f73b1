"""What a search of `cerebro.train` draws others of: the fields of the templates that the call
tries.

It begins with what the templates are good to begin with; a sampler is told what came of these and
of earlier runs, where they lie in the space, and suggests the others while the run goes on. In
population based training others are near those that are best.
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
    there: Mapping[int, Mapping[str, Any]],
    groups: Sequence[str | None],
) -> SamplingPlan:
    """What is to be drawn beside the configurations that are there, of each its template and
    `params`; those that were called for or drawn are of these groups, each of which has a selection
    of its own, or of all rows."""
    train = spec.train
    assert train is not None
    searched = make_search_goal(read_head(train), train.metric, train.training_rows, train.space)
    space = TemplateSpace(templates, searched, Recipe.from_json(train.recipe).table)
    known = {key: space.find_point(each) for key, each in there.items()}
    wanted, begun = train.configs if sampling.learns else 0, Counter(groups)
    left = {group: max(0, wanted - begun[group]) for group in (None, *train.groups)}
    of_groups = {group: count for group, count in left.items() if group is not None}
    return SamplingPlan(
        space, sampling.sampler, left[None], {}, known, remaining_by_group=of_groups
    )


def resume_sampling(spec: RunSpec, sampling: Sampling, log: Sequence[Row]) -> SamplingPlan:
    """The same of an interrupted run that has this log, in which others may have joined by acts."""
    assert spec.train is not None
    loaded = find_loaded_templates({row["template"]: row["architecture"] for row in log})
    templates = [loaded.get(name) or find_template(name) for name in spec.train.tried]
    there = {
        row["mst_key"]: {"template": row["template"], "params": json.loads(row["params"])}
        for row in log
        if has_point(row)
    }
    drawn = {
        row["mst_key"]: json.loads(row["point"] or "null")
        for row in log
        if row["source"] == "search"
    }
    groups = [row["group_value"] for row in log if row["source"] in ("call", "search")]
    return plan_sampling(spec, sampling, templates, there, groups)._replace(points=drawn)
