"""Optional support of keras_hub, for architectures that contain its classes.

The library is imported when it is needed, because the import takes a third of a second and 20 MB,
and few networks need it. The libraries with which it downloads presets and reads texts are hidden
from it (`frameworks.NOT_NEEDED`).
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
"""Without its dependencies, which are a second TensorFlow and a downloader of presets.

It imports the other two packages.
"""


def import_if_needed(node: Node) -> None:
    """Import keras_hub if a rewritten architecture contains one of its classes.

    Raises:
        ConfigError: keras_hub cannot be imported.
    """
    class_name = next(_find_hub_classes(node), None)
    if class_name is None:
        return
    try:
        importlib.import_module("keras_hub")
    except ImportError as error:
        raise ConfigError(
            f"{class_name} is a class of keras_hub, which the trainers' Python cannot import: "
            f"{error}",
            sqlstate="0A000",
            hint=f"In that Python's environment: {sys.executable} -m {INSTALLATION}",
        ) from error


def get_release() -> str:
    """Return the installed release of keras_hub, which decides the results of its classes."""
    try:
        return f"{DISTRIBUTION} {importlib.metadata.version(DISTRIBUTION)}"
    except importlib.metadata.PackageNotFoundError:
        return f"no {DISTRIBUTION}"


def list_releases(operation: Any) -> list[str]:
    """Return the release of keras_hub if an operation uses it, else an empty list."""
    if not isinstance(operation, keras.layers.Layer):
        return []
    parts = operation._flatten_layers()
    if not any(type(part).__module__.startswith("keras_hub.") for part in parts):
        return []
    return [get_release()]


def _find_hub_classes(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _find_hub_classes(item)
    elif isinstance(value, dict):
        if value.get("module") in allowlist.HUB:
            yield str(value["class_name"])
        for item in value.values():
            yield from _find_hub_classes(item)
