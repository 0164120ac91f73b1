"""Models from files: Keras files, exported folders, and weights of PyTorch for an architecture.

Files are read as data here; the server checks the architecture.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cerebro_db.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
    InvalidParameter,
    UndefinedObject,
)
from cerebro_db.export.model_files import ARCHITECTURE, KERAS, ORDER, WEIGHTS
from cerebro_db.export.networks import build_architecture
from cerebro_db.nouns import count_nouns
from cerebro_db.optional_imports import import_keras, import_library

Array = NDArray[Any]
IGNORED_BUFFER = "num_batches_tracked"
"""Counter of PyTorch that layers of Keras do not have."""
PYTORCH_NAMES = {
    "kernel": "weight",
    "embeddings": "weight",
    "gamma": "weight",
    "bias": "bias",
    "beta": "bias",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
}
"""PyTorch's name of a weight by its name in Keras, in layers that both libraries have."""
PYTORCH_SUFFIXES = (".pt", ".pt2", ".pth")
"""Suffixes of files of torch.save and torch.export."""
PICKLE_MEMBERS = ("/data.pkl", "/archive_format")
"""Members of such a file, in a folder with the name of the file."""
LAYERS = (
    "Dense",
    "Embedding",
    "Conv1D",
    "Conv2D",
    "Conv3D",
    "BatchNormalization",
    "LayerNormalization",
)
"""Layers that accept weights of PyTorch."""


class ModelSource(NamedTuple):
    """An architecture with its weights, if it has any."""

    architecture: str  # JSON
    weights: Sequence[Array] | None  # in the order of get_weights()


def read_source(path: Path) -> ModelSource:
    """Return the model of a .keras file, or of a folder that was exported as safetensors.

    Raises:
        UndefinedObject: the path, or a file of the folder, does not exist.
        InvalidParameter: the path is not a model.
        FeatureNotSupported: the file contains pickles, or Keras refuses to load it in safe mode.
    """
    if not path.exists():
        raise UndefinedObject(
            f"{path} does not exist", hint="Name a .keras file, or a folder of an export."
        )
    if path.is_dir():
        return _read_folder(path)
    _check_no_pickles(path)
    if path.suffix != KERAS:
        raise InvalidParameter(
            f"{path.name} is no model; expected a {KERAS} file, or a folder with {ARCHITECTURE} "
            f"and {WEIGHTS}",
            hint="model.save('name.keras') of Keras 3 writes one.",
        )
    keras = import_keras()
    try:
        model = keras.saving.load_model(path, compile=False, safe_mode=True)
    except (TypeError, ValueError, KeyError, OSError) as error:
        raise FeatureNotSupported(
            f"Keras {keras.__version__} does not load {path.name} in its safe mode: "
            f"{str(error).splitlines()[0]:.300}",
            hint="A model may have Keras' own layers, and no Lambda.",
        ) from error
    return ModelSource(model.to_json(), model.get_weights())


def read_weights(architecture: str, path: Path) -> list[Array]:
    """Return the weights of a safetensors file, in the order of get_weights().

    Args:
        architecture: JSON of the network to which the weights belong.
        path: an export, or a state_dict of PyTorch.

    Raises:
        DatatypeMismatch: names or shapes of the weights do not match the architecture.
    """
    tensors, order = _read_tensors(path)
    if order is not None:
        return [tensors[name] for name in order]
    return _convert_weights(build_architecture(architecture), path.name, tensors)


def _check_no_pickles(path: Path) -> None:
    """Refuse a file of PyTorch, whatever its name."""
    members = list[str]()
    with suppress(zipfile.BadZipFile, OSError), zipfile.ZipFile(path) as file:
        members = file.namelist()
    if path.suffix in PYTORCH_SUFFIXES or any(name.endswith(PICKLE_MEMBERS) for name in members):
        raise FeatureNotSupported(
            f"{path.name} is a file of torch.save or torch.export: it holds pickles, and who loads "
            "them runs code",
            hint="safetensors.torch.save_file(net.state_dict(), 'net.safetensors') writes weights "
            "alone; give them as weights=Path('net.safetensors'), beside the same architecture in "
            "Keras.",
        )


def _read_folder(folder: Path) -> ModelSource:
    for name in (ARCHITECTURE, WEIGHTS):
        if not (folder / name).is_file():
            raise UndefinedObject(
                f"folder {folder} has no {name}", hint="cerebro-db export safetensors writes it."
            )
    tensors, order = _read_tensors(folder / WEIGHTS)
    if order is None:
        raise InvalidParameter(
            f"{WEIGHTS} of folder {folder} does not say the order of its weights",
            hint="Weights of PyTorch are given as weights=Path(…), beside the architecture.",
        )
    return ModelSource((folder / ARCHITECTURE).read_text(), [tensors[name] for name in order])


def _read_tensors(path: Path) -> tuple[dict[str, Array], list[str] | None]:
    """Return all tensors of a file by name, and their order if the metadata contain it."""
    safetensors = import_library("safetensors", "export")
    _check_no_pickles(path)
    try:
        with safetensors.safe_open(path, framework="np") as file:
            names = file.keys()
            tensors = {name: np.asarray(file.get_tensor(name)) for name in names}
            metadata = file.metadata() or {}
    except (OSError, safetensors.SafetensorError) as error:
        raise InvalidParameter(
            f"{path} is no file of safetensors: {error}", hint="Name one that is."
        ) from error
    if metadata.get(ORDER) is None:
        return tensors, None
    order = [str(name) for name in json.loads(metadata[ORDER])]
    if set(order) != set(tensors):
        raise DatatypeMismatch(
            f"the order of {path.name} does not name all its tensors",
            hint="Export the model again.",
        )
    return tensors, order


def _convert_weights(model: Any, file: str, tensors: Mapping[str, Array]) -> list[Array]:
    """Convert weights of PyTorch modules to the weights of a Keras model.

    The modules have the names of the layers, or numbers in the same order.
    """
    _check_order(model)
    layers = [layer for layer in model.layers if layer.weights]
    modules = _group_by_module(tensors)
    names = [layer.name for layer in layers]
    if all(name.isdigit() for name in modules):
        names = sorted(modules, key=int)
        if len(names) != len(layers):
            raise DatatypeMismatch(
                f"{file} has {count_nouns(len(names), 'module')} with weights, the architecture "
                f"{count_nouns(len(layers), 'layer')} with weights",
                hint="Both must have the same layers in the same order.",
            )
    arrays: dict[int, Array] = {}
    for name, layer in zip(names, layers, strict=True):
        if name not in modules:
            raise DatatypeMismatch(
                f"{file} has no module {name!r}; it has {', '.join(sorted(modules))}",
                hint="Name the layers of the architecture like the modules, or save an "
                "nn.Sequential.",
            )
        arrays |= _convert_layer(layer, f"{file}, module {name!r}", modules.pop(name))
    if modules:
        raise DatatypeMismatch(
            f"{file} has modules that no layer is named like: {', '.join(sorted(modules))}"
        )
    return [arrays[id(weight)] for weight in model.weights]


def _group_by_module(tensors: Mapping[str, Array]) -> dict[str, dict[str, Array]]:
    """Return the tensors by the path of their module and by their name in it."""
    modules: dict[str, dict[str, Array]] = {}
    for path, tensor in tensors.items():
        module, _, name = path.rpartition(".")
        if name != IGNORED_BUFFER:
            modules.setdefault(module, {})[name] = tensor
    return modules


def _check_order(model: Any) -> None:
    """Refuse layers that flatten images: PyTorch has channels before positions, Keras after."""
    for layer in model.layers:
        if type(layer).__name__ in ("Flatten", "Reshape") and len(layer.input.shape) > 2:
            raise FeatureNotSupported(
                f"layer {layer.name!r} puts channels and places into one row, whose order differs "
                "in PyTorch",
                hint="Pool over all places (GlobalAveragePooling2D) instead, or load the weights "
                "as Keras has them.",
            )


def _convert_layer(layer: Any, location: str, module: dict[str, Array]) -> dict[int, Array]:
    """Return the weights of a layer by the identities of its variables.

    Args:
        location: file and module, for error messages.
        module: tensors of the module by name; those of the layer are removed.
    """
    kind = type(layer).__name__
    if kind not in LAYERS:
        raise FeatureNotSupported(
            f"{location}: weights of {kind} are not taken from PyTorch; expected "
            f"{', '.join(LAYERS)}"
        )
    arrays = {}
    for weight in layer.weights:
        name = PYTORCH_NAMES.get(weight.name, weight.name)
        if name not in module:
            raise DatatypeMismatch(
                f"{location} has no {name!r}, which {kind} {layer.name!r} has as {weight.name!r}"
            )
        tensor = module.pop(name)
        array = tensor
        if weight.name == "kernel" and tensor.ndim > 1:
            array = np.moveaxis(tensor, (1, 0), (-2, -1))
        if array.shape != tuple(weight.shape):
            raise DatatypeMismatch(
                f"{location}: {name!r} has shape {tensor.shape}, as {weight.name!r} of {kind} "
                f"{layer.name!r} {array.shape}; expected {tuple(weight.shape)}"
            )
        arrays[id(weight)] = np.ascontiguousarray(array)
    if module:
        raise DatatypeMismatch(
            f"{location} has {', '.join(sorted(module))}, which {kind} {layer.name!r} has not"
        )
    return arrays
