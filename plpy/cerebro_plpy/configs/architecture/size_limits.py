"""Limits on the sizes of a model, checked when it is loaded, before it is allocated."""

from __future__ import annotations

from math import prod

from cerebro_plpy.configs.architecture.allowlist import is_of_hub
from cerebro_plpy.configs.architecture.model_shapes import (
    Node,
    list_layers,
    read_given_shape,
    read_layer_config,
)
from cerebro_plpy.configs.params.keras_names import KEEPS_WIDTH
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.nouns import count_nouns

# Largest number of elements of a kernel or an input row.
MAX_ELEMENTS = 2**31
# Settings of keras_hub: the widths between two hidden layers, and the lengths of tables.
INNER = ("hidden_dim", "intermediate_dim", "mlp_dim")
ENTRIES = ("vocabulary_size", "vocab_size", "sequence_length", "max_sequence_length")
# Largest number of layers within a layer of keras_hub, which is a single setting.
MAX_BLOCKS = 1000


def check_sizes(model: Node) -> None:
    """Check the sizes of shapes and kernels of a model's layers.

    The width of a layer's input is derived from layer to layer in a Sequential. An unknown width
    counts as one: the check may accept too much, but it never refuses a possible model.

    Raises:
        InvalidParameter: a shape or a kernel has too many elements.
    """
    width: int | None = None
    for layer in list_layers(model):
        if model["class_name"] != "Sequential":
            width = None
        shape = read_given_shape(layer)
        if shape:
            _check(layer, prod(size or 1 for size in shape[1:]))
            width = shape[-1]
        _check(layer, _kernel_elements(layer, width or 1))
        if is_of_hub(layer):
            _check_hub(layer)
        width = _width_after(layer, width)


def _kernel_elements(layer: Node, width: int) -> int:
    units = _size(layer, "units")
    filters = _size(layer, "filters")
    if "recurrent_initializer" in read_layer_config(layer):
        width = max(width, units, filters)
    window = prod(_sizes(layer, "kernel_size"))
    table = _size(layer, "input_dim") * _size(layer, "output_dim")
    return max(units * filters * window * width, table)


def _check_hub(layer: Node) -> None:
    """Check a layer of keras_hub by its largest table, kernel or image, and its inner layers."""
    hidden = _size(layer, "hidden_dim")
    inner = max(_size(layer, key) for key in INNER)
    embedded = (
        _size(layer, "embedding_dim") if "embedding_dim" in read_layer_config(layer) else hidden
    )
    entries = max(_size(layer, key) for key in ENTRIES)
    _check(layer, max(entries * embedded, hidden * inner, prod(_sizes(layer, "image_shape"))))
    blocks = max(
        _size(layer, "num_layers"),
        _size(layer, "num_groups") * _size(layer, "num_inner_repetitions"),
    )
    if blocks > MAX_BLOCKS:
        raise InvalidParameter(
            f"{layer.get('class_name')} has {count_nouns(blocks, 'layer')}",
            hint=f"At most {MAX_BLOCKS} are allowed in one.",
        )


def _width_after(layer: Node, width: int | None) -> int | None:
    if layer.get("class_name") in KEEPS_WIDTH or layer.get("class_name") == "InputLayer":
        return width
    for key in ("units", "filters", "output_dim"):
        if key in read_layer_config(layer):
            return _size(layer, key)
    return None


def _size(layer: Node, key: str) -> int:
    value = read_layer_config(layer).get(key)
    if value is None:
        return 1
    if type(value) is not int or value < 1:
        raise InvalidParameter(
            f"{key} of {layer.get('class_name')} must be a positive whole number, received "
            f"{value!r}"
        )
    return value


def _sizes(layer: Node, key: str) -> list[int]:
    value = read_layer_config(layer).get(key, 1)
    if not isinstance(value, list):
        value = [value]
    return [
        _size({"class_name": layer.get("class_name"), "config": {key: item}}, key) for item in value
    ]


def _check(layer: Node, elements: int) -> None:
    if elements > MAX_ELEMENTS:
        name = read_layer_config(layer).get("name", "?")
        raise InvalidParameter(
            f"layer {name!r} ({layer.get('class_name')}) needs {count_nouns(elements, 'element')}",
            hint=f"At most {MAX_ELEMENTS} are allowed: use a smaller layer.",
        )
