"""The cache of frozen weights: those in the variables of the last program, by their digest.

The states of many visits share their frozen weights, which should not be read again at each hop.
Another program copies them from there.
"""

from __future__ import annotations

import json
from hashlib import sha256
from weakref import ref

from cerebro_trainer.errors import RequestError
from cerebro_trainer.programs.program import Program
from cerebro_trainer.state.layout import DIGEST_DIGITS, Layout
from cerebro_trainer.state.serialization import bytes_of
from cerebro_trainer.wire.frames import Arrays

MAX_SOURCE_BYTES = 512 << 20
"""A larger program is not kept in memory as the source of a copy."""


class FrozenWeightCache:
    """The base (see `state.layout`) in the variables of one program."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget the contents of all programs' variables."""
        self._program: ref[Program] | None = None
        self._digest: str | None = None
        self._source: Program | None = None

    @property
    def available_digest(self) -> str | None:
        """The digest of the base that the next job may use; None if there is none."""
        return self._digest if self._source else None

    def set(self, program: Program, digest: str) -> None:
        """Record that the variables of a program contain a base."""
        self._program = ref(program)
        self._digest = digest
        self._source = program if program.layout.nbytes <= MAX_SOURCE_BYTES else None

    def find_digest(self, program: Program) -> str | None:
        """Return the digest of the base in a program's variables, computed once.

        Returns:
            None if the states of the program have no base.
        """
        if not program.layout.base_positions:
            return None
        if not self._contains(program):
            self.set(program, compute_digest(program.read(), program.layout))
        return self._digest

    def invalidate(self, program: Program) -> None:
        """Record that the variables of a program will change."""
        if self._contains(program):
            self.clear()

    def copy_to(self, program: Program, digest: str) -> None:
        """Copy a base into the variables of a program; raise RequestError if it is not cached."""
        if self._source is None or self._digest != digest or not program.layout.base_positions:
            raise RequestError(
                f"the frozen weights {digest[:DIGEST_DIGITS]!r} are not held",
                sqlstate="55000",
                hint="Send the whole state.",
            )
        if self._source is program:
            return
        values = self._source.read()
        sources = self._source.layout.base_positions
        for position, source in zip(program.layout.base_positions, sources, strict=True):
            program.assign(position, values[source])
        self.set(program, digest)

    def _contains(self, program: Program) -> bool:
        return self._program is not None and self._program() is program


def compute_digest(values: Arrays, layout: Layout) -> str:
    """Return the digest of the base in the variables of a program."""
    digest = sha256()
    for position in layout.base_positions:
        digest.update(json.dumps([layout.dtypes[position], layout.shapes[position]]).encode())
        digest.update(bytes_of(values[position]))
    return digest.hexdigest()[:DIGEST_DIGITS]
