"""A file for the variables of a program that does not fit into its trainer's memory.

The file is in the trainer's own folder and has no name, so it disappears with the process. It is
read and written, never mapped, because mapped pages count as memory of the process.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any
from weakref import WeakSet, finalize

import numpy as np

from cerebro_trainer.errors import ConfigError
from cerebro_trainer.state.layout import Layout
from cerebro_trainer.state.serialization import bytes_of
from cerebro_trainer.wire.frames import Array

ALIGNMENT = 64
"""Bytes. Frameworks use memory without a copy if it begins at a multiple of this."""
COPY_BYTES = 16 << 20


class StateFile:
    """The values of all variables of a layout, in a file.

    All values are zeros at first; the disk space is allocated when one is read or written.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        padded_sizes = [-(-size // ALIGNMENT) * ALIGNMENT for size in layout.sizes]
        *self._offsets, self._bytes = accumulate(padded_sizes, initial=0)
        self._allocated_file: _UnnamedFile | None = None
        self._snapshots: WeakSet[Snapshot] = WeakSet()

    @property
    def _file(self) -> _UnnamedFile:
        if self._allocated_file is None:
            # A snapshot may need a copy of the file.
            self._allocated_file = _UnnamedFile(self._bytes, spare=self._bytes)
        return self._allocated_file

    def read(self, position: int) -> Array:
        """Read a variable; raise ConfigError if the disk has no space for the file."""
        return self.read_from(self._file.descriptor, position)

    def read_from(self, descriptor: int, position: int) -> Array:
        """Read a variable from another file with the same layout."""
        array = _allocate_aligned(self._layout.shapes[position], self._layout.dtypes[position])
        view = bytes_of(array)
        offset = self._offsets[position]
        while view:
            count = os.preadv(descriptor, [view], offset)
            view = view[count:]
            offset += count
        return array

    def write(self, position: int, value: Array) -> None:
        """Change a variable; snapshots keep the previous value."""
        if self._snapshots:
            self._allocated_file = self._copy_file()
            self._snapshots = WeakSet()
        view = bytes_of(value)
        offset = self._offsets[position]
        while view:
            count = os.pwrite(self._file.descriptor, view, offset)
            view = view[count:]
            offset += count

    def snapshot(self) -> Snapshot:
        """Return the current values, which later writes do not change."""
        snapshot = Snapshot(self, self._file)
        self._snapshots.add(snapshot)
        return snapshot

    def clear(self) -> None:
        """Reset all values to zeros."""
        self._allocated_file = None
        self._snapshots = WeakSet()

    @property
    def count(self) -> int:
        """The number of variables."""
        return len(self._offsets)

    def _copy_file(self) -> _UnnamedFile:
        copy = _UnnamedFile(self._bytes, spare=0)
        offset = 0
        while offset < self._bytes:
            data = os.pread(self._file.descriptor, COPY_BYTES, offset)
            offset += os.pwrite(copy.descriptor, data, offset)
        return copy


class _UnnamedFile:
    """A file of zeros that disappears with the last reference to this object.

    Args:
        nbytes: size of the file.
        spare: bytes that must remain available on the disk.

    Raises:
        ConfigError: the disk does not have enough space.
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
    """The values of a state at one moment, which are read one by one."""

    def __init__(self, source: StateFile, file: _UnnamedFile) -> None:
        self._source = source
        self._file = file

    def __len__(self) -> int:
        return self._source.count

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return [self[index] for index in range(*position.indices(len(self)))]
        if not 0 <= position < len(self):
            raise IndexError(position)
        return self._source.read_from(self._file.descriptor, position)

    def __iter__(self) -> Iterator[Array]:
        return (self[position] for position in range(len(self)))


def _allocate_aligned(shape: tuple[int, ...], dtype: str) -> Array:
    """Return an uninitialized array that begins at a multiple of ALIGNMENT."""
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    memory = np.empty(size + ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT
    return memory[begin : begin + size].view(dtype).reshape(shape)
