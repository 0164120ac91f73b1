"""Models that come as files: of Keras, of an export, or weights of PyTorch for an architecture that
is known.

Files are read as data here; what an architecture may consist of, the server checks.
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
from cerebro_db.optional_imports import import_library

Array = NDArray[Any]
UNUSED = "num_batches_tracked"
"""What PyTorch counts, and nothing of Keras has."""
PLACES = {
    "kernel": "weight",
    "embeddings": "weight",
    "gamma": "weight",
    "bias": "bias",
    "beta": "bias",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
}
"""What PyTorch calls a weight of Keras, in the layers that both have alike."""
PYTORCH = (".pt", ".pt2", ".pth")
"""How files end that torch.save and torch.export write."""
PICKLES = ("/data.pkl", "/archive_format")
"""What is in them, under the name of the file."""
LAYERS = (
    "Dense",
    "Embedding",
    "Conv1D",
    "Conv2D",
    "Conv3D",
    "BatchNormalization",
    "LayerNormalization",
)


class Source(NamedTuple):
    """An architecture as JSON text, and weights in the order of get_weights(), if it has any."""

    architecture: str
    weights: Sequence[Array] | None


def read_source(path: Path) -> Source:
    """The model of a .keras file, or of a folder that was exported as safetensors."""
    if not path.exists():
        raise UndefinedObject(
            f"{path} does not exist", hint="Name a .keras file, or a folder of an export."
        )
    if path.is_dir():
        return _folder(path)
    _refuse_pickles(path)
    if path.suffix != KERAS:
        raise InvalidParameter(
            f"{path.name} is no model; expected a {KERAS} file, or a folder with {ARCHITECTURE} "
            f"and {WEIGHTS}",
            hint="model.save('name.keras') of Keras 3 writes one.",
        )
    keras = import_library("keras", "export,tensorflow")
    try:
        model = keras.saving.load_model(path, compile=False, safe_mode=True)
    except (TypeError, ValueError, KeyError, OSError) as error:
        raise FeatureNotSupported(
            f"Keras {keras.__version__} does not load {path.name} in its safe mode: "
            f"{str(error).splitlines()[0]:.300}",
            hint="A model may have Keras' own layers, and no Lambda.",
        ) from error
    return Source(model.to_json(), model.get_weights())


def read_weights(architecture: str, path: Path) -> list[Array]:
    """The weights of a safetensors file for an architecture: those of an export, or a state_dict of
    PyTorch.

    DatatypeMismatch names what does not fit.
    """
    tensors, order = _tensors(path)
    if order is not None:
        return [tensors[name] for name in order]
    return _of_modules(build_architecture(architecture), path.name, tensors)


def _refuse_pickles(path: Path) -> None:
    """Raises FeatureNotSupported for a file that PyTorch has written, whatever it is called."""
    names = list[str]()
    with suppress(zipfile.BadZipFile, OSError), zipfile.ZipFile(path) as file:
        names = file.namelist()
    if path.suffix in PYTORCH or any(name.endswith(PICKLES) for name in names):
        raise FeatureNotSupported(
            f"{path.name} is a file of torch.save or torch.export: it holds pickles, and who loads "
            "them runs code",
            hint="safetensors.torch.save_file(net.state_dict(), 'net.safetensors') writes weights "
            "alone; give them as weights=Path('net.safetensors'), beside the same architecture in "
            "Keras.",
        )


def _folder(folder: Path) -> Source:
    missing = [name for name in (ARCHITECTURE, WEIGHTS) if not (folder / name).is_file()]
    if missing:
        raise UndefinedObject(
            f"folder {folder} has no {missing[0]}", hint="cerebro-db export safetensors writes it."
        )
    tensors, order = _tensors(folder / WEIGHTS)
    if order is None:
        raise InvalidParameter(
            f"{WEIGHTS} of folder {folder} does not say the order of its weights",
            hint="Weights of PyTorch are given as weights=Path(…), beside the architecture.",
        )
    return Source((folder / ARCHITECTURE).read_text(), [tensors[name] for name in order])


def _tensors(path: Path) -> tuple[dict[str, Array], list[str] | None]:
    """All tensors of a file, and their order where it says it."""
    safetensors = import_library("safetensors", "export")
    _refuse_pickles(path)
    try:
        with safetensors.safe_open(path, framework="np") as file:
            tensors = {name: np.asarray(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
            told = (file.metadata() or {}).get(ORDER)
    except (OSError, safetensors.SafetensorError) as error:
        raise InvalidParameter(
            f"{path} is no file of safetensors: {error}", hint="Name one that is."
        ) from error
    order = None if told is None else list(map(str, json.loads(told)))
    if order is not None and set(order) != set(tensors):
        raise DatatypeMismatch(
            f"the order of {path.name} does not name all its tensors",
            hint="Export the model again.",
        )
    return tensors, order


def _of_modules(model: Any, file: str, tensors: Mapping[str, Array]) -> list[Array]:
    """The weights of Keras out of those of modules: named like its layers, or by numbers in the
    same order.
    """
    _check_order(model)
    layers = [layer for layer in model.layers if layer.weights]
    modules = _modules(tensors)
    names = sorted(modules, key=int) if all(name.isdigit() for name in modules) else None
    if names is not None and len(names) != len(layers):
        raise DatatypeMismatch(
            f"{file} has {len(names)} modules with weights, the architecture {len(layers)} layers "
            "with weights",
            hint="Both must have the same layers in the same order.",
        )
    found: dict[int, Array] = {}
    for place, layer in enumerate(layers):
        name = layer.name if names is None else names[place]
        if name not in modules:
            raise DatatypeMismatch(
                f"{file} has no module {name!r}; it has {', '.join(sorted(modules))}",
                hint="Name the layers of the architecture like the modules, or save an "
                "nn.Sequential.",
            )
        found |= _of_layer(layer, f"{file}, module {name!r}", modules.pop(name))
    if names is None and modules:
        raise DatatypeMismatch(
            f"{file} has modules that no layer is named like: {', '.join(sorted(modules))}"
        )
    return [found[id(weight)] for weight in model.weights]


def _modules(tensors: Mapping[str, Array]) -> dict[str, dict[str, Array]]:
    found: dict[str, dict[str, Array]] = {}
    for path, tensor in tensors.items():
        module, _, name = path.rpartition(".")
        if name != UNUSED:
            found.setdefault(module, {})[name] = tensor
    return found


def _check_order(model: Any) -> None:
    """PyTorch has channels before places and Keras behind them, so an image in one row has another
    order.
    """
    for layer in model.layers:
        if type(layer).__name__ in ("Flatten", "Reshape") and len(layer.input.shape) > 2:
            raise FeatureNotSupported(
                f"layer {layer.name!r} puts channels and places into one row, whose order differs "
                "in PyTorch",
                hint="Pool over all places (GlobalAveragePooling2D) instead, or load the weights "
                "as Keras has them.",
            )


def _of_layer(layer: Any, where: str, module: dict[str, Array]) -> dict[int, Array]:
    """The weights of a layer by the identities of its variables."""
    kind = type(layer).__name__
    if kind not in LAYERS:
        raise FeatureNotSupported(
            f"{where}: weights of {kind} are not taken from PyTorch; expected {', '.join(LAYERS)}"
        )
    found = {}
    for weight in layer.weights:
        name = PLACES.get(weight.name, weight.name)
        if name not in module:
            raise DatatypeMismatch(
                f"{where} has no {name!r}, which {kind} {layer.name!r} has as {weight.name!r}"
            )
        tensor = module.pop(name)
        turned = (
            np.moveaxis(tensor, (1, 0), (-2, -1))
            if weight.name == "kernel" and tensor.ndim > 1
            else tensor
        )
        if turned.shape != tuple(weight.shape):
            raise DatatypeMismatch(
                f"{where}: {name!r} has shape {tensor.shape}, as {weight.name!r} of {kind} "
                f"{layer.name!r} {turned.shape}; expected {tuple(weight.shape)}"
            )
        found[id(weight)] = np.ascontiguousarray(turned)
    if module:
        raise DatatypeMismatch(
            f"{where} has {', '.join(sorted(module))}, which {kind} {layer.name!r} has not"
        )
    return found
