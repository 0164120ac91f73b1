"""Patches of Keras on PyTorch, so that it behaves as on the other frameworks.

* A Dropout without a seed draws from PyTorch's global generator, which is not in any config's
  state.
* Keras takes the seed out of a tensor, which stops PyTorch from tracing a step.
* The best k of fewer classes are an error.
* So is a binary crossentropy that is NaN, after which a GPU fails for the rest of its process.
"""

from __future__ import annotations

from typing import Any

import torch
from keras.src import backend
from keras.src.backend.torch import math, nn, random
from keras.src.random.seed_generator import draw_seed

NAMESPACE = "cerebro_db"
_library = torch.library.Library(NAMESPACE, "DEF")
_generators: dict[torch.device, torch.Generator] = {}
_keras_in_top_k = math.in_top_k
_keras_binary_crossentropy = nn.binary_crossentropy


def install() -> None:
    """Replace the functions that Keras' layers and metrics call."""
    if random.dropout is dropout:
        return
    _library.define("dropout_mask(Tensor like, int[] shape, float share, Tensor seed) -> Tensor")
    _library.impl("dropout_mask", _draw_dropout_mask, "CompositeExplicitAutograd")
    random.dropout = dropout
    nn.binary_crossentropy = binary_crossentropy
    math.in_top_k = lambda targets, predictions, k: _keras_in_top_k(
        targets, predictions, min(k, predictions.shape[-1])
    )


def dropout(inputs: Any, rate: float, noise_shape: Any = None, seed: Any = None) -> Any:
    """Set numbers to 0 with probability `rate`, and scale up the others; as Keras' function."""
    if rate >= 1.0:
        return torch.zeros_like(inputs)
    if rate == 0.0 or inputs.is_meta:
        return inputs * 1.0
    shape = list(random._get_concrete_noise_shape(inputs, noise_shape))
    library = getattr(torch.ops, NAMESPACE)
    return inputs * library.dropout_mask(inputs.detach(), shape, 1.0 - rate, draw_seed(seed))


def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Any:
    """Return the crossentropy of each number; as Keras' function, with PyTorch's formula."""
    target = backend.convert_to_tensor(target)
    output = backend.convert_to_tensor(output)
    if from_logits or target.shape != output.shape:
        return _keras_binary_crossentropy(target, output, from_logits)
    output = torch.clip(output, backend.epsilon(), 1.0 - backend.epsilon())
    return (target - 1.0) * torch.log1p(-output) - target * torch.log(output)


def _draw_dropout_mask(
    like: torch.Tensor, shape: list[int], share: float, seed: torch.Tensor
) -> torch.Tensor:
    """Return numbers that are 1 / share with probability `share`, else 0.

    Args:
        like: tensor with the dtype and the device of the result.
        seed: two numbers.
    """
    if like.is_cuda and torch.cuda.is_current_stream_capturing():
        raise NotImplementedError(
            "what is drawn depends on a value, so it is not the same each time"
        )
    if like.device not in _generators:
        _generators[like.device] = torch.Generator(device=like.device)
    generator = _generators[like.device].manual_seed(int(seed.sum()) & 0xFFFFFFFF)
    mask = torch.empty(shape, dtype=torch.float32, device=like.device)
    mask.bernoulli_(share, generator=generator)
    return mask.div_(share).to(like.dtype)
