"""The templates that there are, as rows that people read."""

from __future__ import annotations

import json

from cerebro_plpy.configs.search_space.distributions import Range
from cerebro_plpy.configs.templates.registry import TEMPLATES
from cerebro_plpy.configs.templates.template import Field
from cerebro_plpy.database.sessions.spi import Row


def fields() -> list[Row]:
    """A row for each field of each template, in the order in which they are tried."""
    return [
        {
            "template": template.name,
            "description": template.meaning,
            "field": field.name,
            "meaning": field.meaning,
            "usual": json.dumps(field.default),
            "usual_regression": None if field.floats is None else json.dumps(field.floats),
            "range": json.dumps(_range(field)),
        }
        for template in TEMPLATES
        for field in template.fields
    ]


def _range(field: Field) -> list[object]:
    """What is drawn from, as `space` takes it."""
    draw = field.distribution
    return (
        [draw.low, draw.high, draw.distribution] if isinstance(draw, Range) else list(draw.values)
    )
