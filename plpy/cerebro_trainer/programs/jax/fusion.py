"""Several states of one program trained as one by JAX: each operation is done for all of them at
once.

A small network's step is mostly what is around its arithmetic, which so many states share. XLA
computes each lane of an operation by itself, so what becomes of a state depends on how many lanes
there are alone: not on its place, nor on what is in the others, be it NaN. States that are fewer
are filled up with copies of the first.

The transformation is `jax.vmap` of the loop that trains one state; the idea is HFTA's (Wang et al.,
MLSys 2021).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.data.padding import Columns, pad_rows, pad_to_capacity, take_rows
from cerebro_trainer.programs.fusion import Member, StackedFusion
from cerebro_trainer.programs.io_spec import IoSpec

Orders = Sequence[npt.NDArray[np.int32]]
Function = Callable[..., Any]


class FusedLoop:
    """A program's loop over the batches of a buffer, and its step, each for so many states at
    once.
    """

    def __init__(
        self, kept: Callable[..., Function], lanes: int, loop: Function, step: Function
    ) -> None:
        """`kept` makes a function that is compiled once, of its name and itself; `loop` and `step`
        are of one state.
        """

        def loops(
            numbers: Any, values: Any, columns: Columns, orders: Any, steps: Any, batch: int
        ) -> Any:
            each = jax.vmap(partial(loop, batch=batch), in_axes=(0, 0, None, 0, None))
            return each(numbers, values, columns, orders, steps)

        self.lanes = lanes
        self.loop = kept(f"loop_of_{lanes}", loops, 2, donate_argnums=1, static_argnames="batch")
        self.step = kept(f"step_of_{lanes}", jax.vmap(step), 2, donate_argnums=1)


class JaxFusion(StackedFusion):
    """States of a program that are trained by such a loop."""

    def __init__(self, fused: FusedLoop, io_spec: IoSpec, members: Sequence[Member]) -> None:
        super().__init__(fused.lanes, io_spec, members)
        self._fused = fused

    def train_lanes(
        self, buffer: Buffer, orders: Orders, batch_size: int
    ) -> npt.NDArray[np.float64]:
        columns, rows = self.io_spec.fit(buffer), len(orders[0])
        done = rows - rows % batch_size
        total = np.zeros(len(orders))
        if done:
            (whole, first), steps = (
                pad_to_capacity(columns, orders[0]),
                np.int32(done // batch_size),
            )
            padded_orders = np.stack([pad_rows(order, len(first)) for order in orders])
            values = self.hyperparameters, self.values
            self.values, losses = self._fused.loop(
                *values, whole, padded_orders, steps, batch=batch_size
            )
            total += np.asarray(losses, np.float64)[:, :steps].sum(axis=1) * batch_size
        if done < rows:
            rest = take_rows(columns, np.stack([order[done:] for order in orders]))
            self.values, loss = self._fused.step(self.hyperparameters, self.values, rest)
            total += np.asarray(loss, np.float64) * (rows - done)
        return total
