"""The kinds of columns: one module each in the backend, and the same kinds in its counterparts.

The trainer reads the inputs that the backend sends, and the exported recipe computes them without
the database. Both have code of their own for a kind, and this test compares the lists.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from sources import nodes

from cerebro_db.export.recipe import rows as exported
from cerebro_plpy.preprocessing.kinds.feature import Feature
from cerebro_plpy.preprocessing.kinds.registry import feature_classes, read_feature
from cerebro_plpy.preprocessing.recipe.encoding import network_inputs
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.recipe.split_encoding import raw_inputs
from cerebro_trainer.data import raw_rows

BACKEND = Path(__file__).parents[3] / "plpy" / "cerebro_plpy"
KINDS = BACKEND / "preprocessing" / "kinds"
SCALE = {"center": 0.0, "width": 1.0, "edges": []}
REAL_ARRAY: dict[str, Any] = {"family": "real[]", "missing": True}
FEATURES: dict[str, dict[str, Any]] = {
    "Number": {"kind": "number", "family": "real", "scale": SCALE, "missing": True},
    "Category": {"kind": "category", "values": ["a"], "family": "text"},
    "Moment": {"kind": "moment", "family": "date", "parts": {"epoch": SCALE}, "missing": True},
    "Vector": {"kind": "vector", "scales": [SCALE], **REAL_ARRAY},
    "LongVector": {"kind": "long vector", "shape": [8], "scales": [SCALE], **REAL_ARRAY},
    "Series": {"kind": "series", "shape": [8, 1], "scales": [SCALE], **REAL_ARRAY},
    "Image": {"kind": "image", "shape": [8, 8, 1], "scales": [SCALE], **REAL_ARRAY},
    "ImageFile": {"kind": "image", "shape": [8, 8, 1], "bytes": 9, "missing": True},
    "Text": {"kind": "text", "words": 8, "buckets": 2, "rarity": ""},
    "PlainArray": {"kind": "array", "shape": [8], "divisor": 1.0, "single": False},
    "LeftOut": {"kind": "left out", "reason": "it is a key"},
}
"""A stored feature of each class, without the name of its column."""


def stored_features() -> dict[str, Feature]:
    """Return a feature of each class, by the name of the class."""
    return {name: read_feature({**value, "column": name}) for name, value in FEATURES.items()}


def test_every_class_reads_what_it_stores() -> None:
    classes = [each for of_kind in feature_classes().values() for each in of_kind]
    features = stored_features()
    assert {each.__name__ for each in classes} == set(features)
    for name, feature in features.items():
        assert type(feature).__name__ == name
        assert read_feature(feature.to_json()) == feature


def test_a_module_has_one_kind() -> None:
    modules = [each.__module__ for of_kind in feature_classes().values() for each in of_kind]
    assert len(set(modules)) == len(modules)


def test_nobody_else_asks_of_which_kind_a_feature_is() -> None:
    """A kind answers for itself: what a new one needs stands in its module alone."""
    names = {each.__name__ for of_kind in feature_classes().values() for each in of_kind}
    names |= {"Array", "NumberArray", "OptionalInput", "WideFeature"}
    questions = [
        f"{path.relative_to(BACKEND)}: {ast.unparse(node)}"
        for path in sorted(BACKEND.rglob("*.py"))
        if path.parent != KINDS
        for node in nodes(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance"
        if names & {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
    ]
    assert questions == []


def test_the_exported_recipe_has_the_same_kinds() -> None:
    features = stored_features().values()
    wide = {feature.kind for feature in features if feature.wide is not None}
    assert wide == set(exported.SEPARATE_INPUTS)
    for feature in features:
        recipe = Recipe((feature,))
        rows = exported.RawRows(recipe.to_json())
        assert len(rows.features) == len(recipe.inputs)
        assert len(rows.categories) == len(recipe.cardinalities)
        assert list(rows.wide_features.values()) == [each.to_json() for each in recipe.wide]


def test_the_trainer_reads_every_input() -> None:
    sent = set()
    for feature in stored_features().values():
        if feature.is_input:
            recipe = Recipe((feature,))
            inputs = (*network_inputs(recipe), *raw_inputs(recipe))
            sent |= {each.kind for each in inputs}
    assert sent == set(raw_rows.INPUT_KINDS)
