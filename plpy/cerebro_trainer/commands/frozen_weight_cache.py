"""The frozen weights that a trainer has: those in the variables of the program that was used last,
by their digest.

States of many visits share them, so they are not to be read at each hop: another program takes them
over from there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from weakref import ref

from cerebro_trainer.errors import RequestError
from cerebro_trainer.programs.program import Array, Program
from cerebro_trainer.state.layout import DIGEST_DIGITS, Layout
from cerebro_trainer.state.serialization import bytes_of

LENT_BYTES = 512 << 20
"""A program with more is not kept in memory for another one to take its base over."""


class HeldBase:
    """The base that is in the variables of a program."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Nothing is known of any program's variables."""
        self._program: ref[Program] | None = None
        self._digest: str | None = None
        self._lent: Program | None = None

    @property
    def lent(self) -> str | None:
        """The digest of what the next job may begin from; None where that cannot be said."""
        return self._digest if self._lent else None

    def hold(self, program: Program, digest: str) -> None:
        """It is in the variables of that program."""
        self._program, self._digest = ref(program), digest
        self._lent = program if program.layout.nbytes <= LENT_BYTES else None

    def of(self, program: Program) -> str | None:
        """The digest of what is in a program's variables, computed once; None where its states have
        no base.
        """
        if program.layout.base_positions and not self._of(program):
            self.hold(program, digest(program.read(), program.layout))
        return self._digest if program.layout.base_positions else None

    def told(self, left: Program | None) -> dict[str, object]:
        """What a job's answer says of it; `left` is the program whose state the job has left."""
        return {**({} if left is None else {"base": self.of(left)}), "lent_base": self.lent}

    def replaced(self, program: Program) -> None:
        """Something else comes into the variables of a program."""
        if self._of(program):
            self.forget()

    def bring(self, program: Program, digest: str) -> None:
        """Have the base of that digest in the variables of a program."""
        if self._lent is None or self._digest != digest or not program.layout.base_positions:
            raise RequestError(
                f"the frozen weights {digest[:DIGEST_DIGITS]!r} are not held",
                sqlstate="55000",
                hint="Send the whole state.",
            )
        if self._lent is not program:
            values = self._lent.read()
            for position, source in zip(
                program.layout.base_positions, self._lent.layout.base_positions, strict=True
            ):
                program.assign(position, values[source])
            self.hold(program, digest)

    def _of(self, program: Program) -> bool:
        return self._program is not None and self._program() is program


def digest(values: Sequence[Array], layout: Layout) -> str:
    """What tells apart what is in the frozen weights of a program's variables."""
    found = sha256()
    for position in layout.base_positions:
        found.update(json.dumps([layout.dtypes[position], layout.shapes[position]]).encode())
        found.update(bytes_of(values[position]))
    return found.hexdigest()[:DIGEST_DIGITS]
