"""What a search of `cerebro.train` that learns draws others of: the fields of the templates that the call tries.

It begins with what the templates are good to begin with; a sampler is told what came of these, where they lie in the
space, and suggests the others while the run goes on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from cerebro_plpy.configs.points import Point
from cerebro_plpy.configs.sampling import Sampling
from cerebro_plpy.configs.spec import Spec
from cerebro_plpy.configs.templates.choice import find_template
from cerebro_plpy.configs.templates.points import TemplateSpace
from cerebro_plpy.configs.templates.proposals import searched_for
from cerebro_plpy.configs.templates.template import Params, Template
from cerebro_plpy.database.caller import Row
from cerebro_plpy.run.request import Drawing
from cerebro_plpy.tables.template_configs import head_of, loaded_templates


def drawing(
    spec: Spec,
    sampling: Sampling,
    templates: Sequence[Template],
    called: Mapping[int, tuple[str, Params]],
    drawn: Mapping[int, Point | None],
    groups: Sequence[str | None] = (),
) -> Drawing:
    """What is still to be drawn beside the configurations that the call has chosen, and those that were drawn, of these
    groups."""
    train = spec.train
    assert train is not None
    space = TemplateSpace(templates, searched_for(head_of(train), train.metric, train.training_rows, train.space))
    known = {key: space.point(*each) for key, each in called.items()}
    before = Counter(groups) + Counter({value: len(place.mst_keys) for value, place in train.groups.items()})
    left_of = {value: max(0, train.configs - before[value]) for value in train.groups}
    others = sum(before[value] for value in train.groups)
    left = max(0, train.configs - (len(called) + len(drawn) - others))
    return Drawing(space, sampling.sampler, left, drawn, known, left_of)


def rest(spec: Spec, sampling: Sampling, log: Sequence[Row]) -> Drawing:
    """The same of an interrupted run that has this log."""
    assert spec.train is not None
    loaded = loaded_templates({row["template"]: row["architecture"] for row in log})
    templates = [loaded.get(name) or find_template(name) for name in spec.train.tried]
    called = {row["mst_key"]: (row["template"], json.loads(row["params"])) for row in log if row["source"] == "call"}
    drawn = {row["mst_key"]: json.loads(row["point"] or "null") for row in log if row["source"] == "search"}
    groups = [row["group_value"] for row in log if row["source"] == "search"]
    return drawing(spec, sampling, templates, called, drawn, groups)
