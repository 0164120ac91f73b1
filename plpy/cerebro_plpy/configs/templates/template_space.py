"""Fields of templates as the points of a space in which a sampler suggests: each template is an
alternative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.search_space.distributions import Draw
from cerebro_plpy.configs.search_space.sampler_space import (
    Point,
    described,
    is_constant,
    number_at,
    value_at,
)
from cerebro_plpy.configs.templates.candidates import Searched, draws_of, shortened
from cerebro_plpy.configs.templates.clone_mutation import Kin
from cerebro_plpy.configs.templates.layers.model_io import Table
from cerebro_plpy.configs.templates.template import Template
from cerebro_plpy.records import dataclass


@dataclass(frozen=True)
class TemplateSpace:
    """A `PointSpace` of fields of templates, as far as they are searched."""

    templates: Sequence[Template]
    searched: Searched
    table: Table

    def described(self) -> list[list[dict[str, object]]]:
        """See `PointSpace`; a field means something else in each template."""
        return [
            [
                {"name": f"{template.name}/{field}", **described(draw)}
                for field, draw in self._drawn(template).items()
            ]
            for template in self.templates
        ]

    def row(self, point: Point) -> Mapping[str, Any]:
        """See `PointSpace`: a template, and what is drawn of its fields, with the others."""
        template = self.templates[point["alternative"]]
        values = {
            field: value_at(
                draw, 0 if is_constant(draw) else point["values"][f"{template.name}/{field}"]
            )
            for field, draw in draws_of(template, self.searched).items()
        }
        return {
            "template": template.name,
            "params": {field: shortened(value) for field, value in values.items()},
        }

    def near(self, config: Config, random: Random) -> Mapping[str, Any]:
        """See `PointSpace`."""
        assert config.params is not None
        template = next(each for each in self.templates if each.name == config.template)
        kin = Kin(template, self.table, self.searched.head)
        return {
            "template": template.name,
            "params": kin.moved(config.params, self._drawn(template), random),
        }

    def point(self, row: Mapping[str, Any]) -> Point | None:
        """See `PointSpace`: by the fields that are searched, and by those for which the caller
        wants one value.
        """
        for number, template in enumerate(self.templates):
            if template.name == row["template"]:
                wanted = draws_of(template, self.searched).items()
                found = {field: number_at(draw, row["params"].get(field)) for field, draw in wanted}
                searched = self._drawn(template)
                if any(
                    found[field] is None
                    for field in found
                    if field in searched or field in self.searched.space
                ):
                    return None
                return {
                    "alternative": number,
                    "values": {f"{template.name}/{each}": found[each] for each in searched},
                }
        return None

    def _drawn(self, template: Template) -> dict[str, Draw]:
        return {
            field: draw
            for field, draw in draws_of(template, self.searched).items()
            if not is_constant(draw)
        }
