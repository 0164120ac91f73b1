"""Boosted trees as a learner: collecting rows, growing, evaluating and predicting.

A network trains buffer by buffer. A tree is grown over all rows at once, so the visits of an epoch
collect their buffers, and the last one grows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cerebro_trainer.boosting import library
from cerebro_trainer.boosting.blocks import iterate_blocks
from cerebro_trainer.boosting.columns import ColumnReader
from cerebro_trainer.boosting.contributions import attribute_rows, find_mean_scores
from cerebro_trainer.boosting.growing import GrowthPlan, compute_base, join_arrays
from cerebro_trainer.boosting.loaded_model import LoadedModel
from cerebro_trainer.boosting.model.errors import TreesError
from cerebro_trainer.boosting.model.forest import Forest, list_variables
from cerebro_trainer.boosting.model.spec import CLASS_NAME
from cerebro_trainer.boosting.program import check_loss, read_spec
from cerebro_trainer.boosting.results import Results, compute_losses
from cerebro_trainer.boosting.row_memory import LastGrowth, RowMemory
from cerebro_trainer.boosting.scoring import score_rows
from cerebro_trainer.boosting.transforms import compute_outputs
from cerebro_trainer.data.arrays import Floats
from cerebro_trainer.data.buffers import Buffer, get_single_target
from cerebro_trainer.data.row_weights import ClassWeight, add_weights
from cerebro_trainer.errors import ConfigError, DamagedState, RequestError
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.nouns import count_nouns
from cerebro_trainer.programs.learner import Columns, Learner, Sums
from cerebro_trainer.state.layout import Layout
from cerebro_trainer.wire.frames import Array, Arrays, Float32Array

FRAMEWORK = library.NAME
OPTIMIZER = "boosting"
"""The class of the optimizer in a state, which has no other name."""
SCORE_COPIES = 4
"""Double precision numbers for a row and output in a growth: scores, and two derivatives."""
MIN_STEPS_TO_LOAD = 1 << 18
"""Pairs of a row and a tree after which the text for LightGBM has been worth its time."""


def is_boosted_trees(program: ProgramSpec) -> bool:
    """Return whether an architecture belongs to this family, whatever its config is."""
    return program.architecture.get("class_name") == CLASS_NAME


class CollectedRows(NamedTuple):
    """The rows of a visit."""

    buffers: Sequence[Buffer]
    class_weight: ClassWeight | None


class BoostedTrees(Learner):
    """Boosted trees whose state is a forest.

    Args:
        threads: number of threads that LightGBM uses; bits do not depend on it.
        memory: scores and bins of cached buffers; learners of a trainer may share it.
    """

    def __init__(self, program: ProgramSpec, threads: int, memory: RowMemory | None = None) -> None:
        self.spec = read_spec(program)
        compiled = program.compile
        self._loss = compiled.get("loss")
        names = [*(compiled.get("metrics") or ()), *(compiled.get("weighted_metrics") or ())]
        self._results = Results(names, self.spec.units > 1)
        self._threads = threads
        self._memory = memory or RowMemory()
        self._reader = ColumnReader(self.spec)
        self._collected: dict[str, CollectedRows] = {}
        self._loaded: LoadedModel | None = None
        # Rounds after which the time of the last growth was over; None if it was not
        self.cut_rounds: int | None = None
        self._steps = 0  # pairs of a row and a tree that numpy has scored
        self._arrays = self.create_initial_state(0)
        self._forest: Forest | None = None
        self.layout = self._make_layout(program)

    def _make_layout(self, program: ProgramSpec) -> Layout:
        variables = list_variables(self.spec)
        positions = tuple(range(len(variables)))
        return Layout(
            shapes=tuple(variable.shape for variable in variables),
            dtypes=tuple(variable.dtype for variable in variables),
            weights=positions,
            trainable=positions,
            paths=tuple(variable.name for variable in variables),
            architecture=program.architecture_hash,
            optimizer=OPTIMIZER,
            framework=FRAMEWORK,
            keras=FRAMEWORK,
        )

    @property
    def forest(self) -> Forest:
        """The current state, which is checked when it is used first.

        Raises:
            DamagedState: its arrays are not those of trees.
        """
        if self._forest is None:
            try:
                self._forest = Forest.from_arrays(self.spec, self._arrays)
            except TreesError as error:
                raise DamagedState(error.message) from error
        return self._forest

    @property
    def step(self) -> int:
        return self.forest.rounds

    def read(self) -> Arrays:
        return list(self.forest.to_arrays())

    def assign(self, position: int, value: Array) -> None:
        self._arrays[position] = value
        self._forest = None
        self._steps = 0

    def create_initial_state(self, seed: int) -> list[Array]:
        return Forest.create_empty(self.spec).to_arrays()

    def reset_non_weights(self, seed: int) -> None:
        """Do nothing: all variables are weights."""

    def wipe(self) -> None:
        self._arrays = self.create_initial_state(0)
        self._forest = None
        self._loaded = None
        self._collected.clear()
        self._memory.clear()

    def set_hyperparameters(self, spec: ProgramSpec) -> None:
        """Do nothing: configs of other parameters have learners of their own."""

    def collect(
        self, key: str, buffers: Sequence[Buffer], class_weight: ClassWeight | None = None
    ) -> None:
        """Keep the buffers of a dataset for the next growth.

        Args:
            key: name of the dataset, by which `grow` finds it.
            class_weight: weights of the classes in the loss.
        """
        self._collected[key] = CollectedRows(buffers, class_weight)

    def grow(
        self, keys: Sequence[str], rounds: int, seed: int, until: float = math.inf
    ) -> float | None:
        """Grow trees over collected datasets, which are then released.

        Args:
            keys: the datasets in the order of their rows, which decides bits.
            rounds: number of rounds; no more are grown than the state has room for.
            seed: seed of this growth.
            until: see `GrowthPlan`.

        Returns:
            The mean loss of a training row after the growth; None without rows.
        """
        check_loss(self._loss, self.spec.units)
        collected = [self._get_collected(key) for key in keys]
        self._collected.clear()
        parts = [(part, buffer) for part in collected for buffer in part.buffers if buffer.rows]
        buffers = [buffer for _, buffer in parts]
        if not buffers:
            return None
        targets = join_arrays([self._read_target(buffer) for buffer in buffers])
        weights = _join_weights([add_weights(buffer, part.class_weight) for part, buffer in parts])
        forest = self.forest
        plan = GrowthPlan(min(rounds, self.spec.trees - forest.rounds), seed, until)
        self.cut_rounds = None
        if plan.rounds > 0:
            self._forest = self._grow_forest(forest, buffers, targets, weights, plan)
            self._arrays = self._forest.to_arrays()
        losses = self._compute_losses(buffers, targets.astype(np.float64))
        if weights is not None:
            losses = losses * weights
        return float(losses.mean())

    def estimate_growth_bytes(self, keys: Sequence[str]) -> int:
        """Return about how much more memory a growth over collected datasets needs."""
        buffers = self._list_buffers(keys)
        rows = sum(buffer.rows for buffer in buffers)
        row_bytes = SCORE_COPIES * 8 * self.spec.outputs
        if not self._memory.has_bins(self.spec, buffers):
            bin_bytes = 1 if self.spec.max_bins < 256 else 2
            row_bytes += (4 + bin_bytes) * self.spec.inputs.columns
        return rows * row_bytes

    def _list_buffers(self, keys: Sequence[str]) -> list[Buffer]:
        """Return the buffers of collected datasets that have rows, in order."""
        return [
            buffer for key in keys for buffer in self._get_collected(key).buffers if buffer.rows
        ]

    def _get_collected(self, key: str) -> CollectedRows:
        if key not in self._collected:
            raise RequestError(f"the rows of dataset {key!r} are not collected", sqlstate="55000")
        return self._collected[key]

    def _grow_forest(
        self,
        forest: Forest,
        buffers: Sequence[Buffer],
        targets: Array,
        weights: Float32Array | None,
        plan: GrowthPlan,
    ) -> Forest:
        if not forest.growths:
            forest = forest.append((), compute_base(self.spec, targets, weights))
        binned = self._memory.bin(self.spec, buffers, self._threads, self._read_matrices)
        scores = join_arrays([self._score(forest, buffer) for buffer in buffers])
        growth, scores = binned.grow(self.spec, targets, weights, scores, plan)
        self.cut_rounds = growth.cut_rounds
        grown = Forest.from_arrays(self.spec, forest.append(growth.trees, forest.base).to_arrays())
        if growth.trees:
            self._memory.advance(self.spec, (forest, grown), buffers, scores)
            self._memory.last_growth = LastGrowth(self.spec.inputs, forest, grown, growth)
        return grown

    def _compute_losses(self, buffers: Sequence[Buffer], targets: Floats) -> Floats:
        scores = join_arrays([self._score(self.forest, buffer) for buffer in buffers])
        return compute_losses(compute_outputs(self.spec, scores), targets)

    def _score(self, forest: Forest, buffer: Buffer) -> Floats:
        return self._memory.score(self.spec, forest, buffer, self._read_matrix)

    def _read_matrix(self, buffer: Buffer) -> Float32Array:
        return self._reader.read(buffer.inputs)

    def _read_matrices(self, buffers: Sequence[Buffer]) -> Float32Array:
        matrix: Float32Array = join_arrays([self._read_matrix(buffer) for buffer in buffers])
        return matrix

    def _read_target(self, buffer: Buffer) -> Array:
        """Return the number or the index of the class of each row.

        Raises:
            ConfigError: the target has another shape than the trees.
        """
        for target in buffer.targets[:1]:
            units = target.reshape(buffer.rows, -1).shape[1]
            if units != self.spec.units:
                raise ConfigError(
                    f"the trees need a target of {count_nouns(self.spec.units, 'column')}, "
                    f"received {units}",
                    sqlstate="42804",
                )
        return get_single_target(buffer)

    def evaluate(self, buffer: Buffer) -> Sums:
        check_loss(self._loss, self.spec.units)
        if not buffer.rows:
            return self.zero_sums()
        outputs = compute_outputs(self.spec, self._score(self.forest, buffer))
        return self._results.add_up(outputs, self._read_target(buffer).astype(np.float64))

    def zero_sums(self) -> Sums:
        return self._results.create_zeros()

    def compute_results(self, sums: Sums) -> dict[str, object]:
        return self._results.compute(sums)

    def predict(self, inputs: Arrays) -> list[Array]:
        rows = max(map(len, inputs), default=0)
        blocks = [np.empty((0, self.spec.units), np.float32)]
        width = self.spec.inputs.columns + self.spec.units
        for block in iterate_blocks(rows, width):
            matrix = self._reader.read([array[block] for array in inputs])
            outputs = compute_outputs(self.spec, self._score_matrix(matrix, rows))
            blocks.append(outputs.astype(np.float32))
        return [np.concatenate(blocks)]

    def _score_matrix(self, matrix: Float32Array, rows: int) -> Floats:
        """Return the scores of rows, computed by whatever is faster; both have the same bits."""
        forest = self.forest
        self._steps += rows * forest.size
        is_worth_it = rows > 1 and self._steps >= MIN_STEPS_TO_LOAD
        if is_worth_it and library.is_installed():
            return self._load().score(matrix)
        return score_rows(forest, matrix)

    def _load(self) -> LoadedModel:
        """Return the current trees in LightGBM."""
        if self._loaded is None or self._loaded.forest is not self.forest:
            self._loaded = LoadedModel(self.spec, self.forest, self._threads)
        return self._loaded

    def release_rows(self) -> None:
        self._collected.clear()

    def check_state(self) -> None:
        self.forest  # noqa: B018 (checked when it is used first)

    def predict_baseline(self, inputs: Arrays) -> Array:
        scores = find_mean_scores(self._load(), self._reader.read(inputs))
        (output,) = compute_outputs(self.spec, scores[np.newaxis])
        return np.asarray(output)

    def attribute(self, inputs: Arrays, columns: Columns, unit_weights: Floats) -> Array:
        matrix = self._reader.read(inputs)
        return attribute_rows(self.spec, self._load(), matrix, columns, unit_weights)


def _join_weights(buffers: Sequence[Buffer]) -> Any:
    """Return the weights of the rows of buffers; None if no buffer has any."""
    if all(buffer.weights is None for buffer in buffers):
        return None
    return join_arrays([_get_weights(buffer) for buffer in buffers])


def _get_weights(buffer: Buffer) -> Float32Array:
    if buffer.weights is None:
        return np.ones(buffer.rows, np.float32)
    return buffer.weights
