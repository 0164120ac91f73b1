"""Programs: a model, its optimizer, loss and metrics, compiled once, used by every config that
shares them.

Building and tracing take a second, setting the variables milliseconds: a hop should only pay the
latter. This module is the protocol and knows no framework; each framework adds one module with a
subclass.
"""

from __future__ import annotations

import gc
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.errors import ConfigError, RequestError
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.programs.fusion import Fusion, Member
from cerebro_trainer.programs.memory import Room
from cerebro_trainer.programs.tensorboard import Board
from cerebro_trainer.state.layout import Layout

Array: TypeAlias = npt.NDArray[Any]
Sums: TypeAlias = list[list[float]]

FALLBACK = "keras_fit"
"""The form for what no other can do: Keras' own training loop."""
SHARDED = "sharded"
"""The form of what does not fit into memory: parts of the state lie in a file while others are
computed.
"""
KEPT_PROGRAMS = 64
KEPT_BYTES = 2 << 30
"""Of variables, in all programs that are kept for later."""
INHERITED_PROGRAMS = 24
INHERITED_BYTES = 256 << 20
"""The same of programs that are left to the next session, which may never come."""


Loss: TypeAlias = Callable[[], float]
"""What a pass came to, as soon as it is done."""
Places: TypeAlias = Sequence[Sequence[int]]
"""Of each input array, the positions that a column of the table has in a row of it."""


class Attributions(NamedTuple):
    """What each column adds to the output of a row, (rows, columns), and by how much all together
    miss it, (rows,).

    `patches` is what the output loses where a patch is covered, (rows, patches).
    """

    values: Array
    gap: Array
    patches: Array


class Program(ABC):
    """A compiled program: one model, one optimizer, one trace, lent to one config's state at a
    time.

    Laws, which the contract tests check over every framework:

    1. `write(read())` changes nothing; after `write(values)`, `read()` gives the same bits. What
       `read` gave stays what it is, whatever the program does next.
    2. `initial(seed)` depends on architecture, optimizer and `seed` alone, and leaves `read()` as
       it is.
    3. `train` depends on the variables, the buffer, the order, the batch size, the numbers and the
       form alone: what other configs did with the program before does not matter.
    4. `evaluate`, `predict` and `attribute` leave `read()` as it is.
    5. `evaluate` gives sums: those of two buffers add up to those of both together.
    6. All forms take the same steps, those with `lanes` as well: they differ in the rounding of
       sums, not in what is computed.
    """

    forms: tuple[str, ...]
    """The ways it can train, in the order in which they are tried; bits depend on the form.

    The first is what a model like this most likely trains fastest with. Where one is hopelessly
    slow, those after it are so, too. FALLBACK is understood beside them.
    """
    batches_at_once: Mapping[str, int] = {}
    """Of forms that take several batches in one call, their number; fewer than these are trained
    one by one.
    """
    lanes: Mapping[str, int] = {}
    """Of forms that train several states at once, how many; they are none of `forms`, which train
    one.
    """
    trainable = True
    """Whether it has weights to train; one without can evaluate and predict."""
    compilation_factor: float
    """How many times longer than the first form another one is expected to compile."""
    layout: Layout

    @property
    @abstractmethod
    def step(self) -> int:
        """Optimizer steps taken by the state now held."""

    @abstractmethod
    def read(self) -> Sequence[Array]:
        """The values of all variables, in the order of `layout`; not to be changed, but they stay
        what they are.
        """

    @abstractmethod
    def assign(self, position: int, value: Array) -> None:
        """Set one variable; shape and dtype are those of `layout`. The program may keep the array
        itself.
        """

    def write(self, values: Sequence[Array]) -> None:
        """Set all variables."""
        for position, value in enumerate(values):
            self.assign(position, value)

    @abstractmethod
    def initial(self, seed: int) -> Sequence[Array]:
        """A fresh state: initial weights under `seed`, and an optimizer that has done no step."""

    def renew(self, seed: int) -> None:
        """Set what is no weight as `initial(seed)` has it; the weights are still to come."""
        self.write(self.initial(seed))

    def side_by_side(self, states: int) -> str | None:
        """The form with the fewest lanes for so many states together, if there is one."""
        wide = [form for form, lanes in self.lanes.items() if 1 < states <= lanes]
        return min(wide, key=lambda form: self.lanes[form], default=None)

    def understands(self, form: str | None) -> bool:
        """Whether it can train in that form, or in any where none is named."""
        return form in (None, FALLBACK, *self.forms, *self.lanes)

    def spared(self) -> float:
        """Seconds since this was asked last that compiling took before, of code that was found
        compiled.
        """
        return 0.0

    @abstractmethod
    def wipe(self) -> None:
        """Overwrite what states and rows have left anywhere in it; what is compiled stays."""

    @abstractmethod
    def set_numbers(self, spec: ProgramSpec) -> None:
        """Set the numbers of a configuration that are no part of the program, such as its learning
        rate.
        """

    def train(
        self, buffer: Buffer, order: npt.NDArray[np.int32], batch_size: int, form: str
    ) -> float:
        """One pass over rows of a buffer in this order, the last batch as small as it is.

        Returns the sum over batches of mean batch loss times rows; NaN or Inf as soon as a loss is.
        """
        return self.dispatch(buffer, order, batch_size, form)()

    @abstractmethod
    def dispatch(
        self, buffer: Buffer, order: npt.NDArray[np.int32], batch_size: int, form: str
    ) -> Loss:
        """Hand such a pass over to the device, which may compute until it is asked for the loss,
        and be given more meanwhile; an error comes at either time."""

    def member(self) -> Member:
        """The state now held, with the numbers that were set, as one of a fusion."""
        return Member(self.read(), [])

    def fusion(self, members: Sequence[Member], form: str) -> Fusion:
        """States that are trained side by side in one of the forms with `lanes`, at most so
        many.
        """
        raise RequestError(
            f"form {form!r} trains no states side by side; this program has none that does"
        )

    def train_in_lanes(
        self, buffer: Buffer, order: npt.NDArray[np.int32], batch_size: int, form: str
    ) -> float:
        """`train` in a form with lanes: the state alone, with the bits that it would have beside
        others.
        """
        fusion = self.fusion([self.member()], form)
        (loss,) = fusion.train(buffer, [order], batch_size)
        self.write(fusion.values(0))
        return loss

    @abstractmethod
    def evaluate(self, buffer: Buffer) -> Sums:
        """[loss times rows, rows], then each metric's flattened variables, over this buffer."""

    @abstractmethod
    def no_sums(self) -> Sums:
        """What `evaluate` gives for no rows: zeros."""

    @abstractmethod
    def results(self, sums: Sums) -> dict[str, object]:
        """{"loss", "metrics": [one number each, in compile order]} from (added) sums of
        `evaluate`.
        """

    @abstractmethod
    def predict(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs for input arrays of shape (rows, ...), each of shape (rows, ...)."""

    @abstractmethod
    def attribute(
        self, inputs: Sequence[Array], columns: Sequence[Places], patches: Sequence[Places]
    ) -> Attributions:
        """Why one output is for these rows what it is, rather than for a row whose inputs are all
        0, by columns.

        Of several units that of each row which is the largest. A patch is covered by zeros.
        """

    def parts(self) -> list[dict[str, object]]:
        """The shards that take turns in memory: `layers`, `state_bytes`, `memory_bytes`; none where
        all of it fits.
        """
        return []

    @abstractmethod
    def cuts(self) -> list[dict[str, object]]:
        """Where the network can be cut: `layer`, `shape` of what it gives, `flops` to come there,
        and a `digest`.
        """

    @abstractmethod
    def fronts(self, layers: Sequence[str]) -> list[dict[str, object]]:
        """What leads to each of these layers: its `architecture`, and where its `weights` are among
        the flat ones.
        """

    @abstractmethod
    def features(self, layer: str, inputs: Sequence[Array]) -> Array:
        """What the layer of a cut gives for input arrays of shape (rows, ...), as float32."""

    def board(self, folder: str) -> Board:
        """What writes there for TensorBoard; ConfigError where the framework has nothing that
        does.
        """
        raise ConfigError(
            "callbacks are written by TensorFlow",
            sqlstate="0A000",
            hint="Train with backend => 'tensorflow'.",
        )


@dataclass(frozen=True, kw_only=True)
class Framework:
    """What a framework's module offers the trainer."""

    name: str
    version: str
    keras_version: str
    devices: tuple[str, ...]
    threads: int
    make: Callable[[ProgramSpec, Room], Program]
    errors: tuple[type[Exception], ...]
    """Raised by the framework for what a config cannot do."""
    memory_errors: tuple[type[Exception], ...]
    """Raised when memory ran out, on the host or a device."""
    fatal_errors: tuple[type[Exception], ...] = ()
    """Raised when a device does nothing more for this process."""
    gpus: Callable[[], tuple[str, ...]]
    """Describes each GPU that it finds."""


class Programs:
    """The programs of this process by key; the least recently used go first."""

    def __init__(self, make: Callable[[ProgramSpec, Room], Program]) -> None:
        self._make = make
        self._kept: OrderedDict[str, Program] = OrderedDict()

    def get(self, spec: ProgramSpec, room: Room) -> Program:
        """The program of this spec, made if need be."""
        if spec.key in self._kept and not self._kept[spec.key].understands(room.form):
            del self._kept[spec.key]
        if spec.key not in self._kept:
            self._make_room(KEPT_PROGRAMS - 1, KEPT_BYTES)
            self._kept[spec.key] = self._make(spec, room)
        self._kept.move_to_end(spec.key)
        return self._kept[spec.key]

    def wipe(self) -> None:
        """Overwrite what a session has left, which is over; the programs used last stay."""
        self._make_room(INHERITED_PROGRAMS, INHERITED_BYTES)
        for program in self._kept.values():
            program.wipe()

    def _make_room(self, count: int, nbytes: int) -> None:
        while len(self._kept) > count or self._nbytes() > nbytes:
            self._kept.popitem(last=False)
            gc.collect()  # programs hold cycles, and their variables are large

    def _nbytes(self) -> int:
        return sum(program.layout.nbytes for program in self._kept.values())
