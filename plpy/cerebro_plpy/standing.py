"""What a run remembers of each configuration while it trains."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cerebro_plpy.platform import StateSource
from cerebro_plpy.records import Config
from cerebro_plpy.schedule import Kind, Visit


@dataclass
class Standing:
    """What is known of one configuration while it trains."""

    config: Config
    state: StateSource
    visits: int = 0
    attempts: dict[Visit, int] = field(default_factory=dict)
    table: str = ""
    losses: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    seconds: dict[Kind, list[float]] = field(default_factory=dict)
    parts: dict[int, list[dict[str, Any]]] = field(default_factory=dict)

    def mean_loss(self, epoch: int) -> float:
        """Mean training loss per row of the visits of an epoch, which is asked for once."""
        losses = self.losses.pop(epoch)
        rows = sum(count for count, _ in losses)
        return sum(count * loss for count, loss in losses) / max(1, rows)


@dataclass(frozen=True)
class Results:
    """The task of computing final metrics of a configuration after an epoch, from sums over segments."""

    epoch: int
    mst_key: int
    request: dict[str, Any]
    attempt: int = 1
