"""Several states of one program trained as one by PyTorch: each operation is done for all of them
at once.

A small network's step is mostly what is around its arithmetic, which so many states share. Which
operations may be done for all, so that what becomes of a state depends on how many lanes there are
alone, is known to `torch_lanes`. States that are fewer are filled up with copies of the first.

The last, smaller batch of a buffer is left to the program, state by state, as it is in its other
forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.programs.fusion import Fusion, Member
from cerebro_trainer.programs.io_spec import IoSpec
from cerebro_trainer.programs.program import Array
from cerebro_trainer.programs.torch.graph import Tensors
from cerebro_trainer.programs.torch.tensors import fill, out_of_memory, tensor
from cerebro_trainer.programs.torch.vmap_lanes import ALIGNED, Fused

Orders = Sequence[npt.NDArray[np.int32]]


class Fusible(Protocol):
    """What a program offers beside."""

    io_spec: IoSpec

    def lanes_of(self, form: str) -> Tensors:
        """Tensors for all that a step may read or change of so many states as a form has: the
        values and the numbers of each, and what else there is. What is in them may be left of
        another fusion."""

    def fused(self, form: str, columns: Tensors) -> Fused:
        """The step that a form takes on such batches, one of each state; they lie in its
        tensors.
        """

    def alone(
        self, batches: Sequence[tuple[Member, Tensors]]
    ) -> list[tuple[Sequence[Array], float]]:
        """A step of each of these states on its batch, of any size: the values after it, and the
        loss before.
        """


class TorchFusion(Fusion):
    """States of a program that lie in the same tensors."""

    def __init__(self, program: Fusible, members: Sequence[Member], form: str, lanes: int) -> None:
        self._program, self._members, self._form, self._lanes = program, members, form, lanes
        with out_of_memory():
            self._held = program.lanes_of(form)
            for place in range(lanes):
                member = members[place if place < len(members) else 0]
                self._put(place, [*member.values, *member.hyperparameters])

    def train(self, buffer: Buffer, orders: Orders, batch_size: int) -> list[float]:
        inputs, targets = self._program.io_spec.convert(buffer)
        done = len(orders[0]) - len(orders[0]) % batch_size
        total = np.zeros(len(self._members))
        with out_of_memory(), torch.no_grad():
            columns = [tensor(array) for array in (*inputs, *targets)]
            if done:
                total += (
                    self._together(columns, [order[:done] for order in orders], batch_size)
                    * batch_size
                )
            if done < len(orders[0]):
                rests = [_taken(columns, tensor(order[done:])) for order in orders]
                total += self._one_by_one(rests) * (len(orders[0]) - done)
        return [float(each) for each in total]

    def _together(
        self, columns: Tensors, orders: Orders, batch_size: int
    ) -> npt.NDArray[np.float64]:
        """A pass over full batches; the sum of the losses of each state."""
        every = [*orders, *[orders[0]] * (self._lanes - len(orders))]
        step, losses = None, []
        for chosen in tensor(np.stack(every)).split(batch_size, dim=1):
            batch = [
                found.unflatten(0, chosen.shape) for found in _taken(columns, chosen.reshape(-1))
            ]
            step = step or self._program.fused(self._form, batch)
            losses.append(step(self._held, batch))
        found: npt.NDArray[np.float64] = torch.stack(losses).double().sum(dim=0).cpu().numpy()
        return found[: len(orders)]

    def _one_by_one(self, batches: Sequence[Tensors]) -> npt.NDArray[np.float64]:
        """A step on a batch of each state; the losses."""
        members = [
            member._replace(values=self.read_state(place))
            for place, member in enumerate(self._members)
        ]
        found = self._program.alone([*zip(members, batches, strict=True)])
        for place, (values, _) in enumerate(found):
            self._put(place, values)
        return np.array([loss for _, loss in found])

    def _put(self, place: int, values: Sequence[Array]) -> None:
        for held, value in zip(self._held, values, strict=False):
            fill(held[place], value)

    def read_state(self, place: int) -> list[Array]:
        count = len(self._members[place].values)
        return [np.array(held[place].cpu().numpy()) for held in self._held[:count]]


def side_by_side(tensors: Tensors, lanes: int) -> Tensors:
    """Zeros of so many states in place of each tensor; what lies in the memory of a longer one does
    so again.
    """
    longest = dict[int, Any]()
    for each in sorted(tensors, key=torch.Tensor.numel):
        longest[_memory(each)] = each
    made = {memory: _lanes_of(each, lanes) for memory, each in longest.items()}
    found = []
    for each in tensors:
        begin = each.storage_offset() - longest[_memory(each)].storage_offset()
        part = made[_memory(each)][:, begin : begin + each.numel()]
        found.append(part.view(lanes, *each.shape))
    return found


def _lanes_of(one: Any, lanes: int) -> Any:
    """Zeros for each number of a tensor, by lanes, which all begin where reading memory does."""
    length = -(-one.numel() * one.element_size() // ALIGNED) * ALIGNED // one.element_size()
    return torch.zeros(lanes, length, dtype=one.dtype, device=one.device)[:, : one.numel()]


def _memory(one: Any) -> int:
    """The same for tensors that share memory."""
    return int(one.untyped_storage().data_ptr())


def _taken(columns: Tensors, rows: Any) -> Tensors:
    return [column.index_select(0, rows) for column in columns]
