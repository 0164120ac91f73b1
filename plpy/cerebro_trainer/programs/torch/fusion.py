"""Fusion on PyTorch: several states of one program trained at once, each operation done for all.

Most of a small network's step is call overhead, which the states share. `vmap_lanes` decides which
operations may be called once for all states, so that a state depends on the number of lanes alone.
Unused lanes are copies of the first state.

The program trains the last, smaller batch of a buffer state by state, as in its other modes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch

from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.programs.fusion import Fusion, LaneLosses, Member, Orders, pad_lanes
from cerebro_trainer.programs.io_spec import IoSpec
from cerebro_trainer.programs.torch.tensors import (
    Tensors,
    convert_memory_errors,
    fill_tensor,
    to_tensor,
)
from cerebro_trainer.programs.torch.vmap_lanes import ALIGNMENT, FusedStep
from cerebro_trainer.wire.frames import Array, Arrays


class FusibleProgram(Protocol):
    """The features of a program that a fusion uses."""

    io_spec: IoSpec

    def make_lane_tensors(self, mode: str) -> Tensors:
        """Return tensors for everything that a step of a mode may read or change.

        The values of each lane come first, then its hyperparameters. The tensors may contain
        remains of another fusion.
        """

    def make_fused_step(self, mode: str, columns: Tensors) -> FusedStep:
        """Return the step of a mode on batches like these, one per lane."""

    def take_single_steps(
        self, batches: Sequence[tuple[Member, Tensors]]
    ) -> list[tuple[Arrays, float]]:
        """Take a step of each state on its batch, of any size; return new values and losses."""


class TorchFusion(Fusion):
    """States of a program that share tensors."""

    def __init__(
        self, program: FusibleProgram, members: Sequence[Member], mode: str, lanes: int
    ) -> None:
        self._program = program
        self._members = members
        self._mode = mode
        self._lanes = lanes
        with convert_memory_errors():
            self._tensors = program.make_lane_tensors(mode)
            for lane, member in enumerate(pad_lanes(members, lanes)):
                self._write(lane, [*member.values, *member.hyperparameters])

    def train(self, buffer: Buffer, orders: Orders, batch_size: int) -> list[float]:
        inputs, targets = self._program.io_spec.convert(buffer)
        rows = len(orders[0])
        full_rows = rows - rows % batch_size
        total = np.zeros(len(self._members))
        with convert_memory_errors(), torch.no_grad():
            columns = [to_tensor(array) for array in (*inputs, *targets)]
            if full_rows:
                full_orders = [order[:full_rows] for order in orders]
                total += self._train_full_batches(columns, full_orders, batch_size) * batch_size
            if full_rows < rows:
                batches = [_select_rows(columns, to_tensor(order[full_rows:])) for order in orders]
                total += self._train_last_batches(batches) * (rows - full_rows)
        return [float(loss) for loss in total]

    def _train_full_batches(self, columns: Tensors, orders: Orders, batch_size: int) -> LaneLosses:
        """Train one pass; return the sum of the batch losses of each state."""
        step: FusedStep | None = None
        losses = []
        padded_orders = to_tensor(np.stack(pad_lanes(orders, self._lanes)))
        for batch_orders in padded_orders.split(batch_size, dim=1):
            rows = _select_rows(columns, batch_orders.reshape(-1))
            batch = [column.unflatten(0, batch_orders.shape) for column in rows]
            if step is None:
                step = self._program.make_fused_step(self._mode, batch)
            losses.append(step(self._tensors, batch))
        sums: LaneLosses = torch.stack(losses).double().sum(dim=0).cpu().numpy()
        return sums[: len(orders)]

    def _train_last_batches(self, batches: Sequence[Tensors]) -> LaneLosses:
        """Take a step of each state on its own batch; return the losses."""
        members = [
            member._replace(values=self.read_state(lane))
            for lane, member in enumerate(self._members)
        ]
        results = self._program.take_single_steps([*zip(members, batches, strict=True)])
        for lane, (values, _) in enumerate(results):
            self._write(lane, values)
        return np.array([loss for _, loss in results])

    def _write(self, lane: int, values: Arrays) -> None:
        for tensor, value in zip(self._tensors, values, strict=False):
            fill_tensor(tensor[lane], value)

    def read_state(self, lane: int) -> list[Array]:
        count = len(self._members[lane].values)
        return [np.array(tensor[lane].cpu().numpy()) for tensor in self._tensors[:count]]


def make_lanes_like(tensors: Tensors, lanes: int) -> Tensors:
    """Return zeros of all lanes in place of each tensor; views of one memory stay views of one."""
    longest = dict[int, Any]()
    for tensor in sorted(tensors, key=torch.Tensor.numel):
        longest[_memory_address(tensor)] = tensor
    blocks = {address: _allocate_lanes(tensor, lanes) for address, tensor in longest.items()}
    lane_tensors = []
    for tensor in tensors:
        address = _memory_address(tensor)
        begin = tensor.storage_offset() - longest[address].storage_offset()
        part = blocks[address][:, begin : begin + tensor.numel()]
        lane_tensors.append(part.view(lanes, *tensor.shape))
    return lane_tensors


def _allocate_lanes(tensor: Any, lanes: int) -> Any:
    """Return zeros of shape (lanes, numbers of the tensor); each lane begins at an alignment."""
    item_size = tensor.element_size()
    aligned_size = -(-tensor.numel() * item_size // ALIGNMENT) * ALIGNMENT // item_size
    block = torch.zeros(lanes, aligned_size, dtype=tensor.dtype, device=tensor.device)
    return block[:, : tensor.numel()]


def _memory_address(tensor: Any) -> int:
    """Return a number that is equal for tensors that share memory."""
    return int(tensor.untyped_storage().data_ptr())


def _select_rows(columns: Tensors, positions: Any) -> Tensors:
    return [column.index_select(0, positions) for column in columns]
