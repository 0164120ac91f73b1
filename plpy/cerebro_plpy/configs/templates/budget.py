"""How much is tried in a given time: of how many configurations, and for how many epochs each.

A schedule of learning rates needs to know its end before it begins, so the epochs are settled
beforehand, by what an epoch is expected to take. Expectations are of one processor core, and meant
to be right by a small factor: a run whose time is over ends with the best that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor
from typing import NamedTuple

from cerebro_plpy.configs.templates.candidates import usual_count
from cerebro_plpy.configs.templates.layers import encoders
from cerebro_plpy.configs.templates.layers.embeddings import EMBEDDING, PERIODIC
from cerebro_plpy.configs.templates.layers.model_io import Head, Table
from cerebro_plpy.records import dataclass

MOST_EPOCHS = 256
TEXT_EPOCHS = 8
"""Of words a network knows all that there is to know after a few epochs, and then learns single
rows by heart: over docstrings of packages a linear model is right in 0.72 of the rows after 8
epochs, and in 0.71 after the best of 30."""
FEWEST_EPOCHS = 4
GOOD_COUNT = 3
"""Epochs are given up for so many configurations, whatever is left of them."""
ENOUGH_EPOCHS = 64
"""Epochs beyond these are given up for all configurations that are worth trying. Of 287 rows in 60
s, twelve that had 58 epochs made a model with a root of mean squares of 0.76, five that had 256 one
of 0.87."""
PATIENCE_SHARE, LEAST_PATIENCE = 3, 8
"""A configuration that gets no better for a third of its epochs ends, but not before so many."""
EVALUATIONS = 20
"""Of a configuration, at least: its curve is drawn of them, and the best is chosen among them."""
TRAINING_EVERY = 4
"""Of those evaluations go over the rows that were trained on, too. These are four times as many as
those held back, and nothing is decided by them."""
LEAST_SAMPLE = 1000
"""Rows that are trained on, whatever time there is."""
MORE = 2
"""Configurations are trained one after another, so that some more are no loss where they are never
reached; but one that is begun late is compiled for nothing."""
VISIT_SECONDS = 0.02
"""What a visit takes beside its arithmetic: a state is read, written, and logged."""
BEGIN_SECONDS = 2.0
"""A program is traced and compiled, once where a configuration stays with a worker."""
FLOPS = 40e9
"""Of a core, in the products of dense layers."""
FLOPS_A_WEIGHT = 8
"""Forward, backward, and the optimizer; an evaluation takes a quarter of it."""


@dataclass(frozen=True)
class Workload:
    """What an epoch goes over: rows on both sides of the split, weights of a usual network,
    segments and workers.

    `share` is how much of a core a worker gets while others want it too. More than `most_epochs`
    are of no use. With each configuration over all rows others are trained over those of `groups`,
    which have such a part of all rows (`grouped`).
    """

    training_rows: int
    validation_rows: int
    weights: int
    segments: int
    workers: int
    share: float = 1.0
    most_epochs: int = MOST_EPOCHS
    groups: int = 0
    grouped: float = 0.0

    @property
    def epoch_seconds(self) -> float:
        """The time that a configuration is expected to take for an epoch with its evaluation, with
        those of groups.
        """
        rows = (self.training_rows + (self.training_rows + self.validation_rows) / 4) * (
            1 + self.grouped
        )
        visits = self.segments + (self.groups + self.segments - 1 if self.groups else 0)
        alone = rows * self.weights * FLOPS_A_WEIGHT / FLOPS + 2 * visits * VISIT_SECONDS
        return alone / self.share

    @property
    def begin_seconds(self) -> float:
        """The time until a configuration's first step; over fewer rows batches are others, too."""
        return BEGIN_SECONDS * (2 if self.groups else 1) / self.share


@dataclass(frozen=True)
class Effort:
    """The most epochs that a configuration has, and how many configurations there are."""

    epochs: int
    configs: int
    seconds: float


def whole(epochs: int) -> float:
    """What part of so many epochs a configuration trains that nobody stops."""
    return 1.0


class Pace(NamedTuple):
    """How configurations go about so many epochs: what `share` of them each trains; and how `many`
    there are, in those that there is time for."""

    share: Callable[[int], float] = whole
    many: float = MORE


USUAL_PACE = Pace()


def frequency(epochs: int) -> int:
    """After how many epochs a configuration of so many is evaluated: over few rows that takes as
    long as an epoch.

    >>> frequency(3), frequency(64), frequency(256)
    (1, 3, 12)
    """
    return max(1, epochs // EVALUATIONS)


def training_epochs(evaluated: Sequence[int]) -> tuple[int, ...]:
    """The epochs after which rows that were trained on are evaluated, too; the last one that is
    evaluated is one.

    >>> training_epochs((1, 2, 3, 4, 5, 6))
    (2, 6)
    """
    return tuple(sorted(sorted(evaluated, reverse=True)[::TRAINING_EVERY]))


def patience(epochs: int) -> int:
    """For how many evaluations a configuration of so many epochs may get no better; it gives its
    time to others.

    >>> patience(3), patience(64), patience(256)
    (8, 8, 8)
    """
    return -(-max(LEAST_PATIENCE, -(-epochs // PATIENCE_SHARE)) // frequency(epochs))


def most_epochs(table: Table) -> int:
    """More are of no use: few are enough where there is nothing but texts.

    >>> from cerebro_plpy.configs.templates.layers.model_io import Wide
    >>> most_epochs(Table(numbers=1)), most_epochs(Table(wide=(Wide("text", (9,), 257),)))
    (256, 8)
    """
    return TEXT_EPOCHS if encoders.texts_alone(table) else MOST_EPOCHS


def usual_weights(table: Table, head: Head, width: int = 256, depth: int = 3) -> int:
    """About how many weights the largest of the usual networks has for a table.

    >>> from cerebro_plpy.configs.templates.layers.model_io import Classes
    >>> usual_weights(Table(numbers=10), Classes(2))
    141824
    """
    pieces = sum(max(0, len(edges) - 1) for edges in table.pieces)
    # Networks over pieces are half as wide.
    numbers = max(table.numbers * (1 + PERIODIC), (table.numbers + pieces) // 2)
    inputs = numbers + table.indicators + len(table.cardinalities) * EMBEDDING
    wide = sum(encoders.work(each) for each in table.wide)
    return width * (inputs + (depth - 1) * width + head.units) + wide


def sample_share(load: Workload, seconds: float) -> float:
    """How much of its training rows a configuration can go over once in so many seconds; not less
    than a few rows.

    >>> load = Workload(10_000_000, 100_000, 100_000, 2, 2)
    >>> sample_share(load, 3600.0), sample_share(load, 60.0), sample_share(load, 1.0)
    (1.0, 0.231, 0.0001)
    >>> sample_share(Workload(900, 100, 100_000, 2, 2), 1.0)
    1.0
    """
    fixed = 2 * load.segments * VISIT_SECONDS
    share = (seconds - BEGIN_SECONDS - fixed) / (load.epoch_seconds - fixed)
    least = LEAST_SAMPLE / max(1, load.training_rows)
    return min(1.0, max(least, floor(share * 1000) / 1000))


def effort(
    load: Workload,
    seconds: float,
    epochs: int | None = None,
    configs: int | None = None,
    pace: Pace = USUAL_PACE,
) -> Effort:
    """What is tried in so many seconds; the caller may have said how many epochs or configurations.

    >>> effort(Workload(800, 200, 100_000, 2, 2), 240.0)
    Effort(epochs=256, configs=17, seconds=236.8)

    Where others have most of the cores, a few epochs that come to an end are better than many that
    do not:

    >>> [effort(Workload(800, 200, 100_000, 2, 2, share), 60.0).epochs for share in (1.0, 0.5, 0.2)]
    [64, 64, 59]
    """
    together = max(1, min(load.workers, load.segments))
    time = seconds * together
    most = usual_count(load.training_rows)
    chosen = epochs or _epochs(load, time, configs or min(GOOD_COUNT, most), configs or most)
    each = pace.share(chosen) * chosen * load.epoch_seconds + load.begin_seconds
    count = configs or max(1, min(most, int(pace.many * time / each)))
    return Effort(chosen, count, round(min(count * each / together, seconds), 1))


def _epochs(load: Workload, time: float, fewest: int, most: int) -> int:
    """Of each configuration, where at least so many of them are to come to an end in that time of
    all workers.
    """
    long, short = (
        int((time / count - load.begin_seconds) / load.epoch_seconds) for count in (fewest, most)
    )
    return min(load.most_epochs, max(FEWEST_EPOCHS, short, min(long, ENOUGH_EPOCHS)))
