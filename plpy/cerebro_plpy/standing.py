"""What the epoch loop knows of one configuration: its state, its attempts, and numbers that it still adds up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cerebro_plpy import jobs
from cerebro_plpy.platform import StateSource
from cerebro_plpy.records import Config, VisitResult
from cerebro_plpy.schedule import Visit

Part = Mapping[str, Any]


@dataclass
class Standing:
    """One configuration while it trains."""

    config: Config
    program: str
    state: StateSource
    visits: int = 0
    attempts: dict[Visit, int] = field(default_factory=dict)
    table: str = ""
    losses: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    seconds: float = 0.0
    fallback: bool = False
    parts: dict[int, list[Part]] = field(default_factory=dict)

    def shares_forms(self, other: Standing) -> bool:
        """Whether the two train the same program in batches of the same size."""
        return (self.program, self.config.fit.batch_size) == (other.program, other.config.fit.batch_size)

    def trained(self, run_id: int, visit: Visit, result: VisitResult) -> None:
        """A training visit was made; the next one starts from what it left."""
        self.visits += 1
        self.table = result.state_table
        self.state = jobs.later_state(run_id, visit.mst_key, self.visits, result.state_table)
        self.seconds += result.seconds
        self.fallback = bool(result.fallback)
        self.losses.setdefault(visit.epoch, []).append((result.rows, result.loss))

    def mean_loss(self, epoch: int) -> float:
        """Mean training loss per row of the visits of an epoch, which is asked for once."""
        losses = self.losses.pop(epoch)
        rows = sum(count for count, _ in losses)
        return sum(count * loss for count, loss in losses) / max(1, rows)


def added(parts: Iterable[Part]) -> dict[str, dict[str, Any]]:
    """What the segments found, per data set: `sums` added element by element, and `rows`.

    >>> added([{"training": {"rows": 1, "sums": [[1.0, 2.0]]}}, {"training": {"rows": 2, "sums": [[3.0, 4.0]]}}])
    {'sums': {'training': [[4.0, 6.0]]}, 'rows': {'training': 3}}
    """
    sums: dict[str, list[list[float]]] = {}
    rows: dict[str, int] = {}
    for part in parts:
        for name, values in part.items():
            rows[name] = rows.get(name, 0) + values["rows"]
            before = sums.get(name, [[0.0] * len(v) for v in values["sums"]])
            sums[name] = [[a + b for a, b in zip(x, y)] for x, y in zip(before, values["sums"])]
    return {"sums": sums, "rows": rows}
