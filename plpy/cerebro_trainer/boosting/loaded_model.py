"""A forest in LightGBM, which reads texts that our writer has made of checked arrays."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from cerebro_trainer.boosting import library
from cerebro_trainer.boosting.forest_parts import ForestParts, count_part_rounds
from cerebro_trainer.boosting.model.forest import Forest
from cerebro_trainer.boosting.model.model_text import write_model
from cerebro_trainer.boosting.model.spec import TreesSpec
from cerebro_trainer.data.arrays import Floats
from cerebro_trainer.wire.frames import Float32Array


class LoadedModel:
    """A checked forest in LightGBM: in parts for scores, as a whole for contributions.

    Args:
        forest: the trees, whose identity tells whether they are the current ones.
        threads: number of threads; bits do not depend on it.
    """

    def __init__(self, spec: TreesSpec, forest: Forest, threads: int) -> None:
        self.forest = forest
        self._spec = spec
        self._threads = threads

    @cached_property
    def _parts(self) -> ForestParts:
        rounds = count_part_rounds(self._spec)
        return ForestParts(self._spec, self.forest, rounds, self._threads)

    @cached_property
    def _booster(self) -> Any:
        return library.get().Booster(model_str=write_model(self._spec, self.forest))

    def score(self, matrix: Float32Array) -> Floats:
        """Return the scores of rows, shape (rows, outputs)."""
        return self._parts.score(matrix)

    def explain(self, matrix: Float32Array) -> Floats:
        """Return the contribution of each column to each score, and then the mean score.

        The shape is (rows, outputs, columns + 1).
        """
        contributions: Floats = self._booster.predict(
            matrix, pred_contrib=True, num_threads=self._threads
        )
        return contributions.reshape(len(matrix), self.forest.outputs, -1)
