"""A state in a file: where the variables of a program lie that does not fit into its trainer's
memory.

The file is in the trainer's own folder and has no name, so it is gone with the process. It is read
and written, never mapped, because mapped pages count as memory of the process.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, overload
from weakref import WeakSet, finalize

import numpy as np
import numpy.typing as npt

from cerebro_trainer.errors import ConfigError
from cerebro_trainer.state.layout import Layout
from cerebro_trainer.state.serialization import bytes_of

ALIGNMENT = 64
"""Bytes: memory that begins at a multiple of them frameworks take over as it is."""
COPY_BYTES = 16 << 20

Array = npt.NDArray[Any]


class StateFile:
    """The values of all variables of a layout, each at its place in a file."""

    def __init__(self, layout: Layout) -> None:
        """Its values are zeros, and take no room before one is written."""
        self._layout = layout
        padded = [-(-size // ALIGNMENT) * ALIGNMENT for size in layout.sizes]
        *self._begins, self._bytes = accumulate(padded, initial=0)
        self._made: _Nameless | None = None
        self._snapshots: WeakSet[Snapshot] = WeakSet()

    @property
    def _file(self) -> _Nameless:
        if self._made is None:
            self._made = _Nameless(self._bytes, self._bytes)  # and for a copy
        return self._made

    def read(self, position: int) -> Array:
        """The value of a variable; ConfigError where the disk has no room for the file."""
        return self.read_from(self._file.descriptor, position)

    def read_from(self, descriptor: int, position: int) -> Array:
        """The value that a variable has in a file like this one."""
        array = _aligned(self._layout.shapes[position], self._layout.dtypes[position])
        view, begin = bytes_of(array), self._begins[position]
        while view:
            count = os.preadv(descriptor, [view], begin)
            view, begin = view[count:], begin + count
        return array

    def write(self, position: int, value: Array) -> None:
        """Change the value of a variable; what a snapshot has stays what it is."""
        if self._snapshots:
            self._made, self._snapshots = self._copied(), WeakSet()
        view, begin = bytes_of(value), self._begins[position]
        while view:
            count = os.pwrite(self._file.descriptor, view, begin)
            view, begin = view[count:], begin + count

    def snapshot(self) -> Snapshot:
        """All values as they are now, whatever is written later."""
        snapshot = Snapshot(self, self._file)
        self._snapshots.add(snapshot)
        return snapshot

    def clear(self) -> None:
        """Forget all values: they are zeros."""
        self._made, self._snapshots = None, WeakSet()

    @property
    def count(self) -> int:
        """How many variables there are."""
        return len(self._begins)

    def _copied(self) -> _Nameless:
        made, begin = _Nameless(self._bytes, 0), 0
        while begin < self._bytes:
            piece = os.pread(self._file.descriptor, COPY_BYTES, begin)
            begin += os.pwrite(made.descriptor, piece, begin)
        return made


class _Nameless:
    """A file of so many zeros that is gone with the last that refers to it.

    ConfigError where the disk has no room for it, and as many bytes to `spare`.
    """

    def __init__(self, nbytes: int, spare: int) -> None:
        self.descriptor, path = tempfile.mkstemp(prefix="state-")
        finalize(self, os.close, self.descriptor)
        os.unlink(path)
        disk = os.fstatvfs(self.descriptor)
        free = disk.f_bavail * disk.f_frsize
        if nbytes + spare > free:
            raise ConfigError(
                f"the disk of the trainer's folder has {free >> 20} MB left; a state there needs"
                f" {nbytes + spare >> 20} MB at times",
                sqlstate="53100",
                hint="A model that does not fit into trainer_memory_mb is kept there while it is "
                "trained.",
            )
        os.posix_fallocate(self.descriptor, 0, max(1, nbytes))


class Snapshot(Sequence[Array]):
    """The values of a state at a moment, which are read one by one."""

    def __init__(self, source: StateFile, file: _Nameless) -> None:
        self._source = source
        self._file = file

    def __len__(self) -> int:
        return self._source.count

    @overload
    def __getitem__(self, position: int) -> Array: ...

    @overload
    def __getitem__(self, position: slice) -> list[Array]: ...

    def __getitem__(self, position: int | slice) -> Array | list[Array]:
        if isinstance(position, slice):
            return [self[each] for each in range(*position.indices(len(self)))]
        if not 0 <= position < len(self):
            raise IndexError(position)
        return self._source.read_from(self._file.descriptor, position)

    def __iter__(self) -> Iterator[Array]:
        return (self[position] for position in range(len(self)))


def _aligned(shape: tuple[int, ...], dtype: str) -> Array:
    """An array of these numbers that begins where frameworks like it."""
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    room = np.empty(size + ALIGNMENT, np.uint8)
    begin = -room.ctypes.data % ALIGNMENT
    return room[begin : begin + size].view(dtype).reshape(shape)
