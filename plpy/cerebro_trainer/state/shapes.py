"""Whether the weights of one model are taken by another: one by one, in the order of get_weights(),
by their shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from cerebro_trainer.errors import ConfigError

SHOWN = 5
"""Weights that do not fit, as many as an error names."""


class Weight(NamedTuple):
    """A weight of a model: what Keras calls it, and its shape."""

    path: str
    shape: tuple[int, ...]


def check(received: Sequence[tuple[int, ...]], expected: Sequence[Weight]) -> None:
    """Raises ConfigError, with the first few that differ, where weights of these shapes are not the
    model's.
    """
    wrong = [
        (
            f"{weight.path} {list(weight.shape)}, received "
            f"{'nothing' if shape is None else list(shape)}"
        )
        for weight, shape in zip_longest(expected, received, fillvalue=None)
        if weight is not None and shape != weight.shape
    ]
    if len(received) > len(expected):
        wrong.append(f"nothing more, received {len(received) - len(expected)} weights more")
    if wrong:
        raise ConfigError(
            "the weights do not fit: the model has "
            f"{'; '.join(wrong[:SHOWN])}{'; …' if len(wrong) > SHOWN else ''}",
            hint="Weights are taken over one by one, in the order of get_weights(): as many, of "
            "the same shapes.",
        )
