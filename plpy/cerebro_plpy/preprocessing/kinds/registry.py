"""The kinds of columns that there are: every class of a kind in this package."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from importlib import import_module

from cerebro_plpy.preprocessing.kinds.feature import Feature
from cerebro_plpy.preprocessing.values.checks import wrong


def read_feature(value: object) -> Feature:
    """Read a stored feature; raises DataCorrupted if the value is not one."""
    kinds = feature_classes()
    if isinstance(value, dict) and isinstance(value.get("kind"), str):
        for feature_class in kinds.get(value["kind"], ()):
            if feature_class.is_stored_as(value):
                return feature_class.from_json(value)
    raise wrong("feature", value, f"an object whose kind is one of {', '.join(kinds)}")


@cache
def feature_classes() -> dict[str, list[type[Feature]]]:
    """Return the classes of each kind, by the name of the kind."""
    folder = os.path.dirname(__file__)
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py") and name != "__init__.py":
            import_module(f"{__package__}.{name[:-3]}")
    classes: dict[str, list[type[Feature]]] = {}
    # A class with several bases is a subclass of each.
    for feature_class in dict.fromkeys(_subclasses(Feature)):
        if "kind" in vars(feature_class):
            classes.setdefault(feature_class.kind, []).append(feature_class)
    return classes


def _subclasses(parent: type[Feature]) -> Iterator[type[Feature]]:
    for child in parent.__subclasses__():
        yield child
        yield from _subclasses(child)
