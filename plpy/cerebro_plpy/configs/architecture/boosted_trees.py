"""The architecture of boosted trees: JSON like that of a network, of another class.

Templates write it; no user can load one. The trainer checks all of it whenever it reads it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from cerebro_plpy.configs.architecture.architecture import (
    Architecture,
    check_architecture,
    read_architecture,
)
from cerebro_plpy.configs.architecture.model_shapes import unreadable

CLASS_NAME = "BoostedTrees"
OUTPUT_NAME = "trees"
MAX_UNITS = 10_000


def is_boosted_trees(text: str) -> bool:
    """Return whether the JSON of an architecture is that of boosted trees.

    >>> is_boosted_trees('{"class_name": "BoostedTrees", "config": {}}'), is_boosted_trees("[]")
    (True, False)
    """
    return CLASS_NAME in text and _has_class(text)


@lru_cache(maxsize=256)
def _has_class(text: str) -> bool:
    return is_of_trees(read_architecture(text))


def is_of_trees(architecture: object) -> bool:
    """Return whether a parsed architecture is that of boosted trees."""
    return isinstance(architecture, dict) and architecture.get("class_name") == CLASS_NAME


def write_architecture(config: Mapping[str, Any]) -> str:
    """Return the JSON of boosted trees with these settings."""
    return json.dumps({"class_name": CLASS_NAME, "config": config}, separators=(",", ":"))


def divide_epochs(text: str, grown_epochs: int, epochs: int) -> str:
    """Return the JSON of trees that grow as many rounds anew, in another number of epochs.

    Args:
        grown_epochs: the epochs in which the trees have grown.

    >>> text = write_architecture({"trees": 100, "epochs": 8})
    >>> print(divide_epochs(text, 3, 2))
    {"class_name":"BoostedTrees","config":{"trees":39,"epochs":2}}
    """
    config = json.loads(text)["config"]
    rounds_per_epoch = -(-config["trees"] // config["epochs"])
    rounds = min(config["trees"], rounds_per_epoch * grown_epochs)
    return write_architecture({**config, "trees": rounds, "epochs": epochs})


def check_any_architecture(architecture: object) -> Architecture:
    """Return the properties of a network or of boosted trees; see `check_architecture`."""
    if not is_of_trees(architecture):
        return check_architecture(architecture)
    assert isinstance(architecture, dict)
    config = architecture.get("config")
    units = config.get("units") if isinstance(config, dict) else None
    if type(units) is not int or not 1 <= units <= MAX_UNITS:
        raise unreadable(f"units of {CLASS_NAME} is {units!r}; expected 1 to {MAX_UNITS}")
    canonical = json.dumps(architecture, sort_keys=True, separators=(",", ":"))
    return Architecture(
        input_shapes=(),
        output_units=(units,),
        output_names=(OUTPUT_NAME,),
        class_names=frozenset({CLASS_NAME}),
        sha256=hashlib.sha256(canonical.encode()).hexdigest(),
    )
