"""Shards: the consecutive pieces of a network that are in memory at the same time.

Checks which models can be trained in shards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from cerebro_trainer.errors import ConfigError
from cerebro_trainer.programs.learner import Descriptions

GLOBAL_OPTIONS = {
    "global_clipnorm": "global_clipnorm",
    "use_ema": "use_ema",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "inner_optimizer": "the scale of its loss",
}
"""Options of an optimizer that need all gradients or weights at once, with their descriptions."""
SCALAR_VARIABLES = ("_iterations", "_learning_rate", "_u_product")
"""Variables of an optimizer that belong to no weight; a step for any weights changes them alike."""


class PieceCost(NamedTuple):
    """Memory of one piece."""

    layers: list[str]
    state: int  # bytes of its state
    peak: int  # largest number of bytes while the piece is computed, including its state


def make_shards(costs: Sequence[PieceCost], available: int | None) -> tuple[list[range], bool]:
    """Divide the pieces into as few shards as possible; one piece may exceed the memory.

    Args:
        available: bytes for the computation; None for no limit.

    Returns:
        The pieces of each shard. Second, whether the state of another shard fits into memory while
        one is computed.

    >>> costs = [PieceCost([name], 3, 5) for name in "abcd"]
    >>> make_shards(costs, None), make_shards(costs, 16)
    (([range(0, 4)], True), ([range(0, 2), range(2, 4)], True))
    >>> make_shards(costs[:2], 7)
    ([range(0, 1), range(1, 2)], False)
    """
    if available is None or sum(cost.peak for cost in costs) <= available:
        return [range(len(costs))], True
    can_prefetch = all(cost.peak + cost.state <= available for cost in costs)
    shards: list[range] = []
    begin = 0
    shard_bytes = 0
    for number, cost in enumerate(costs):
        piece_bytes = cost.peak + (cost.state if can_prefetch else 0)
        if number > begin and shard_bytes + piece_bytes > available:
            shards.append(range(begin, number))
            begin = number
            shard_bytes = 0
        shard_bytes += piece_bytes
    return [*shards, range(begin, len(costs))], can_prefetch


def describe_shards(costs: Sequence[PieceCost], shards: Sequence[range]) -> Descriptions:
    """Return the layers, the bytes of the state, and the memory of each shard.

    >>> describe_shards([PieceCost(["a"], 3, 5), PieceCost(["b", "c"], 1, 2)], [range(0, 2)])
    [{'layers': ['a', 'b', 'c'], 'state_bytes': 4, 'memory_bytes': 7}]
    """
    descriptions: Descriptions = []
    for shard in shards:
        pieces = costs[shard.start : shard.stop]
        descriptions.append(
            {
                "layers": [name for piece in pieces for name in piece.layers],
                "state_bytes": sum(piece.state for piece in pieces),
                "memory_bytes": sum(piece.peak for piece in pieces),
            }
        )
    return descriptions


def check_optimizer(optimizer: Any, common: Sequence[Any]) -> None:
    """Check that an optimizer can take a step piece by piece.

    Args:
        common: its variables that belong to no weight.

    Raises:
        ConfigError: it needs all weights or gradients at once.
    """
    reasons = [
        description
        for attribute, description in GLOBAL_OPTIONS.items()
        if getattr(optimizer, attribute, None)
    ]
    scalars = {id(getattr(optimizer, name, None)) for name in SCALAR_VARIABLES}
    if not reasons and any(id(variable) not in scalars for variable in common):
        reasons = ["what it keeps of all weights together"]
    if reasons:
        raise ConfigError(
            "the model does not fit into its trainer's memory, and cannot be trained in shards:"
            f" {type(optimizer).__name__} needs all of it at once for {reasons[0]}",
            sqlstate="53200",
            hint="Ask the administrator to raise trainer_memory_mb in cerebro.setting, or use "
            "another optimizer.",
        )


def check_pieces(costs: Sequence[PieceCost], available: int) -> None:
    """Check that each piece fits into memory by itself.

    Raises:
        ConfigError: a piece needs more than the available bytes.
    """
    largest = max(costs, key=lambda cost: cost.peak)
    if largest.peak <= available:
        return
    if len(costs) == 1:
        reason = "it cannot be cut into shards"
    else:
        reason = f"the part from layer {largest.layers[0]} on alone"
    raise ConfigError(
        f"the model does not fit into its trainer's memory: {reason}, and takes at least "
        f"{largest.peak >> 20} MB with its gradients and its optimizer; {max(0, available) >> 20} "
        "MB are left",
        sqlstate="53200",
        hint="A network is cut where one tensor passes to a layer with a matrix. Use smaller "
        "layers, or ask the administrator to raise trainer_memory_mb in cerebro.setting.",
    )
