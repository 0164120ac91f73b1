"""How a visit goes through a partition, as a request says it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cerebro_trainer.data import row_order, row_weights
from cerebro_trainer.errors import RequestError
from cerebro_trainer.programs.execution_modes import ModeRequest
from cerebro_trainer.wire.fields import integer, record, typed


@dataclass(frozen=True, kw_only=True)
class Fit:
    """How to go through a partition."""

    batch_size: int
    epochs: int
    shuffle: bool
    class_weight: row_weights.ClassWeight | None
    steps: row_order.StepWindow | None
    place: row_order.VisitKey
    wanted: ModeRequest
    block_rows: int | None

    @property
    def way(self) -> tuple[object, ...]:
        """All but where it is, and how many batches there are; for comparing."""
        weights = None if self.class_weight is None else self.class_weight.tolist()
        steps = None if self.steps is None else self.steps.steps
        return (
            self.batch_size,
            self.epochs,
            self.shuffle,
            weights,
            steps,
            self.wanted,
            self.block_rows,
        )

    @classmethod
    def from_header(cls, header: Mapping[str, Any], sizes: Sequence[int]) -> Fit:
        """Read the objects `fit`, `order` and `forms` of a request; `sizes` are the rows of each
        buffer.
        """
        fit, place = record(header, "fit"), record(header, "order")
        batch_size, passes = (
            integer(fit, "batch_size", minimum=1),
            integer(fit, "epochs", minimum=1),
        )
        total = sum(math.ceil(rows / batch_size) for rows in sizes)
        steps = (
            None
            if fit.get("steps_per_epoch") is None
            else integer(fit, "steps_per_epoch", minimum=1)
        )
        block_rows = integer(header, "block_rows", minimum=1) if "block_rows" in header else None
        if steps is not None and (block_rows or "buffers" in header):
            raise RequestError(
                '"steps_per_epoch" counts the batches of whole buffers, and of all of them'
            )
        return cls(
            batch_size=batch_size,
            epochs=passes,
            shuffle=typed(fit, "shuffle", bool),
            class_weight=row_weights.parse_class_weight(fit),
            steps=None
            if steps is None
            else row_order.StepWindow(steps=steps, total=total, passes=passes),
            place=row_order.VisitKey(
                **{
                    name: integer(place, name)
                    for name in ("seed", "mst_key", "epoch", "segment_id")
                }
            ),
            wanted=ModeRequest.from_header(header),
            block_rows=block_rows,
        )
