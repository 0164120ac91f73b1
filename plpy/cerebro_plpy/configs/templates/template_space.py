"""Fields of templates as a space for a sampler, with each template as an alternative."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.search_space.distributions import Distribution
from cerebro_plpy.configs.search_space.sampler_space import (
    Point,
    Row,
    describe_distribution,
    is_constant,
    to_number,
    to_value,
)
from cerebro_plpy.configs.templates.candidates import SearchGoal, find_distributions, round_value
from cerebro_plpy.configs.templates.clone_mutation import CloneMutation
from cerebro_plpy.configs.templates.layers.model_io import Table
from cerebro_plpy.configs.templates.template import Template
from cerebro_plpy.records import dataclass


@dataclass(frozen=True)
class TemplateSpace:
    """A `PointSpace` of the searched fields of templates."""

    templates: Sequence[Template]
    goal: SearchGoal
    table: Table

    def describe(self) -> list[list[dict[str, object]]]:
        """See `PointSpace`; a field is another dimension in each template."""
        return [
            [
                {"name": f"{template.name}/{field}", **describe_distribution(distribution)}
                for field, distribution in self._searched_fields(template).items()
            ]
            for template in self.templates
        ]

    def make_row(self, point: Point) -> Row:
        """See `PointSpace`: return a template and the values of its fields."""
        template = self.templates[point["alternative"]]
        params = {}
        for field, distribution in find_distributions(template, self.goal).items():
            number = 0
            if not is_constant(distribution):
                number = point["values"][f"{template.name}/{field}"]
            params[field] = round_value(to_value(distribution, number))
        return {"template": template.name, "params": params}

    def perturb(self, config: Config, random: Random) -> Row:
        """See `PointSpace`."""
        assert config.params is not None
        template = next(t for t in self.templates if t.name == config.template)
        mutation = CloneMutation(template, self.table, self.goal.head)
        params = mutation.mutate(config.params, self._searched_fields(template), random)
        return {"template": template.name, "params": params}

    def find_point(self, row: Row) -> Point | None:
        """See `PointSpace`: searched fields, and those that the caller fixed, must match."""
        for alternative, template in enumerate(self.templates):
            if template.name == row["template"]:
                return self._find_point(alternative, template, row["params"])
        return None

    def _find_point(
        self, alternative: int, template: Template, params: Mapping[str, Any]
    ) -> Point | None:
        searched = self._searched_fields(template)
        values = {}
        for field, distribution in find_distributions(template, self.goal).items():
            number = to_number(distribution, params.get(field))
            if number is None and (field in searched or field in self.goal.space):
                return None
            if field in searched:
                values[f"{template.name}/{field}"] = number
        return {"alternative": alternative, "values": values}

    def _searched_fields(self, template: Template) -> dict[str, Distribution]:
        return {
            field: distribution
            for field, distribution in find_distributions(template, self.goal).items()
            if not is_constant(distribution)
        }
