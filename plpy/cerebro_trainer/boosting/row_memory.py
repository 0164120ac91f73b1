"""Data about cached buffers that growths use again: scores of rows, and rows in bins.

An entry belongs to `Buffer` objects and is dropped with them. Scores are those of some trees,
which a digest identifies, so configs that share buffers do not mix. Lost entries are computed
anew, with the same bits.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from cerebro_trainer.boosting.growing import BinnedRows, Growth
from cerebro_trainer.boosting.model.forest import Forest
from cerebro_trainer.boosting.model.spec import PackedInputs, TreesSpec
from cerebro_trainer.boosting.scoring import add_trees, repeat_base
from cerebro_trainer.data.arrays import Floats
from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.wire.frames import Float32Array

ReadMatrix: TypeAlias = Callable[[Buffer], Float32Array]
"""Returns the columns of trees of a buffer."""
BufferKey: TypeAlias = tuple[int, PackedInputs]
BinsKey: TypeAlias = tuple[tuple[int, ...], PackedInputs, int, tuple[int, ...]]

MAX_SCORE_BYTES = 1 << 28
MAX_BINNED_BYTES = 1 << 29
"""Memory of scores and of rows in bins; the last entry may be larger."""


@dataclass
class Scores:
    """The scores of the rows of a buffer after some rounds."""

    values: Floats
    rounds: int


class LastGrowth(NamedTuple):
    """The latest growth, whose rounds are evaluated next: LightGBM is quicker than numpy."""

    inputs: PackedInputs
    forest: Forest  # before it
    grown: Forest  # after it
    growth: Growth

    def leads(self, spec: TreesSpec, rounds: int, forest: Forest) -> bool:
        """Return whether its trees are all that scores after so many rounds of a forest lack."""
        return (
            self.inputs == spec.inputs
            and self.forest.rounds == rounds
            and self.grown.digests[-1] == forest.digests[-1]
        )


class RowMemory:
    """Scores by buffer and trees, rows in bins by buffers and kinds of bins, and a growth."""

    def __init__(self) -> None:
        self._scores: OrderedDict[tuple[BufferKey, bytes], Scores] = OrderedDict()
        self._binned_rows: OrderedDict[BinsKey, BinnedRows] = OrderedDict()
        self._buffers: dict[int, weakref.ref[Buffer]] = {}
        self.last_growth: LastGrowth | None = None

    def clear(self) -> None:
        """Drop everything, after overwriting the scores."""
        for scores in self._scores.values():
            scores.values.fill(0)
        self._scores.clear()
        self._binned_rows.clear()
        self._buffers.clear()
        self.last_growth = None

    def score(
        self, spec: TreesSpec, forest: Forest, buffer: Buffer, read_matrix: ReadMatrix
    ) -> Floats:
        """Return the scores of a buffer's rows, which must not be changed."""
        key = (id(buffer), spec.inputs)
        scores = self._take_prefix(key, forest)
        if scores is None:
            scores = Scores(repeat_base(forest, buffer.rows), 0)
        if scores.rounds < forest.rounds and buffer.rows:
            matrix = read_matrix(buffer)
            last = self.last_growth
            if last is not None and last.leads(spec, scores.rounds, forest):
                last.growth.add_to(scores.values, matrix)
            else:
                add_trees(forest, matrix, scores.values, scores.rounds)
        scores.rounds = forest.rounds
        self._store(buffer, spec, forest, scores)
        return scores.values

    def advance(
        self,
        spec: TreesSpec,
        forests: tuple[Forest, Forest],
        buffers: Sequence[Buffer],
        scores: Floats,
    ) -> None:
        """Replace the scores of buffers by those after a growth.

        Args:
            forests: the trees before and after the growth.
            scores: of the rows of all buffers.
        """
        forest, grown = forests
        begin = 0
        for buffer in buffers:
            end = begin + buffer.rows
            self._take_prefix((id(buffer), spec.inputs), forest)
            self._store(buffer, spec, grown, Scores(scores[begin:end].copy(), grown.rounds))
            begin = end

    def _store(self, buffer: Buffer, spec: TreesSpec, forest: Forest, scores: Scores) -> None:
        self._watch(buffer)
        self._scores[(id(buffer), spec.inputs), forest.digests[-1]] = scores
        self._shrink_scores()

    def _take_prefix(self, key: BufferKey, forest: Forest) -> Scores | None:
        """Remove and return the scores of the most rounds with which the trees begin."""
        for digest in reversed(forest.digests):
            if (key, digest) in self._scores:
                return self._scores.pop((key, digest))
        return None

    def _shrink_scores(self) -> None:
        total = sum(scores.values.nbytes for scores in self._scores.values())
        while total > MAX_SCORE_BYTES and len(self._scores) > 1:
            _, scores = self._scores.popitem(last=False)
            total -= scores.values.nbytes

    def bin(
        self,
        spec: TreesSpec,
        buffers: Sequence[Buffer],
        threads: int,
        read_matrix: Callable[[Sequence[Buffer]], Float32Array],
    ) -> BinnedRows:
        """Return the rows of buffers in bins."""
        key = _make_bins_key(spec, buffers)
        if key not in self._binned_rows:
            self._binned_rows[key] = BinnedRows(spec, read_matrix(buffers), threads)
            for buffer in buffers:
                self._watch(buffer)
            self._shrink_binned_rows()
        self._binned_rows.move_to_end(key)
        return self._binned_rows[key]

    def has_bins(self, spec: TreesSpec, buffers: Sequence[Buffer]) -> bool:
        """Return whether `bin` finds the rows of buffers in bins."""
        return _make_bins_key(spec, buffers) in self._binned_rows

    def _shrink_binned_rows(self) -> None:
        total = sum(rows.nbytes for rows in self._binned_rows.values())
        while total > MAX_BINNED_BYTES and len(self._binned_rows) > 1:
            _, rows = self._binned_rows.popitem(last=False)
            total -= rows.nbytes

    def _watch(self, buffer: Buffer) -> None:
        """Drop the entries of a buffer with it: another object may get its identity."""
        identity = id(buffer)
        if identity not in self._buffers:
            self._buffers[identity] = weakref.ref(buffer, lambda _: self._forget(identity))

    def _forget(self, identity: int) -> None:
        self._buffers.pop(identity, None)
        for entry in [entry for entry in self._scores if entry[0][0] == identity]:
            del self._scores[entry]
        for key in [key for key in self._binned_rows if identity in key[0]]:
            del self._binned_rows[key]


def _make_bins_key(spec: TreesSpec, buffers: Sequence[Buffer]) -> BinsKey:
    identities = tuple(map(id, buffers))
    return identities, spec.inputs, spec.max_bins, spec.native_categories
