"""The templates, in the order in which they are tried."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from cerebro_plpy.configs.params.keras_names import near_matches
from cerebro_plpy.configs.templates.budget import FEW_ROWS
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
from cerebro_plpy.configs.templates.template import NetworkTemplate, Template
from cerebro_plpy.configs.templates.trees.boosting import BOOSTING
from cerebro_plpy.errors import UndefinedObject

NETWORK_TEMPLATES: tuple[NetworkTemplate, ...] = (
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
TEMPLATES: tuple[Template, ...] = (*NETWORK_TEMPLATES, BOOSTING)
DEFAULT_TEMPLATES: tuple[Template, ...] = (
    TEXT,
    SERIES,
    CNN,
    BOOSTING,
    REALMLP,
    SIMPLE,
    LINEAR,
)
"""Templates that are tried by default, if they suit the columns of a table.

The others take many times as long for an epoch, or reached lower scores in the same time on a
processor. They are for users with more time, or with a GPU.
"""

BASELINES: tuple[Template, ...] = (LINEAR, BOOSTING)
"""Templates that a run begins with, because they have a useful model within seconds."""


def choose_templates(table: Table) -> tuple[Template, ...]:
    """Return the templates that are tried on a table by default.

    On texts alone, other networks learn no more than `text`, and take longer.
    """
    if encoders.has_only_texts(table):
        return (TEXT, LINEAR)
    return select_suitable(DEFAULT_TEMPLATES, table)


def put_baselines_first(templates: Sequence[Template]) -> tuple[Template, ...]:
    """Return templates with those first that have a useful model within seconds.

    >>> [template.name for template in put_baselines_first((REALMLP, BOOSTING, SIMPLE, LINEAR))]
    ['linear', 'boosting', 'realmlp', 'realmlp_simple']
    """
    baselines = [template for template in BASELINES if template in templates]
    networks = [template for template in templates if template not in BASELINES]
    return (*baselines, *networks)


def select_suitable(templates: Sequence[Template], table: Table) -> tuple[Template, ...]:
    """Return the templates that suit the columns of a table."""
    return tuple(template for template in templates if template.suits(table))


def find_template(name: str) -> Template:
    """Return the template of that name.

    Raises:
        UndefinedObject: there is no such template.
    """
    for template in TEMPLATES:
        if template.name == name:
            return template
    names = [template.name for template in TEMPLATES]
    raise UndefinedObject(f"there is no template {name!r}", hint=near_matches(name, names))


def count_starts(name: str) -> int:
    """Return the number of configurations of a template that are known to be good.

    >>> [count_starts(name) for name in ("linear", "boosting", "a user's network")]
    [1, 5, 1]
    """
    counts = (1 + len(template.starts) for template in TEMPLATES if template.name == name)
    return next(counts, 1)


def list_starts(templates: Mapping[int, str], rows: int) -> frozenset[int]:
    """Return the configurations that are tried before a run returns, by mst_key.

    They are the first one of each template. With more than a few rows, these are all that the
    template begins with: those are known to be good, and the rows tell which one is the best.

    Args:
        templates: names of templates by mst_key.
        rows: training rows.

    >>> templates = {1: "linear", 2: "boosting", 3: "boosting", 4: "linear"}
    >>> [sorted(list_starts(templates, rows)) for rows in (500, 501)]
    [[1, 2], [1, 2, 3]]
    """
    keys = defaultdict(list)
    for key, template in sorted(templates.items()):
        keys[template].append(key)
    counts = dict.fromkeys(keys, 1)
    if rows > FEW_ROWS:
        counts = {template: count_starts(template) for template in keys}
    return frozenset(key for template in keys for key in keys[template][: counts[template]])


def resumes_states(name: str) -> bool:
    """Return whether models of a template can be trained on from a state of an earlier run.

    >>> resumes_states("linear"), resumes_states("boosting"), resumes_states("a user's network")
    (True, False, True)
    """
    return all(template.resumes_states for template in TEMPLATES if template.name == name)
