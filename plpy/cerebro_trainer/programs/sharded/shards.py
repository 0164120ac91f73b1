"""Shards: how many consecutive pieces of a network are in memory at once; and for which models that
is not enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from cerebro_trainer.errors import ConfigError

LOOKS_ACROSS = {
    "global_clipnorm": "global_clipnorm",
    "use_ema": "use_ema",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "inner_optimizer": "the scale of its loss",
}
"""What of an optimizer needs all gradients or weights at once, by the attribute that says so."""
WITHOUT_WEIGHT = ("_iterations", "_learning_rate", "_u_product")
"""Variables that belong to no weight, and that any step changes alike, whichever weights it is for.
"""


class Cost(NamedTuple):
    """What a piece takes: its layers, bytes of its `state`, and the most that its process took to
    compute it.
    """

    layers: list[str]
    state: int
    peak: int


def cut(costs: Sequence[Cost], room: int | None) -> tuple[list[range], bool]:
    """The pieces of each shard; and whether, while one is computed, there is room for the state of
    another one.

    As few shards as there can be. A piece alone is a shard whatever it takes.

    >>> costs = [Cost([name], 3, 5) for name in "abcd"]
    >>> cut(costs, None), cut(costs, 16)
    (([range(0, 4)], True), ([range(0, 2), range(2, 4)], True))
    >>> cut(costs[:2], 7)
    ([range(0, 1), range(1, 2)], False)
    """
    if room is None or sum(cost.peak for cost in costs) <= room:
        return [range(len(costs))], True
    ahead = all(cost.peak + cost.state <= room for cost in costs)
    shards: list[range] = []
    begin = taken = 0
    for number, cost in enumerate(costs):
        more = cost.peak + (cost.state if ahead else 0)
        if number > begin and taken + more > room:
            shards.append(range(begin, number))
            begin, taken = number, 0
        taken += more
    return [*shards, range(begin, len(costs))], ahead


def described(costs: Sequence[Cost], shards: Sequence[range]) -> list[dict[str, object]]:
    """Each shard: its layers, the bytes of its state, and what it takes of memory.

    >>> described([Cost(["a"], 3, 5), Cost(["b", "c"], 1, 2)], [range(0, 2)])
    [{'layers': ['a', 'b', 'c'], 'state_bytes': 4, 'memory_bytes': 7}]
    """
    found: list[dict[str, object]] = []
    for shard in shards:
        parts = costs[shard.start : shard.stop]
        layers = [name for part in parts for name in part.layers]
        state, memory = sum(part.state for part in parts), sum(part.peak for part in parts)
        found.append({"layers": layers, "state_bytes": state, "memory_bytes": memory})
    return found


def refuse_optimizer(optimizer: Any, common: Sequence[Any]) -> None:
    """ConfigError where an optimizer cannot take a step piece by piece; these of its variables
    belong to no weight.
    """
    names = [
        name for attribute, name in LOOKS_ACROSS.items() if getattr(optimizer, attribute, None)
    ]
    known = {id(getattr(optimizer, name, None)) for name in WITHOUT_WEIGHT}
    if not names and any(id(variable) not in known for variable in common):
        names = ["what it keeps of all weights together"]
    if names:
        raise ConfigError(
            "the model does not fit into its trainer's memory, and cannot be trained in shards:"
            f" {type(optimizer).__name__} needs all of it at once for {names[0]}",
            sqlstate="53200",
            hint="Ask the administrator to raise trainer_memory_mb in cerebro.setting, or use "
            "another optimizer.",
        )


def refuse_pieces(costs: Sequence[Cost], room: int) -> None:
    """ConfigError where a piece does not fit into so many bytes by itself."""
    largest = max(costs, key=lambda cost: cost.peak)
    if largest.peak > room:
        alone = (
            "it cannot be cut into shards"
            if len(costs) == 1
            else f"the part from layer {largest.layers[0]} on alone"
        )
        raise ConfigError(
            f"the model does not fit into its trainer's memory: {alone}, and takes at least "
            f"{largest.peak >> 20} MB with its gradients and its optimizer; {max(0, room) >> 20} "
            "MB are left",
            sqlstate="53200",
            hint="A network is cut where one tensor passes to a layer with a matrix. Use smaller "
            "layers, or ask the administrator to raise trainer_memory_mb in cerebro.setting.",
        )
