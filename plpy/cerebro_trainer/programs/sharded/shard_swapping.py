"""Turns of shards in memory: what one needs is brought when its turn comes, and taken away when it
is over.

At most two shards are in flight: beside the one whose turn it is, the one before is written to the
state's file, and then the next one is read from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeAlias

import numpy.typing as npt

from cerebro_trainer.state.state_file import StateFile

Array: TypeAlias = npt.NDArray[Any]
Values: TypeAlias = list[tuple[int, Array]]
"""Of variables, by their positions in a state."""


class Turn(NamedTuple):
    """What is done while these variables, by position, are in memory; some of them it changes. Its
    answer is added.
    """

    positions: frozenset[int]
    changed: frozenset[int]
    work: Callable[[], float]


class Turns:
    """Brings the variables of turns into memory, and takes them away."""

    def __init__(
        self, file: StateFile, lend: Callable[[int, Array], None], take: Callable[[int], Array]
    ) -> None:
        """`lend` gives a variable its value; `take` takes it, and leaves the variable without any
        memory.
        """
        self._file = file
        self._lend = lend
        self._take = take
        self.ahead = True
        """Whether there is memory for two shards."""

    def done(
        self,
        turns: Iterable[Turn],
        total: float = 0.0,
        enough: Callable[[float], bool] = lambda total: False,
    ) -> float:
        """The total with all added that the turns answer, until it is enough; after that no
        variable is in memory.
        """
        held: set[int] = set()
        changed: set[int] = set()
        with ThreadPoolExecutor(1) as thread:
            written: Future[None] = thread.submit(self._write, [])
            try:
                upcoming = iter(turns)
                turn = next(upcoming, None)
                brought = (
                    None if turn is None else thread.submit(self._read, sorted(turn.positions))
                )
                while turn is not None and brought is not None:
                    self._bring(brought.result(), held)
                    following = next(upcoming, None)
                    brought = self._prefetched(thread, following, held)
                    total += turn.work()
                    changed |= turn.changed
                    if enough(total):
                        following = None
                    leaving = held - (frozenset() if following is None else following.positions)
                    held -= leaving
                    written.result()
                    written = thread.submit(self._write, self._taken(leaving, changed))
                    if following is not None and brought is None:
                        written.result()
                        brought = thread.submit(self._read, sorted(following.positions - held))
                    turn = following
                written.result()
            finally:
                for position in held:
                    self._take(position)
        return total

    def _prefetched(
        self, thread: ThreadPoolExecutor, turn: Turn | None, held: set[int]
    ) -> Future[Values] | None:
        if turn is None or not self.ahead:
            return None
        return thread.submit(self._read, sorted(turn.positions - held))

    def _bring(self, values: Values, held: set[int]) -> None:
        while values:
            position, array = values.pop()
            held.add(position)
            self._lend(position, array)

    def _taken(self, leaving: Set[int], changed: set[int]) -> Values:
        """The values that are to be written of the variables that leave."""
        taken = []
        for position in sorted(leaving):
            value = self._take(position)
            if position in changed:
                taken.append((position, value))
        changed -= leaving
        return taken

    def _read(self, positions: Sequence[int]) -> Values:
        return [(position, self._file.read(position)) for position in positions]

    def _write(self, values: Values) -> None:
        while values:
            self._file.write(*values.pop())
