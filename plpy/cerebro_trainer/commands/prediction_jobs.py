"""A job that predicts rows with the weighted sum of its members.

A version of a model is a list of members, each with its own state and its share in predictions.
Members may be of several families, and several of them may have the same program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from cerebro_trainer.commands.jobs import DatasetKeys, StateJob
from cerebro_trainer.data.arrays import Floats
from cerebro_trainer.errors import ConfigError, RequestError, TrainerError
from cerebro_trainer.programs.learner import Attributions, ColumnPositions, Columns, Learner
from cerebro_trainer.wire.fields import Header, if_present, number
from cerebro_trainer.wire.frames import Array, Arrays


class WeightedLearner(NamedTuple):
    """A member: a learner whose variables contain its state, and its share in predictions."""

    learner: Learner
    share: float


class PredictJob(StateJob):
    """Keeps the states of its members loaded for requests with rows."""

    refusal = "a predict job takes rows, not buffers"

    def __init__(self, learner: Learner, datasets: DatasetKeys, share: float = 1.0) -> None:
        super().__init__(learner, datasets)
        self._members: list[WeightedLearner] = []
        # Position of the member that is loaded or computes now
        self._active = 0
        self.add_member(learner, share)

    @classmethod
    def from_header(cls, learner: Learner, datasets: DatasetKeys, header: Header) -> PredictJob:
        """Create the job of a request with its first member."""
        return cls(learner, datasets, read_share(header))

    @property
    def learners(self) -> list[Learner]:
        """The learners of all members."""
        return [member.learner for member in self._members]

    def get_single_learner(self) -> Learner:
        """Return the learner of the only member; raise RequestError if there are several."""
        if len(self._members) > 1:
            raise RequestError(f"the open job has {len(self._members)} members; expected one")
        return self.learner

    @property
    def is_weighted(self) -> bool:
        """True if predictions differ from the output of the only member."""
        return len(self._members) > 1 or self._members[0].share != 1.0

    def add_member(self, learner: Learner, share: float) -> None:
        """Add a member whose state is loaded next."""
        self._active = len(self._members)
        self._members.append(WeightedLearner(learner, share))

    def name_member(self, error: TrainerError) -> None:
        """Name the member that is loaded or computes in an error, if there may be several."""
        if self.is_weighted:
            error.message = f"member {self._active + 1} of the model: {error.message}"

    def predict(self, inputs: Arrays) -> list[Array]:
        """Return the weighted sum of the members' outputs as float32, added up in their order."""
        if not self.is_weighted:
            return self.learner.predict(inputs)
        sums: list[Floats] = []
        for member in self._iterate():
            outputs = member.learner.predict(inputs)
            weighted = [member.share * output.astype(np.float64) for output in outputs]
            sums = _add_outputs(sums, weighted) if sums else weighted
        return [total.astype(np.float32) for total in sums]

    def attribute(self, inputs: Arrays, columns: Columns, patches: Columns) -> Attributions:
        """Attribute the number, or the probability of the predicted class, of each row.

        The attributions of a weighted sum are the weighted sum of attributions. Those of a
        corrected probability are multiplied by its mean slopes by the outputs.
        """
        outputs = self._predict_units(inputs)
        corrected = self.calibration.correct(outputs)
        classes = self.calibration.choose_classes(corrected)
        baseline = self._add_shares(lambda learner: learner.predict_baseline(inputs))
        slopes = self.calibration.average_slopes(baseline, outputs, classes)
        values = self._add_shares(lambda learner: learner.attribute(inputs, columns, slopes))
        rows = np.arange(len(outputs))

        def measure_loss(other_outputs: Floats) -> Floats:
            """Return what the explained units lose by other outputs."""
            other_values = np.broadcast_to(self.calibration.correct(other_outputs), corrected.shape)
            loss: Floats = corrected[rows, classes] - other_values[rows, classes]
            return loss

        losses = [measure_loss(self._predict_units(cover_patch(inputs, p))) for p in patches]
        return Attributions(
            values=values,
            gap=values.sum(axis=1) - measure_loss(baseline[np.newaxis]),
            patches=np.array(losses).reshape(-1, len(rows)).T,
        )

    def _predict_units(self, inputs: Arrays) -> Floats:
        """Return the only output in double precision, shape (rows, units)."""
        (output,) = self.predict(inputs)
        return output.reshape(len(output), -1).astype(np.float64)

    def _add_shares(self, compute: Callable[[Learner], Array]) -> Floats:
        """Return the weighted sum of an array of each member."""
        total: Floats = np.zeros(())
        for member in self._iterate():
            total = total + member.share * compute(member.learner)
        return total

    def _iterate(self) -> Iterator[WeightedLearner]:
        """Yield the members in order; errors name the one that was yielded last."""
        for position, member in enumerate(self._members):
            self._active = position
            yield member


def cover_patch(inputs: Arrays, patch: ColumnPositions) -> list[Array]:
    """Return the inputs with 0 at these positions.

    Pixels of a picture are too many to explain one by one, so patches of it are covered: occlusion
    (Zeiler and Fergus, 2014, section 2.1).
    """
    covered_inputs = []
    for array, positions in zip(inputs, patch, strict=True):
        covered = array
        if positions:
            covered = array.copy()
            covered[:, positions] = 0
        covered_inputs.append(covered)
    return covered_inputs


def read_share(header: Header) -> float:
    """Read the share of a member.

    Raises:
        RequestError: it is not a finite number above 0.
    """
    share = if_present(header, "share", number)
    if share is None:
        return 1.0
    if not (math.isfinite(share) and share > 0):
        raise RequestError(f'"share" must be a finite number above 0, received {share!r}')
    return share


def _add_outputs(sums: Sequence[Floats], outputs: Sequence[Floats]) -> list[Floats]:
    """Add the outputs of a member to those of the members before it."""
    shapes = [output.shape[1:] for output in outputs]
    expected = [total.shape[1:] for total in sums]
    if shapes != expected:
        raise ConfigError(
            f"its outputs of a row have shapes {shapes}, expected {expected}, like those of "
            "the members before",
            sqlstate="42804",
        )
    return [total + output for total, output in zip(sums, outputs, strict=True)]
