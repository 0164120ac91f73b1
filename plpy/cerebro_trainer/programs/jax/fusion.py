"""Fusion on JAX: several states of one program trained at once, each operation done for all.

Most of a small network's step is call overhead, which the states share. XLA computes each lane of
an operation by itself. A state therefore depends on the number of lanes alone: neither on its own
lane nor on the other states, even if they are NaN. Unused lanes are copies of the first state.

The transformation is `jax.vmap` of the loop that trains one state; the idea is that of HFTA (Wang
et al., MLSys 2021).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.data.padding import Columns, pad_rows, pad_to_capacity, take_rows
from cerebro_trainer.programs.fusion import LaneLosses, Orders, StackedFusion
from cerebro_trainer.programs.jax.compiled_code import Function


class FusedLoop:
    """A program's loop over the batches of a buffer, and its step, for several states at once.

    Args:
        make_function: makes a cached function from a name and a function.
        lanes: number of states.
        loop: loop of one state.
        step: step of one state.
    """

    def __init__(
        self, make_function: Callable[..., Function], lanes: int, loop: Function, step: Function
    ) -> None:
        def loop_over_lanes(
            hyperparameters: Any, values: Any, columns: Columns, orders: Any, steps: Any, batch: int
        ) -> Any:
            vectorized = jax.vmap(partial(loop, batch=batch), in_axes=(0, 0, None, 0, None))
            return vectorized(hyperparameters, values, columns, orders, steps)

        self.lanes = lanes
        self.loop = make_function(
            f"loop_of_{lanes}", loop_over_lanes, 2, donate_argnums=1, static_argnames="batch"
        )
        self.step = make_function(f"step_of_{lanes}", jax.vmap(step), 2, donate_argnums=1)


class JaxFusion(StackedFusion):
    """States of a program that a FusedLoop trains."""

    def train_lanes(self, buffer: Buffer, orders: Orders, batch_size: int) -> LaneLosses:
        columns = self.io_spec.convert(buffer)
        rows = len(orders[0])
        full_rows = rows - rows % batch_size
        total = np.zeros(len(orders))
        if full_rows:
            padded_columns, first_order = pad_to_capacity(columns, orders[0])
            padded_orders = np.stack([pad_rows(order, len(first_order)) for order in orders])
            steps = np.int32(full_rows // batch_size)
            self.values, losses = self.fused.loop(
                self.hyperparameters,
                self.values,
                padded_columns,
                padded_orders,
                steps,
                batch=batch_size,
            )
            total += np.asarray(losses, np.float64)[:, :steps].sum(axis=1) * batch_size
        if full_rows < rows:
            last_batches = take_rows(columns, np.stack([order[full_rows:] for order in orders]))
            self.values, loss = self.fused.step(self.hyperparameters, self.values, last_batches)
            total += np.asarray(loss, np.float64) * (rows - full_rows)
        return total
