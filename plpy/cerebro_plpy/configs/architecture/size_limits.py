"""Sizes that no model can have: refused when it is loaded, before something tries to allocate
them.
"""

from __future__ import annotations

from math import prod

from cerebro_plpy.configs.architecture.allowlist import is_of_hub
from cerebro_plpy.configs.architecture.model_shapes import Node, given_shape, layers
from cerebro_plpy.configs.params.keras_names import KEEPS_WIDTH
from cerebro_plpy.errors import InvalidParameter

# Elements of one kernel or of one input row: more could not be held, far less trained.
MAX_ELEMENTS = 2**31
# What classes of keras_hub call the lengths of their tables, and the widths between two of their
# hidden layers.
INNER = ("hidden_dim", "intermediate_dim", "mlp_dim")
ENTRIES = ("vocabulary_size", "vocab_size", "sequence_length", "max_sequence_length")
# Layers within one of keras_hub, for which a single number stands.
MAX_BLOCKS = 1000


def check_sizes(model: Node) -> None:
    """Raises InvalidParameter where a shape or a kernel of the model's layers has too many
    elements.

    The width of a layer's input is followed from layer to layer in a Sequential; where it is not
    known it counts as one, so that the check may let too much through but never refuses a possible
    model.
    """
    width: int | None = None
    for layer in layers(model):
        if model["class_name"] != "Sequential":
            width = None
        shape = given_shape(layer)
        if shape:
            _check(layer, prod(size or 1 for size in shape[1:]))
            width = shape[-1]
        _check(layer, _kernel_elements(layer, width or 1))
        if is_of_hub(layer):
            _check_hub(layer)
        width = _width_after(layer, width)


def _kernel_elements(layer: Node, width: int) -> int:
    units, filters = _size(layer, "units"), _size(layer, "filters")
    if "recurrent_initializer" in _config(layer):
        width = max(width, units, filters)
    window = prod(_sizes(layer, "kernel_size"))
    table = _size(layer, "input_dim") * _size(layer, "output_dim")
    return max(units * filters * window * width, table)


def _check_hub(layer: Node) -> None:
    """A class of keras_hub by its largest table, kernel or picture, and by the layers that it is
    made of.
    """
    hidden, inner = _size(layer, "hidden_dim"), max(_size(layer, key) for key in INNER)
    embedded = _size(layer, "embedding_dim") if "embedding_dim" in _config(layer) else hidden
    entries = max(_size(layer, key) for key in ENTRIES)
    _check(layer, max(entries * embedded, hidden * inner, prod(_sizes(layer, "image_shape"))))
    blocks = max(
        _size(layer, "num_layers"),
        _size(layer, "num_groups") * _size(layer, "num_inner_repetitions"),
    )
    if blocks > MAX_BLOCKS:
        raise InvalidParameter(
            f"{layer.get('class_name')} has {blocks} layers",
            hint=f"At most {MAX_BLOCKS} are allowed in one.",
        )


def _width_after(layer: Node, width: int | None) -> int | None:
    if layer.get("class_name") in KEEPS_WIDTH or layer.get("class_name") == "InputLayer":
        return width
    known = [
        _size(layer, key) for key in ("units", "filters", "output_dim") if key in _config(layer)
    ]
    return known[0] if known else None


def _config(layer: Node) -> Node:
    config = layer.get("config")
    return config if isinstance(config, dict) else {}


def _size(layer: Node, key: str) -> int:
    value = _config(layer).get(key)
    if value is None:
        return 1
    if type(value) is not int or value < 1:
        raise InvalidParameter(
            f"{key} of {layer.get('class_name')} must be a positive whole number, received "
            f"{value!r}"
        )
    return value


def _sizes(layer: Node, key: str) -> list[int]:
    value = _config(layer).get(key, 1)
    listed = value if isinstance(value, list) else [value]
    return [
        _size({"class_name": layer.get("class_name"), "config": {key: item}}, key)
        for item in listed
    ]


def _check(layer: Node, elements: int) -> None:
    if elements > MAX_ELEMENTS:
        name = _config(layer).get("name", "?")
        raise InvalidParameter(
            f"layer {name!r} ({layer.get('class_name')}) needs {elements} elements",
            hint=f"At most {MAX_ELEMENTS} are allowed: use a smaller layer.",
        )
