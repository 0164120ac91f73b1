"""A job that predicts rows with the weighted sum of its members.

A version of a model is a list of members, each with its own state and its share in predictions.
Members may be of several families, and several of them may have the same program.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from cerebro_trainer.commands.jobs import DatasetKeys, StateJob
from cerebro_trainer.data.arrays import Floats
from cerebro_trainer.errors import ConfigError, RequestError, TrainerError
from cerebro_trainer.programs.learner import Attributions, Columns, Learner, Units
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
        """Attribute the largest unit of each row's output to columns and patches.

        Attributions of a weighted sum are the weighted sum of attributions.
        """
        units = self._find_largest_units(inputs)
        parts = [
            member.learner.attribute(inputs, columns, patches, units).scaled(member.share)
            for member in self._iterate()
        ]
        return Attributions(*(sum(arrays[1:], arrays[0]) for arrays in zip(*parts, strict=True)))

    def _find_largest_units(self, inputs: Arrays) -> Units:
        (output,) = self.predict(inputs)
        units: Units = output.reshape(len(output), -1).argmax(axis=1)
        return units

    def _iterate(self) -> Iterator[WeightedLearner]:
        """Yield the members in order; errors name the one that was yielded last."""
        for position, member in enumerate(self._members):
            self._active = position
            yield member


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
