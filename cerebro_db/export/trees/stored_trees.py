"""Boosted trees of a stored model, checked as the trainer checks them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from cerebro_db.errors import FeatureNotSupported, InvalidText, find_error_class
from cerebro_db.export.recipe.rows import NUMBERS, RawRows
from cerebro_db.export.recipe.scales import VALUE, RawNumber
from cerebro_db.export.stored_models import StoredModel
from cerebro_db.export.trees.model.errors import TreesError
from cerebro_db.export.trees.model.forest import Forest
from cerebro_db.export.trees.model.spec import CLASS_NAME, TreesSpec

NOT_IN_NAMES = re.compile(r"[^\w.]+")
"""Characters that names of columns in LightGBM's text must not have, among others."""


class StoredTrees(NamedTuple):
    """Boosted trees that were read from a database."""

    spec: TreesSpec
    forest: Forest


def has_trees(stored: StoredModel) -> bool:
    """Return whether a model consists of boosted trees."""
    if CLASS_NAME not in stored.architecture:
        return False
    try:
        node = json.loads(stored.architecture)
    except (ValueError, RecursionError):
        return False
    return isinstance(node, dict) and node.get("class_name") == CLASS_NAME


def check_network(stored: StoredModel) -> None:
    """Check that a model is a network.

    Raises:
        FeatureNotSupported: it consists of boosted trees.
    """
    if has_trees(stored):
        raise FeatureNotSupported(
            "the model consists of boosted trees, which are not a model of Keras",
            hint="Export it as LightGBM or ONNX.",
        )


def read_trees(stored: StoredModel) -> StoredTrees:
    """Return the trees of a model.

    Raises:
        FeatureNotSupported: the model is a network.
        CerebroError: its config or its arrays are not those of trees.
    """
    if not has_trees(stored):
        raise FeatureNotSupported(
            "the model is a network; LightGBM's format is for boosted trees",
            hint="Export it as Keras, safetensors or ONNX.",
        )
    try:
        spec = TreesSpec.from_architecture(json.loads(stored.architecture))
        return StoredTrees(spec, Forest.from_arrays(spec, stored.weights))
    except TreesError as error:
        raise find_error_class(error.sqlstate)(error.message, hint=error.hint) from error
    except (TypeError, ValueError) as error:
        raise InvalidText(f"the state is not one of boosted trees: {error}") from error


def name_columns(rows: RawRows, spec: TreesSpec) -> list[str]:
    """Return a name for each column of the trees, from the columns of the table.

    Names are unique, and have letters, digits, dots and underscores only.
    """
    first_names = []
    if NUMBERS in rows.scaled_inputs:
        first_names = [_name_number(number) for number in rows.scaled_inputs[NUMBERS].numbers]
    first_names += [f"indicator.{number + 1}" for number in range(spec.inputs.indicators)]
    names = [first_names[position] for position in spec.inputs.first_columns]
    names += [feature["column"] for feature in rows.categories]
    features = list(rows.wide_features.values())
    for feature, size in zip(features, spec.inputs.vectors, strict=True):
        names += [f"{feature['column']}.{element}" for element in range(1, size + 1)]
    return _make_unique([NOT_IN_NAMES.sub("_", name) for name in names])


def _name_number(number: RawNumber) -> str:
    """Return the column of a number, and the part of its value if that is not the value itself."""
    if number.part == VALUE:
        return number.column
    return f"{number.column}.{number.part}"


def _make_unique(names: Sequence[str]) -> list[str]:
    """Append a number to names that occur before.

    >>> _make_unique(["a", "b", "a", "a_2"])
    ['a', 'b', 'a_3', 'a_2']
    """
    existing = set(names)
    unique: list[str] = []
    for name in names:
        choice = name
        number = 1
        while choice in unique or (number > 1 and choice in existing):
            number += 1
            choice = f"{name}_{number}"
        unique.append(choice)
    return unique
