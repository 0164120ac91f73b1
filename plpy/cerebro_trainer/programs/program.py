"""The protocol of programs: a compiled model, shared by all configs of the same architecture.

A program is a model with its optimizer, loss and metrics. Building and tracing one takes a second,
setting its variables milliseconds: a hop should only pay the latter. This module knows no
framework; each framework adds one module with a subclass.
"""

from __future__ import annotations

import gc
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.errors import ConfigError, ExceptionTypes, RequestError
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.programs.fusion import Fusion, Member, Order
from cerebro_trainer.programs.memory import MemoryBudget
from cerebro_trainer.programs.tensorboard import Board
from cerebro_trainer.state.layout import Layout
from cerebro_trainer.wire.frames import Array, Arrays

Sums: TypeAlias = list[list[float]]
Descriptions: TypeAlias = list[dict[str, object]]
"""JSON objects, one per thing that is described."""

FALLBACK = "keras_fit"
"""The mode for programs that no other mode can train: Keras' own training loop."""
SHARDED = "sharded"
"""The mode of a program that does not fit into memory: most of its state is in a file."""
MAX_CACHED_PROGRAMS = 64
MAX_CACHED_BYTES = 2 << 30
"""Bytes of variables in all cached programs."""
MAX_INHERITED_PROGRAMS = 24
"""The same limits for programs that the next session inherits, which may never come."""
MAX_INHERITED_BYTES = 256 << 20


PendingLoss: TypeAlias = Callable[[], float]
"""Waits for the end of a pass; returns its loss."""
ColumnPositions: TypeAlias = Sequence[Sequence[int]]
"""Positions of one table column in a row of each input array, by input."""
Columns: TypeAlias = Sequence[ColumnPositions]


class Attributions(NamedTuple):
    """Contribution of each column to one output, by row."""

    values: Array  # what the columns add to the output; shape (rows, columns)
    gap: Array  # by how much the sum of all columns misses the output; shape (rows,)
    patches: Array  # what the output loses when a patch is covered; shape (rows, patches)

    def scaled(self, factor: float) -> Attributions:
        """Return the attributions of a multiple of the output."""
        return Attributions(*(values * factor for values in self))


class Program(ABC):
    """A compiled program: one model, one optimizer, one trace, lent to one config at a time.

    Laws, which the contract tests check over every framework:

    1. `write(read())` changes nothing. After `write(values)`, `read()` returns the same bits. The
       arrays that `read` returned never change afterwards.
    2. `create_initial_state(seed)` depends on architecture, optimizer and `seed` alone. It leaves
       `read()` unchanged.
    3. `train` depends on the variables, the buffer, the order, the batch size, the hyperparameters
       and the mode alone. Earlier configs of the program have no influence.
    4. `evaluate`, `predict` and `attribute` leave `read()` unchanged.
    5. `evaluate` returns sums: those of two buffers add up to those of both together.
    6. All modes take the same steps, including the modes in `lanes`. They differ in the rounding
       of sums only.
    """

    modes: tuple[str, ...]
    """Execution modes that train one state, in the order in which they are tried.

    Bits depend on the mode. The first mode is most likely the fastest one for a model like this.
    If a mode is hopelessly slow, the later ones are so, too. FALLBACK is understood in addition.
    """
    batches_at_once: Mapping[str, int] = {}
    """Batches per call, by mode; fewer batches than these are trained one by one."""
    lanes: Mapping[str, int] = {}
    """States per call, by mode; these modes are not in `modes`."""
    trainable = True
    """True if it has weights to train; otherwise it can only evaluate and predict."""
    compilation_factor: float
    """Expected compile time of another mode, relative to that of the first mode."""
    layout: Layout

    @property
    @abstractmethod
    def step(self) -> int:
        """Optimizer steps that the current state has taken."""

    @abstractmethod
    def read(self) -> Arrays:
        """Return the values of all variables, in the order of `layout`; they must not be changed.

        The arrays keep their values, even if the program trains afterwards.
        """

    @abstractmethod
    def assign(self, position: int, value: Array) -> None:
        """Set one variable; the program may keep the array itself.

        Args:
            value: array with the shape and dtype that `layout` has at this position.
        """

    def write(self, values: Arrays) -> None:
        """Set all variables."""
        for position, value in enumerate(values):
            self.assign(position, value)

    @abstractmethod
    def create_initial_state(self, seed: int) -> Arrays:
        """Return initial weights under `seed`, and an optimizer that has not taken a step."""

    def reset_non_weights(self, seed: int) -> None:
        """Set all variables but the weights as in `create_initial_state`; weights follow later."""
        self.write(self.create_initial_state(seed))

    def fused_mode(self, states: int) -> str | None:
        """Return the mode with the fewest lanes that trains so many states at once, if any."""
        modes = [mode for mode, lanes in self.lanes.items() if 1 < states <= lanes]
        return min(modes, key=lambda mode: self.lanes[mode], default=None)

    def understands(self, mode: str | None) -> bool:
        """Return whether the program can train in this mode; None stands for any mode."""
        return mode in (None, FALLBACK, *self.modes, *self.lanes)

    def take_saved_compile_seconds(self) -> float:
        """Return the compile seconds saved by cache hits since the last call."""
        return 0.0

    @abstractmethod
    def wipe(self) -> None:
        """Overwrite all remains of states and rows; compiled code stays."""

    @abstractmethod
    def set_hyperparameters(self, spec: ProgramSpec) -> None:
        """Set the numbers in which configs of one program differ, such as the learning rate."""

    def train(self, buffer: Buffer, order: Order, batch_size: int, mode: str) -> float:
        """Train one pass over rows of a buffer; the last batch may be smaller.

        Args:
            order: positions of the rows in the buffer, in training order.

        Returns:
            The sum over batches of mean batch loss times rows; NaN or Inf once a loss is.
        """
        return self.dispatch(buffer, order, batch_size, mode)()

    @abstractmethod
    def dispatch(self, buffer: Buffer, order: Order, batch_size: int, mode: str) -> PendingLoss:
        """Start such a pass on the device, which may run until the loss is read.

        More passes may be dispatched meanwhile. Errors are raised here or when the loss is read.
        """

    def read_member(self) -> Member:
        """Return the current state and hyperparameters as a member of a fusion."""
        return Member(self.read(), [])

    def fuse(self, members: Sequence[Member], mode: str) -> Fusion:
        """Return a fusion that trains the members at once.

        Args:
            mode: one of `lanes`; it has at least as many lanes as there are members.
        """
        raise RequestError(
            f"form {mode!r} trains no states side by side; this program has none that does"
        )

    def train_in_lanes(
        self, buffer: Buffer, order: Order, batch_size: int, mode: str
    ) -> PendingLoss:
        """Train the current state alone in a mode with lanes, with the bits of a full fusion."""
        fusion = self.fuse([self.read_member()], mode)
        (loss,) = fusion.train(buffer, [order], batch_size)
        self.write(fusion.read_state(0))
        return partial(float, loss)

    @abstractmethod
    def evaluate(self, buffer: Buffer) -> Sums:
        """Return [loss times rows, rows], then each metric's flattened variables."""

    @abstractmethod
    def zero_sums(self) -> Sums:
        """Return the sums of `evaluate` over no rows: zeros."""

    @abstractmethod
    def compute_results(self, sums: Sums) -> dict[str, object]:
        """Return {"loss", "metrics"} from sums of `evaluate`, which may have been added up.

        The metrics are one number each, in compile order.
        """

    @abstractmethod
    def predict(self, inputs: Arrays) -> list[Array]:
        """Return the outputs, each of shape (rows, ...), for inputs of shape (rows, ...)."""

    @abstractmethod
    def attribute(
        self,
        inputs: Arrays,
        columns: Columns,
        patches: Columns,
    ) -> Attributions:
        """Attribute one output of each row to its columns, compared with a row of zeros.

        Of several units, each row's largest one is explained. A patch is covered by zeros.
        """

    def describe_shards(self) -> Descriptions:
        """Return the `layers`, `state_bytes` and `memory_bytes` of each shard.

        A program that fits into memory has no shards.
        """
        return []

    @abstractmethod
    def describe_cuts(self) -> Descriptions:
        """Return the layers where the network can be cut.

        A cut has `layer`, the `shape` of its output, the `flops` up to there, and a `digest`.
        """

    @abstractmethod
    def describe_prefixes(self, layers: Sequence[str]) -> Descriptions:
        """Return the part of the network up to each of these layers.

        A part has an `architecture`, and the positions of its `weights` among the flat ones.
        """

    @abstractmethod
    def compute_features(self, layer: str, inputs: Arrays) -> Array:
        """Return the output of the layer of a cut as float32, for inputs of shape (rows, ...)."""

    def open_board(self, folder: str) -> Board:
        """Return a writer of TensorBoard files in this folder.

        Raises:
            ConfigError: the framework cannot write them.
        """
        raise ConfigError(
            "callbacks are written by TensorFlow",
            sqlstate="0A000",
            hint="Train with backend => 'tensorflow'.",
        )


@dataclass(frozen=True, kw_only=True)
class Framework:
    """The features of a framework's module that the trainer uses."""

    name: str
    version: str
    keras_version: str
    devices: tuple[str, ...]
    threads: int
    make_program: Callable[[ProgramSpec, MemoryBudget], Program]
    errors: ExceptionTypes  # raised if a config asks for the impossible
    memory_errors: ExceptionTypes  # raised if the host or a device lacks memory
    fatal_errors: ExceptionTypes = ()  # a device is lost for this process
    describe_gpus: Callable[[], tuple[str, ...]]  # one text for each visible GPU


class Programs:
    """The programs of this process by key; the least recently used ones are dropped first."""

    def __init__(self, make_program: Callable[[ProgramSpec, MemoryBudget], Program]) -> None:
        self._make_program = make_program
        self._cached: OrderedDict[str, Program] = OrderedDict()

    def get(self, spec: ProgramSpec, budget: MemoryBudget) -> Program:
        """Return the program of this spec; make it if it is not cached."""
        if spec.key in self._cached and not self._cached[spec.key].understands(budget.mode):
            del self._cached[spec.key]
        if spec.key not in self._cached:
            self._shrink(MAX_CACHED_PROGRAMS - 1, MAX_CACHED_BYTES)
            self._cached[spec.key] = self._make_program(spec, budget)
        self._cached.move_to_end(spec.key)
        return self._cached[spec.key]

    def wipe(self) -> None:
        """Overwrite the data of a session that has ended; keep its last programs."""
        self._shrink(MAX_INHERITED_PROGRAMS, MAX_INHERITED_BYTES)
        for program in self._cached.values():
            program.wipe()

    def _shrink(self, count: int, nbytes: int) -> None:
        while len(self._cached) > count or self._count_bytes() > nbytes:
            self._cached.popitem(last=False)
            gc.collect()  # programs hold cycles, and their variables are large

    def _count_bytes(self) -> int:
        return sum(program.layout.nbytes for program in self._cached.values())
