"""A forest in LightGBM, which reads a text that our writer has made of checked arrays."""

from __future__ import annotations

from cerebro_trainer.boosting import library
from cerebro_trainer.boosting.model.forest import Forest
from cerebro_trainer.boosting.model.model_text import write_model
from cerebro_trainer.boosting.model.spec import TreesSpec
from cerebro_trainer.data.arrays import Floats
from cerebro_trainer.wire.frames import Float32Array


class LoadedModel:
    """A checked forest in LightGBM.

    Args:
        forest: the trees, whose identity tells whether they are the current ones.
    """

    def __init__(self, spec: TreesSpec, forest: Forest, threads: int) -> None:
        self.forest = forest
        self._threads = threads
        self._booster = library.get().Booster(model_str=write_model(spec, forest))

    def score(self, matrix: Float32Array) -> Floats:
        """Return the scores of rows, shape (rows, outputs)."""
        scores: Floats = self._booster.predict(matrix, raw_score=True, num_threads=self._threads)
        return scores.reshape(len(matrix), self.forest.outputs)

    def explain(self, matrix: Float32Array) -> Floats:
        """Return the contribution of each column to each score, and then the mean score.

        The shape is (rows, outputs, columns + 1).
        """
        contributions: Floats = self._booster.predict(
            matrix, pred_contrib=True, num_threads=self._threads
        )
        return contributions.reshape(len(matrix), self.forest.outputs, -1)
