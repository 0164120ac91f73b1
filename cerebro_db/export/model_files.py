"""Export a model as a .keras file, or as a folder of safetensors and JSON, with its recipe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cerebro_db.errors import InvalidParameter
from cerebro_db.export.networks import (
    build_network,
    list_weight_names,
    make_exported_architecture,
)
from cerebro_db.export.paths import check_free, stage_files
from cerebro_db.export.states import compact_json
from cerebro_db.export.stored_models import StoredModel
from cerebro_db.optional_imports import MODEL_EXTRAS, import_library

KERAS = ".keras"
RECIPE = "recipe.json"
ARCHITECTURE = "architecture.json"
WEIGHTS = "weights.safetensors"
ORDER = "order"
"""Key of the metadata with the names of the weights in Keras' order."""


def write_keras(stored: StoredModel, path: Path, force: bool) -> list[Path]:
    """Write a .keras file, and the recipe to a .keras.json file beside it; return both paths."""
    recipe_path = check_paths(path, KERAS, force)
    model = build_network(stored)
    with stage_files(path.parent) as staging:
        model.save(staging / path.name)
        description = format_description(stored, describe_inputs(model))
        (staging / recipe_path.name).write_text(description)
    return [path, recipe_path]


def write_safetensors(stored: StoredModel, folder: Path, force: bool) -> list[Path]:
    """Write a folder with the weights, by layer, the architecture and the recipe.

    Returns:
        The paths of the recipe, the architecture and the weights.
    """
    check_free([folder], force)
    model = build_network(stored)
    names = list_weight_names(model)
    arrays = dict(zip(names, model.get_weights(), strict=True))
    metadata = {ORDER: json.dumps(names)}
    with stage_files(folder) as staging:
        (staging / RECIPE).write_text(format_description(stored, describe_inputs(model)))
        (staging / ARCHITECTURE).write_text(compact_json(make_exported_architecture(stored)))
        safetensors = import_library("safetensors.numpy", MODEL_EXTRAS)
        safetensors.save_file(arrays, staging / WEIGHTS, metadata=metadata)
    return [folder / name for name in (RECIPE, ARCHITECTURE, WEIGHTS)]


def check_paths(path: Path, suffix: str, force: bool) -> Path:
    """Check the path of a model; return that of its recipe.

    Each file has a recipe of its own: recipes of two formats differ.

    Raises:
        InvalidParameter: the path has another suffix.
        DuplicateObject: either file exists, and `force` is not set.
    """
    if path.suffix != suffix:
        raise InvalidParameter(
            f"the file is {path.name!r}; expected a name that ends in {suffix}", hint="Rename it."
        )
    recipe_path = path.with_name(f"{path.name}.json")
    check_free([path, recipe_path], force)
    return recipe_path


def describe_inputs(model: Any) -> list[dict[str, Any]]:
    """Return the inputs of a network in their order."""
    return [
        {"name": tensor.name, "shape": tensor.shape[1:], "dtype": tensor.dtype}  # without rows
        for tensor in model.inputs
    ]


def format_description(stored: StoredModel, inputs: list[dict[str, Any]]) -> str:
    """Return the description as JSON text, with the inputs of the network."""
    description = {**stored.description, "network_inputs": inputs}
    return json.dumps(description, indent=1, ensure_ascii=False, default=str) + "\n"
