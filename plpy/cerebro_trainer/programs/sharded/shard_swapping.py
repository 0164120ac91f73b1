"""Swapping of shards between memory and the file of a state.

At most two shards are in flight. While one is computed, the one before is written to the file, and
then the next one is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, TypeAlias

from cerebro_trainer.state.state_file import StateFile
from cerebro_trainer.wire.frames import Array

Values: TypeAlias = list[tuple[int, Array]]
"""Values of variables, with their positions in a state."""


class ShardTask(NamedTuple):
    """Work that needs some variables in memory; variables are given by position."""

    positions: frozenset[int]
    changed: frozenset[int]
    work: Callable[[], float]  # returns a part of the total


class ShardSwapper:
    """Loads the variables of tasks into memory, and unloads them.

    Args:
        load: gives a variable a value.
        unload: takes the value of a variable, and leaves it without memory.
    """

    def __init__(
        self, file: StateFile, load: Callable[[int, Array], None], unload: Callable[[int], Array]
    ) -> None:
        self._file = file
        self._load = load
        self._unload = unload
        self.can_prefetch = True
        """True if there is memory for two shards."""

    def run(
        self,
        tasks: Iterable[ShardTask],
        total: float = 0.0,
        should_stop: Callable[[float], bool] = lambda total: False,
    ) -> float:
        """Run tasks until `should_stop` of the total; afterwards no variable is in memory.

        Args:
            total: start of the sum of all results.

        Returns:
            The sum.
        """
        loaded: set[int] = set()
        changed: set[int] = set()
        with ThreadPoolExecutor(1) as thread:
            writing: Future[None] = thread.submit(self._write, [])
            try:
                remaining_tasks = iter(tasks)
                task = next(remaining_tasks, None)
                reading = None if task is None else self._submit_read(thread, task, loaded)
                while task is not None and reading is not None:
                    self._load_values(reading.result(), loaded)
                    next_task = next(remaining_tasks, None)
                    reading = None
                    if next_task is not None and self.can_prefetch:
                        reading = self._submit_read(thread, next_task, loaded)
                    total += task.work()
                    changed |= task.changed
                    if should_stop(total):
                        next_task = None
                    leaving = loaded - (next_task.positions if next_task else frozenset())
                    loaded -= leaving
                    writing.result()
                    writing = thread.submit(self._write, self._unload_values(leaving, changed))
                    if next_task is not None and reading is None:
                        writing.result()
                        reading = self._submit_read(thread, next_task, loaded)
                    task = next_task
                writing.result()
            finally:
                for position in loaded:
                    self._unload(position)
        return total

    def _submit_read(
        self, thread: ThreadPoolExecutor, task: ShardTask, loaded: Set[int]
    ) -> Future[Values]:
        """Start to read the variables of a task that are not in memory."""
        return thread.submit(self._read, sorted(task.positions - loaded))

    def _load_values(self, values: Values, loaded: set[int]) -> None:
        while values:
            position, array = values.pop()
            loaded.add(position)
            self._load(position, array)

    def _unload_values(self, leaving: Set[int], changed: set[int]) -> Values:
        """Unload variables; return the values that must be written."""
        changed_values = []
        for position in sorted(leaving):
            value = self._unload(position)
            if position in changed:
                changed_values.append((position, value))
        changed -= leaving
        return changed_values

    def _read(self, positions: Sequence[int]) -> Values:
        return [(position, self._file.read(position)) for position in positions]

    def _write(self, values: Values) -> None:
        while values:
            self._file.write(*values.pop())
