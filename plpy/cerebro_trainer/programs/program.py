"""The protocol of programs: a compiled network, shared by all configs of the same architecture.

A program is a model with its optimizer, loss and metrics. Building and tracing one takes a second,
setting its variables milliseconds: a hop should only pay the latter. This module knows no
framework; each framework adds one module with a subclass.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.errors import ConfigError, ExceptionTypes, RequestError
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.programs.fusion import Fusion, Member, Order
from cerebro_trainer.programs.learner import Descriptions, Learner
from cerebro_trainer.programs.memory import MemoryBudget
from cerebro_trainer.wire.frames import Array, Arrays

FALLBACK = "keras_fit"
"""The mode for programs that no other mode can train: Keras' own training loop."""
SHARDED = "sharded"
"""The mode of a program that does not fit into memory: most of its state is in a file."""

PendingLoss: TypeAlias = Callable[[], float]
"""Waits for the end of a pass; returns its loss."""


class Program(Learner):
    """A compiled network: one model, one optimizer, one trace, lent to one config at a time.

    Its laws are those of learners. One more is checked over every framework: all modes take the
    same steps, including the modes in `lanes`. They differ in the rounding of sums only.
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

    def fused_mode(self, states: int) -> str | None:
        """Return the mode with the fewest lanes that trains so many states at once, if any."""
        modes = [mode for mode, lanes in self.lanes.items() if 1 < states <= lanes]
        return min(modes, key=lambda mode: self.lanes[mode], default=None)

    def understands(self, mode: str | None) -> bool:
        return mode in (None, FALLBACK, *self.modes, *self.lanes)

    def take_saved_compile_seconds(self) -> float:
        """Return the compile seconds saved by cache hits since the last call."""
        return 0.0

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


def require_network(learner: Learner, work: str) -> Program:
    """Return a learner that is a network.

    Args:
        work: name of the work that only networks do, for the error message.

    Raises:
        ConfigError: the learner belongs to another family.
    """
    if not isinstance(learner, Program):
        raise ConfigError(
            f"{work!r} needs a network; {type(learner).__name__} is not a network",
            sqlstate="0A000",
        )
    return learner


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
