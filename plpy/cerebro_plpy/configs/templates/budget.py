"""The number of configurations and epochs that are tried in a given time.

A schedule of learning rates must know its end beforehand, so the epochs are chosen by the expected
time of an epoch. Estimates are for one processor core, and correct within a small factor: a run
that exceeds its time ends with the best model that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor
from typing import NamedTuple

from cerebro_plpy.configs.templates.candidates import choose_config_count
from cerebro_plpy.configs.templates.layers import encoders
from cerebro_plpy.configs.templates.layers.embeddings import CATEGORY_WIDTH, PERIODIC_WIDTH
from cerebro_plpy.configs.templates.layers.model_io import Head, Table
from cerebro_plpy.records import dataclass

MAX_EPOCHS = 256
TEXT_EPOCHS = 8
"""Most epochs over texts alone.

After a few epochs over words, a network only memorizes rows: over docstrings of packages, the
accuracy of a linear model is 0.72 after 8 epochs, and 0.71 after the best of 30.
"""
MIN_EPOCHS = 4
MIN_CONFIGS = 3
"""Epochs are reduced until there is time for so many configurations."""
SUFFICIENT_EPOCHS = 64
"""Further epochs are given up for configurations that are worth trying.

With 287 rows in 60 s, twelve configurations with 58 epochs resulted in a root mean squared error
of 0.76, five with 256 epochs in 0.87.
"""
PATIENCE_SHARE = 3
MIN_PATIENCE = 8
"""A configuration stops after a third of its epochs without improvement, but not before this."""
EVALUATIONS = 20
"""Least evaluations of a configuration: they are its learning curve, and the best one is kept."""
TRAINING_EVALUATION_INTERVAL = 4
"""Every fourth evaluation includes the training rows.

They are four times as many as the validation rows, and their metrics decide nothing.
"""
SUFFICIENT_SECONDS = 25.0
"""Time in which networks on few rows are trained as well as their rows allow, on an idle machine.

More configurations on few rows only choose by chance.
"""
FEW_ROWS = 500
MIN_SAMPLE_ROWS = 1000
"""Least training rows of a sample, however short the time is."""
CONFIG_SURPLUS = 2
"""Configurations that are tried, in multiples of those that there is time for.

They are trained one after another, so those that are not reached cost nothing. A configuration that
starts late, however, is compiled in vain.
"""
OPEN_SURPLUS = 8
"""The same in a call that leaves its effort open, and may return early.

Many configurations stop long before their last epoch, and trees take a fraction of the time of
networks. On 3,645 rows, six configurations with time for three ended after 9 of 30 seconds.
"""
VISIT_SECONDS = 0.02
"""Overhead of a visit: a state is read, written, and logged."""
START_SECONDS = 2.0
"""Time to trace and compile a program, once if a configuration stays with a worker."""
FLOPS = 40e9
"""Operations per second of a core, in the products of dense layers."""
FLOPS_PER_WEIGHT = 8
"""Operations of forward pass, backward pass and optimizer; an evaluation has a quarter."""


@dataclass(frozen=True)
class Workload:
    """The work of an epoch."""

    training_rows: int
    validation_rows: int
    weights: int  # of a usual network
    segments: int
    workers: int
    share: float = 1.0  # of a core that a worker gets
    max_epochs: int = MAX_EPOCHS
    groups: int = 0  # groups of rows with models of their own
    grouped_share: float = 0.0  # part of the rows that are in these groups
    row_seconds: float | None = None  # of training a row, if trainers have measured it

    @property
    def epoch_seconds(self) -> float:
        """Expected time of an epoch of a configuration, with its evaluation and its groups."""
        evaluated_rows = (self.training_rows + self.validation_rows) / 4
        rows = (self.training_rows + evaluated_rows) * (1 + self.grouped_share)
        visits = self.segments
        if self.groups:
            visits += self.groups + self.segments - 1
        overhead = 2 * visits * VISIT_SECONDS
        if self.row_seconds is not None:
            return rows * self.row_seconds + overhead / self.share
        return (rows * self.weights * FLOPS_PER_WEIGHT / FLOPS + overhead) / self.share

    @property
    def start_seconds(self) -> float:
        """Time until the first step; groups have other batch sizes, and so other programs."""
        programs = 2 if self.groups else 1
        return START_SECONDS * programs / self.share


@dataclass(frozen=True)
class Effort:
    """The effort of a search."""

    epochs: int  # most epochs of a configuration
    configs: int
    seconds: float


def train_fully(epochs: int) -> float:
    """Return the share of its epochs that a configuration trains if it is not stopped."""
    return 1.0


class Pace(NamedTuple):
    """The progress of configurations in a search."""

    share: Callable[[int], float] = train_fully  # mean share of the epochs that are trained
    surplus: float = CONFIG_SURPLUS


DEFAULT_PACE = Pace()


def limit_seconds(load: Workload, seconds: float) -> float:
    """Return the part of the seconds that configurations and epochs are chosen for.

    It grows with the rows, from what is enough for few of them.

    >>> loads = [Workload(rows, 100, 100_000, 2, 2) for rows in (100, 500, 1000, 10_000)]
    >>> [limit_seconds(load, 280.0) for load in loads]
    [25.0, 25.0, 50.0, 280.0]
    """
    return min(seconds, estimate_sufficient_seconds(load.training_rows) / load.share)


def estimate_sufficient_seconds(training_rows: int) -> float:
    """Return the seconds of an idle machine that are enough for rows.

    >>> [estimate_sufficient_seconds(rows) for rows in (100, 500, 1000)]
    [25.0, 25.0, 50.0]
    """
    return SUFFICIENT_SECONDS * max(1.0, training_rows / FEW_ROWS)


def choose_frequency(epochs: int) -> int:
    """Return the epochs between evaluations; over few rows, one takes as long as an epoch.

    >>> choose_frequency(3), choose_frequency(64), choose_frequency(256)
    (1, 3, 12)
    """
    return max(1, epochs // EVALUATIONS)


def round_epochs(epochs: int) -> int:
    """Return epochs of a few steps in each power of two, so that calls in a row have the same.

    >>> [round_epochs(epochs) for epochs in (1, 4, 7, 11, 13, 50, 63, 64, 200)]
    [1, 4, 7, 10, 12, 48, 56, 64, 192]
    """
    step = 1 << max(0, epochs.bit_length() - 3)
    return epochs // step * step


def choose_training_epochs(evaluated: Sequence[int]) -> tuple[int, ...]:
    """Return the evaluated epochs, including the last one, that also evaluate training rows.

    >>> choose_training_epochs((1, 2, 3, 4, 5, 6))
    (2, 6)
    """
    latest_first = sorted(evaluated, reverse=True)
    return tuple(sorted(latest_first[::TRAINING_EVALUATION_INTERVAL]))


def choose_patience(epochs: int) -> int:
    """Return the evaluations without improvement after which a configuration stops.

    >>> choose_patience(3), choose_patience(64), choose_patience(256)
    (8, 8, 8)
    """
    patience_epochs = max(MIN_PATIENCE, -(-epochs // PATIENCE_SHARE))
    return -(-patience_epochs // choose_frequency(epochs))


def choose_max_epochs(table: Table) -> int:
    """Return the most epochs that are useful; for texts alone, few are enough.

    >>> from cerebro_plpy.configs.templates.layers.model_io import Wide
    >>> choose_max_epochs(Table(numbers=1))
    256
    >>> choose_max_epochs(Table(wide=(Wide("text", (9,), 257),)))
    8
    """
    return TEXT_EPOCHS if encoders.has_only_texts(table) else MAX_EPOCHS


def estimate_weights(table: Table, head: Head, width: int = 256, depth: int = 3) -> int:
    """Return the approximate number of weights of the largest of the usual networks.

    >>> from cerebro_plpy.configs.templates.layers.model_io import Classes
    >>> estimate_weights(Table(numbers=10), Classes(2))
    141824
    """
    pieces = sum(max(0, len(edges) - 1) for edges in table.pieces)
    piecewise_inputs = (table.numbers + pieces) // 2  # these networks have half the width
    number_inputs = max(table.numbers * (1 + PERIODIC_WIDTH), piecewise_inputs)
    inputs = number_inputs + table.indicators + len(table.cardinalities) * CATEGORY_WIDTH
    encoder_weights = sum(encoders.estimate_work(wide) for wide in table.wide)
    return width * (inputs + (depth - 1) * width + head.units) + encoder_weights


def choose_sample_share(load: Workload, seconds: float) -> float:
    """Return the share of training rows over which there is time for an epoch.

    It is at least that of a few rows.

    >>> load = Workload(10_000_000, 100_000, 100_000, 2, 2)
    >>> [choose_sample_share(load, seconds) for seconds in (3600.0, 60.0, 1.0)]
    [1.0, 0.231, 0.0001]
    >>> choose_sample_share(Workload(900, 100, 100_000, 2, 2), 1.0)
    1.0
    """
    overhead = 2 * load.segments * VISIT_SECONDS
    share = (seconds - START_SECONDS - overhead) / (load.epoch_seconds - overhead)
    min_share = MIN_SAMPLE_ROWS / max(1, load.training_rows)
    return min(1.0, max(min_share, floor(share * 1000) / 1000))


def estimate_effort(
    load: Workload,
    seconds: float,
    epochs: int | None = None,
    configs: int | None = None,
    pace: Pace = DEFAULT_PACE,
) -> Effort:
    """Return the effort of a search that has so many seconds.

    Args:
        epochs: number of epochs, if the caller has chosen it.
        configs: number of configurations, if the caller has chosen it.

    >>> estimate_effort(Workload(800, 200, 100_000, 2, 2), 240.0)
    Effort(epochs=64, configs=17, seconds=40.0)

    If a worker gets only a part of a core, few epochs that are completed are better than many that
    are not:

    >>> loads = [Workload(800, 200, 100_000, 2, 2, share) for share in (1.0, 0.5, 0.2)]
    >>> [estimate_effort(load, 60.0).epochs for load in loads]
    [64, 64, 59]
    """
    concurrent = max(1, load.workers)
    if not (epochs or configs):
        seconds = limit_seconds(load, seconds)
    time = seconds * concurrent
    max_configs = choose_config_count(load.training_rows)
    if not epochs:
        min_configs = configs or min(MIN_CONFIGS, max_configs)
        epochs = _choose_epochs(load, time, min_configs, configs or max_configs)
    config_seconds = pace.share(epochs) * epochs * load.epoch_seconds + load.start_seconds
    if not configs:
        configs = max(1, min(max_configs, int(pace.surplus * time / config_seconds)))
    total_seconds = min(configs * config_seconds / concurrent, seconds)
    return Effort(epochs, configs, round(total_seconds, 1))


def _choose_epochs(load: Workload, time: float, min_configs: int, max_configs: int) -> int:
    """Return the epochs with which so many configurations can be completed.

    Args:
        time: seconds of all workers together.
        min_configs: configurations for which epochs are given up.
        max_configs: configurations for which epochs beyond SUFFICIENT_EPOCHS are given up.
    """

    def completed_epochs(configs: int) -> int:
        return int((time / configs - load.start_seconds) / load.epoch_seconds)

    epochs = max(
        MIN_EPOCHS,
        completed_epochs(max_configs),
        min(completed_epochs(min_configs), SUFFICIENT_EPOCHS),
    )
    return min(load.max_epochs, epochs)
