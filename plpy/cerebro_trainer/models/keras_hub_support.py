"""keras_hub, for the architectures that name a class of it: it is a library of its own, which need
not be there.

It is imported when it is needed, which takes a third of a second and 20 MB, for few networks need
it. What it downloads presets with, and what it reads texts with, is kept from it as from Keras
(`frameworks.NOT_NEEDED`).
"""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
from collections.abc import Iterator
from typing import Any

import keras

from cerebro_trainer.errors import ConfigError
from cerebro_trainer.models import allowlist
from cerebro_trainer.models.layer_arguments import Node

DISTRIBUTION = "keras-hub"
INSTALLATION = "pip install --no-deps 'keras-hub>=0.32' regex tokenizers"
"""Without what it depends on: that is a second TensorFlow, and what presets are downloaded with.
The last two are imported with it."""


def provide(node: Node) -> None:
    """Import keras_hub if a rewritten architecture has a class of it; ConfigError where it cannot
    be imported.
    """
    name = next(_classes(node), None)
    if name is None:
        return
    try:
        importlib.import_module("keras_hub")
    except ImportError as error:
        raise ConfigError(
            f"{name} is a class of keras_hub, which the trainers' Python cannot import: {error}",
            sqlstate="0A000",
            hint=f"In that Python's environment: {sys.executable} -m {INSTALLATION}",
        ) from error


def release() -> str:
    """Which keras_hub is installed, for that decides what its classes compute."""
    try:
        return f"{DISTRIBUTION} {importlib.metadata.version(DISTRIBUTION)}"
    except importlib.metadata.PackageNotFoundError:
        return f"no {DISTRIBUTION}"


def releases(operation: Any) -> list[str]:
    """The same, where an operation or layer has something of keras_hub in it; else nothing."""
    parts = operation._flatten_layers() if isinstance(operation, keras.layers.Layer) else ()
    return (
        [release()] if any(type(part).__module__.startswith("keras_hub.") for part in parts) else []
    )


def _classes(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _classes(item)
    elif isinstance(value, dict):
        if value.get("module") in allowlist.HUB:
            yield str(value["class_name"])
        for item in value.values():
            yield from _classes(item)
