"""A model as files: one that plain Keras loads, or a folder of safetensors and JSON; each with what
its inputs are.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cerebro_db.errors import InvalidParameter
from cerebro_db.export.networks import network, rewrite, weight_names
from cerebro_db.export.paths import check_free, written
from cerebro_db.export.states import compact
from cerebro_db.export.stored_models import StoredModel
from cerebro_db.optional_imports import import_library

KERAS = ".keras"
RECIPE, ARCHITECTURE, WEIGHTS = FOLDER = ("recipe.json", "architecture.json", "weights.safetensors")
ORDER = "order"
"""The metadata that say in which order Keras has the weights."""


def write_keras(stored: StoredModel, path: Path, force: bool) -> list[Path]:
    """Writes `path`, which ends in .keras, and the recipe beside it, as a .json of the same
    name.
    """
    paths = beside(path, KERAS, force)
    model = network(stored)
    with written(path.parent) as made:
        model.save(made / path.name)
        (made / paths[1].name).write_text(readable(stored, model))
    return paths


def write_safetensors(stored: StoredModel, folder: Path, force: bool) -> list[Path]:
    """Writes a folder with the weights by the paths of layers, and the architecture and the recipe
    as JSON.
    """
    check_free([folder], force)
    model = network(stored)
    names = weight_names(model)
    arrays = dict(zip(names, model.get_weights(), strict=True))
    with written(folder) as made:
        (made / RECIPE).write_text(readable(stored, model))
        (made / ARCHITECTURE).write_text(compact(rewrite(stored.architecture)))
        import_library("safetensors.numpy", "export").save_file(
            arrays, made / WEIGHTS, metadata={ORDER: json.dumps(names)}
        )
    return [folder / name for name in FOLDER]


def beside(path: Path, suffix: str, force: bool) -> list[Path]:
    """A file and that of its recipe; refused where it has another suffix, or one is there."""
    if path.suffix != suffix:
        raise InvalidParameter(
            f"the file is {path.name!r}; expected a name that ends in {suffix}", hint="Rename it."
        )
    paths = [path, path.with_suffix(".json")]
    check_free(paths, force)
    return paths


def readable(stored: StoredModel, model: Any) -> str:
    """The description, and what inputs the network has, in their order; without the rows'
    dimension.
    """
    inputs = [
        {"name": each.name, "shape": each.shape[1:], "dtype": each.dtype} for each in model.inputs
    ]
    told = {**stored.description, "network_inputs": inputs}
    return json.dumps(told, indent=1, ensure_ascii=False, default=str) + "\n"
