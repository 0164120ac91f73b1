"""Which column of a row made a model predict what it does: integrated gradients (Sundararajan, Taly
and Yan, 2017).

From a row of which nothing is known, all inputs 0, to the row itself the inputs change evenly; what
a column adds to the output on the way is its attribution. All together make up the difference
between both outputs, but for what the sum over points of the way misses of the integral.

Of a picture that says little, so patches of it are covered: occlusion (Zeiler and Fergus, 2014,
section 2.1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cerebro_trainer.programs.program import Array, ColumnPositions

STEPS = 32
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(STEPS)
POINTS = tuple(zip(((_NODES + 1) / 2).tolist(), (_WEIGHTS / 2).tolist(), strict=True))
"""ColumnPositions on a way from 0 to 1, and what each counts (Gauss and Legendre)."""


@dataclass(frozen=True)
class Way:
    """A model that is explained: `head` makes numbers of the inputs `whole`, which `other` inputs
    are already.

    `gradient` is that of an output with regard to these and then those; it also takes what of the
    inputs stays as it is, those of `beside`, and the weights of the outputs of each row.
    """

    head: Callable[[Sequence[Array]], list[Array]] | None
    gradient: Callable[[list[Array], list[Array], Array], list[Array]]
    whole: tuple[int, ...]
    other: tuple[int, ...]
    beside: tuple[int, ...]

    def attributions(
        self, inputs: Sequence[Array], select: Array, columns: Sequence[ColumnPositions]
    ) -> Array:
        """What each column adds, of shape (rows, columns)."""
        nothing = [np.zeros_like(array) for array in inputs]
        begin, end = self._numbers(nothing), self._numbers(inputs)
        changes = [there - here for here, there in zip(begin, end, strict=True)]
        slopes = self._slopes(begin, changes, ([inputs[place] for place in self.beside], select))
        found = np.zeros((len(select), len(columns)))
        for number, column in enumerate(columns):
            for slope, change, place in zip(slopes, changes, self.other, strict=False):
                found[:, number] += _sums(slope[:, column[place]] * change[:, column[place]])
            if self.head is not None and any(column[place] for place in self.whole):
                moved = self.head([_only(inputs[place], column[place]) for place in self.whole])
                made = zip(slopes[len(self.other) :], moved, begin[len(self.other) :], strict=True)
                found[:, number] += sum(
                    _sums(slope * (there - here)) for slope, there, here in made
                )
        return found

    def _numbers(self, inputs: Sequence[Array]) -> list[Array]:
        made = self.head([inputs[place] for place in self.whole]) if self.head is not None else []
        return [*(inputs[place] for place in self.other), *made]

    def _slopes(
        self, begin: list[Array], changes: list[Array], fixed: tuple[list[Array], Array]
    ) -> list[Array]:
        """The mean gradients on the way."""
        totals = [np.zeros(array.shape) for array in begin]
        for place, weight in POINTS:
            points = [
                here + np.float32(place) * change
                for here, change in zip(begin, changes, strict=True)
            ]
            for total, gradient in zip(totals, self.gradient(points, *fixed), strict=True):
                total += weight * gradient
        return totals


def without(inputs: Sequence[Array], patch: ColumnPositions) -> list[Array]:
    """The inputs with 0 in these positions."""
    found = []
    for array, part in zip(inputs, patch, strict=True):
        changed = array.copy() if part else array
        if part:
            changed[:, part] = 0
        found.append(changed)
    return found


def _only(array: Array, part: Sequence[int]) -> Array:
    """The rows with nothing but these positions."""
    found = np.zeros_like(array)
    found[:, part] = array[:, part]
    return found


def _sums(values: Array) -> Array:
    return np.asarray(values.reshape(len(values), -1).sum(axis=1))
