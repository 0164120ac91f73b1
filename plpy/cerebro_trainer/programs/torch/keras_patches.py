"""What Keras does on PyTorch otherwise than elsewhere, brought into line.

It draws what a Dropout without a seed drops from PyTorch's one generator for all, which no config's
state has; it takes the seed out of a tensor, which stops PyTorch from tracing a step; the best k of
fewer classes are an error; and so is a binary crossentropy that is no number, after which a GPU
does nothing more for its process.
"""

from __future__ import annotations

from typing import Any

import torch
from keras.src import backend
from keras.src.backend.torch import math, nn, random
from keras.src.random.seed_generator import draw_seed

NAME = "cerebro_db"
_library = torch.library.Library(NAME, "DEF")
_generators: dict[torch.device, torch.Generator] = {}
_in_top_k = math.in_top_k
_binary_crossentropy = nn.binary_crossentropy


def install() -> None:
    """Have Keras' layers and metrics do so."""
    if random.dropout is not dropout:
        _library.define("kept(Tensor like, int[] shape, float share, Tensor seed) -> Tensor")
        _library.impl("kept", _kept, "CompositeExplicitAutograd")
        random.dropout = dropout
        nn.binary_crossentropy = binary_crossentropy
        math.in_top_k = lambda targets, predictions, k: _in_top_k(
            targets, predictions, min(k, predictions.shape[-1])
        )


def dropout(inputs: Any, rate: float, noise_shape: Any = None, seed: Any = None) -> Any:
    """Numbers of which each is 0 with probability `rate`, the others so much larger; as Keras'
    function.
    """
    if rate >= 1.0:
        return torch.zeros_like(inputs)
    if rate == 0.0 or inputs.is_meta:
        return inputs * 1.0
    shape = list(random._get_concrete_noise_shape(inputs, noise_shape))
    scaled = getattr(torch.ops, NAME).kept(inputs.detach(), shape, 1.0 - rate, draw_seed(seed))
    return inputs * scaled


def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Any:
    """That of each number; as Keras' function, by PyTorch's formula."""
    target, output = (backend.convert_to_tensor(each) for each in (target, output))
    if from_logits or target.shape != output.shape:
        return _binary_crossentropy(target, output, from_logits)
    output = torch.clip(output, backend.epsilon(), 1.0 - backend.epsilon())
    return (target - 1.0) * torch.log1p(-output) - target * torch.log(output)


def _kept(like: torch.Tensor, shape: list[int], share: float, seed: torch.Tensor) -> torch.Tensor:
    """0, and with probability `share` its inverse, by a seed of two numbers."""
    if like.is_cuda and torch.cuda.is_current_stream_capturing():
        raise NotImplementedError(
            "what is drawn depends on a value, so it is not the same each time"
        )
    if like.device not in _generators:
        _generators[like.device] = torch.Generator(device=like.device)
    generator = _generators[like.device].manual_seed(int(seed.sum()) & 0xFFFFFFFF)
    found = torch.empty(shape, dtype=torch.float32, device=like.device).bernoulli_(
        share, generator=generator
    )
    return found.div_(share).to(like.dtype)
