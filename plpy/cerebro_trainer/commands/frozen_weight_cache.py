"""The cache of frozen weights: those in the variables of the last learner, by their digest.

The states of many visits share their frozen weights, which should not be read again at each hop.
Another learner copies them from there.
"""

from __future__ import annotations

import json
from hashlib import sha256
from weakref import ref

from cerebro_trainer.errors import RequestError
from cerebro_trainer.programs.learner import Learner
from cerebro_trainer.state.layout import DIGEST_DIGITS, Layout
from cerebro_trainer.state.serialization import bytes_of
from cerebro_trainer.wire.frames import Arrays

MAX_SOURCE_BYTES = 512 << 20
"""A larger learner is not kept in memory as the source of a copy."""


class FrozenWeightCache:
    """The base (see `state.layout`) in the variables of one learner."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget the contents of all learners' variables."""
        self._learner: ref[Learner] | None = None
        self._digest: str | None = None
        self._source: Learner | None = None

    @property
    def available_digest(self) -> str | None:
        """The digest of the base that the next job may use; None if there is none."""
        return self._digest if self._source else None

    def set(self, learner: Learner, digest: str) -> None:
        """Record that the variables of a learner contain a base."""
        self._learner = ref(learner)
        self._digest = digest
        self._source = learner if learner.layout.nbytes <= MAX_SOURCE_BYTES else None

    def find_digest(self, learner: Learner) -> str | None:
        """Return the digest of the base in a learner's variables, computed once.

        Returns:
            None if the states of the learner have no base.
        """
        if not learner.layout.base_positions:
            return None
        if not self._contains(learner):
            self.set(learner, compute_digest(learner.read(), learner.layout))
        return self._digest

    def invalidate(self, learner: Learner) -> None:
        """Record that the variables of a learner will change."""
        if self._contains(learner):
            self.clear()

    def copy_to(self, learner: Learner, digest: str) -> None:
        """Copy a base into the variables of a learner; raise RequestError if it is not cached."""
        if self._source is None or self._digest != digest or not learner.layout.base_positions:
            raise RequestError(
                f"the frozen weights {digest[:DIGEST_DIGITS]!r} are not held",
                sqlstate="55000",
                hint="Send the whole state.",
            )
        if self._source is learner:
            return
        values = self._source.read()
        sources = self._source.layout.base_positions
        for position, source in zip(learner.layout.base_positions, sources, strict=True):
            learner.assign(position, values[source])
        self.set(learner, digest)

    def _contains(self, learner: Learner) -> bool:
        return self._learner is not None and self._learner() is learner


def compute_digest(values: Arrays, layout: Layout) -> str:
    """Return the digest of the base in the variables of a learner."""
    digest = sha256()
    for position in layout.base_positions:
        digest.update(json.dumps([layout.dtypes[position], layout.shapes[position]]).encode())
        digest.update(bytes_of(values[position]))
    return digest.hexdigest()[:DIGEST_DIGITS]
