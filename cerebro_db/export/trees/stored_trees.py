"""Boosted trees of a stored model, checked as the trainer checks them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from cerebro_db.errors import FeatureNotSupported, InvalidText, find_error_class
from cerebro_db.export.recipe.rows import NUMBERS, RawRows
from cerebro_db.export.recipe.scales import VALUE, RawNumber
from cerebro_db.export.stored_models import StoredModel, StoredTrees
from cerebro_db.export.trees.model.errors import TreesError
from cerebro_db.export.trees.model.forest import Forest
from cerebro_db.export.trees.model.spec import TreesSpec

NOT_IN_NAMES = re.compile(r"[^\w.]+")
"""Characters that names of columns in LightGBM's text must not have, among others."""


class TreesMember(NamedTuple):
    """Checked boosted trees, and their share of the prediction."""

    spec: TreesSpec
    forest: Forest
    share: float


def check_network(stored: StoredModel) -> None:
    """Check that a model is a network.

    Raises:
        FeatureNotSupported: it has boosted trees.
    """
    if stored.trees:
        raise FeatureNotSupported(
            "the model has boosted trees, which are not a model of Keras",
            hint="Export it as ONNX, or as LightGBM if it consists of one set of trees.",
        )


def read_single_trees(stored: StoredModel) -> TreesMember:
    """Return the trees of a model that has nothing else.

    Raises:
        FeatureNotSupported: the model has a network, or several sets of trees.
        CerebroError: its config or its arrays are not those of trees.
    """
    if not stored.trees:
        raise FeatureNotSupported(
            "the model is a network; LightGBM's format is for boosted trees",
            hint="Export it as Keras, safetensors or ONNX.",
        )
    if stored.architecture or len(stored.trees) > 1:
        raise FeatureNotSupported(
            "the model adds up several members; LightGBM's format has the trees of one",
            hint="Export it as ONNX.",
        )
    return read_trees(stored.trees[0])


def read_trees(stored: StoredTrees) -> TreesMember:
    """Return the trees of a member after checking them.

    Raises:
        CerebroError: its config or its arrays are not those of trees.
    """
    try:
        spec = TreesSpec.from_architecture(json.loads(stored.architecture))
        forest = Forest.from_arrays(spec, stored.weights)
    except TreesError as error:
        raise find_error_class(error.sqlstate)(error.message, hint=error.hint) from error
    except (TypeError, ValueError) as error:
        raise InvalidText(f"the state is not one of boosted trees: {error}") from error
    return TreesMember(spec, forest, stored.share)


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
    for array, (feature, width) in enumerate(zip(features, spec.inputs.widths, strict=True)):
        words = spec.inputs.find_words(array)
        parts = [*map(str, words), "words"] if words else map(str, range(1, width + 1))
        names += [f"{feature['column']}.{part}" for part in parts]
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
