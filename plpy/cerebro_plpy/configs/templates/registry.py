"""The templates that there are, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Sequence

from cerebro_plpy.configs.params.keras_names import near_matches
from cerebro_plpy.configs.templates.layers import encoders
from cerebro_plpy.configs.templates.layers.model_io import Table
from cerebro_plpy.configs.templates.networks.cnn import CNN
from cerebro_plpy.configs.templates.networks.linear import LINEAR
from cerebro_plpy.configs.templates.networks.realmlp import REALMLP, SIMPLE
from cerebro_plpy.configs.templates.networks.resnet import RESNET
from cerebro_plpy.configs.templates.networks.series import SERIES
from cerebro_plpy.configs.templates.networks.tabm import TABM
from cerebro_plpy.configs.templates.networks.text import TEXT
from cerebro_plpy.configs.templates.networks.transformer import TRANSFORMER
from cerebro_plpy.configs.templates.template import Template
from cerebro_plpy.errors import UndefinedObject

TEMPLATES: tuple[Template, ...] = (
    REALMLP,
    SIMPLE,
    TABM,
    RESNET,
    TRANSFORMER,
    LINEAR,
    TEXT,
    SERIES,
    CNN,
)

USUAL: tuple[Template, ...] = (TEXT, SERIES, CNN, REALMLP, SIMPLE, LINEAR)
"""Those that are tried where nobody names any, as far as they are for the columns that a table has.
Others take many times as long for an epoch, or came to less in the same time on a processor: they
are there for who has more of it, or a GPU."""


def usual(table: Table) -> tuple[Template, ...]:
    """Those that are tried on a table with such inputs where nobody names any.

    Of texts alone other networks learn no more than `text`, and take longer.
    """
    return (TEXT, LINEAR) if encoders.texts_alone(table) else fitting(USUAL, table)


def fitting(templates: Sequence[Template], table: Table) -> tuple[Template, ...]:
    """Those of the templates that are for a table with such inputs."""
    kinds = {each.kind for each in table.wide}
    return tuple(each for each in templates if each.kind is None or each.kind in kinds)


def find_template(name: str) -> Template:
    """The template of that name; raises UndefinedObject where there is none."""
    for template in TEMPLATES:
        if template.name == name:
            return template
    known = near_matches(name, [template.name for template in TEMPLATES])
    raise UndefinedObject(f"there is no template {name!r}", hint=known)
