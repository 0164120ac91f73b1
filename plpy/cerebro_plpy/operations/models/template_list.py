"""The fields of all templates, as rows for people."""

from __future__ import annotations

import json

from cerebro_plpy.configs.search_space.distributions import Range
from cerebro_plpy.configs.templates.registry import TEMPLATES
from cerebro_plpy.configs.templates.template import Field
from cerebro_plpy.database.sessions.spi import Row


def list_fields() -> list[Row]:
    """Return a row for each field of each template, in the order in which templates are tried."""
    return [
        {
            "template": template.name,
            "description": template.meaning,
            "field": field.name,
            "meaning": field.meaning,
            "usual": json.dumps(field.default),
            "usual_regression": _describe_floats(field),
            "range": json.dumps(_describe_distribution(field)),
        }
        for template in TEMPLATES
        for field in template.fields
    ]


def _describe_floats(field: Field) -> str | None:
    """Return the default for regression as JSON; None if it is the usual one."""
    if field.floats is None:
        return None
    return json.dumps(field.floats)


def _describe_distribution(field: Field) -> list[object]:
    """Return the distribution of a field as the argument `space` takes it."""
    distribution = field.distribution
    if isinstance(distribution, Range):
        return [distribution.low, distribution.high, distribution.distribution]
    return list(distribution.values)
