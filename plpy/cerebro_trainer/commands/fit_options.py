"""The fit parameters of a visit: how it passes over a partition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from cerebro_trainer.data import row_order, row_weights
from cerebro_trainer.errors import RequestError
from cerebro_trainer.programs.execution_modes import ModeRequest
from cerebro_trainer.wire.fields import Header, if_present, integer, record, typed


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """The fit parameters of a visit."""

    batch_size: int
    epochs: int
    shuffle: bool
    class_weight: row_weights.ClassWeight | None
    steps: row_order.StepWindow | None
    visit: row_order.VisitKey
    mode_request: ModeRequest
    block_rows: int | None  # minimum rows of merged buffers

    @property
    def shared_settings(self) -> tuple[object, ...]:
        """The settings that all states of a fusion share: not the visit, nor its partition."""
        class_weight = None if self.class_weight is None else self.class_weight.tolist()
        steps = None if self.steps is None else self.steps.steps
        return (
            self.batch_size,
            self.epochs,
            self.shuffle,
            class_weight,
            steps,
            self.mode_request,
            self.block_rows,
        )

    @classmethod
    def from_header(cls, header: Header, sizes: Sequence[int]) -> FitOptions:
        """Read the objects `fit`, `order` and `forms` of a request.

        Args:
            sizes: rows of each buffer of the partition.
        """
        fit = record(header, "fit")
        order = record(header, "order")
        batch_size = integer(fit, "batch_size", minimum=1)
        passes = integer(fit, "epochs", minimum=1)
        steps = None
        if fit.get("steps_per_epoch") is not None:
            steps = row_order.StepWindow(
                steps=integer(fit, "steps_per_epoch", minimum=1),
                total=sum(math.ceil(rows / batch_size) for rows in sizes),
                passes=passes,
            )
        block_rows = if_present(header, "block_rows", partial(integer, minimum=1))
        if steps is not None and (block_rows or "buffers" in header):
            raise RequestError(
                '"steps_per_epoch" counts the batches of whole buffers, and of all of them'
            )
        return cls(
            batch_size=batch_size,
            epochs=passes,
            shuffle=typed(fit, "shuffle", bool),
            class_weight=row_weights.parse_class_weight(fit),
            steps=steps,
            visit=row_order.VisitKey(
                seed=integer(order, "seed"),
                mst_key=integer(order, "mst_key"),
                epoch=integer(order, "epoch"),
                segment_id=integer(order, "segment_id"),
            ),
            mode_request=ModeRequest.from_header(header),
            block_rows=block_rows,
        )
