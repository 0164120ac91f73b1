"""A folder of compiled code that outlives a trainer, limited in size.

A trainer executes the code that it finds there. The backend therefore passes only a folder that
nobody but its own system user can write to. A damaged entry costs a compilation and nothing else:
a trainer may be ended while it writes, a disk may be full, and a machine that loses power may leave
a file of zeros.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

LIMIT_BYTES = 1 << 30
CHECK_SECONDS = 600
"""Time between checks of the size: an entry has 2 to 50 kB, and 100,000 take a second to check."""
STAMP = "looked_at"
"""Name of the file whose modification time is that of the last check."""
DIGEST_BYTES = hashlib.sha256().digest_size


def open_folder(root: Path, framework: str, version: str, threads: int) -> Path | None:
    """Return the folder of this framework on this processor; None if it cannot be created.

    Compiled code may use every instruction of its processor. It splits its work by the number of
    threads, on which the bits of a result depend. The frameworks' own keys contain neither.
    """
    cpu = re.search(
        r"^(?:flags|Features)\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE
    )
    features = f"{platform.machine()} {cpu.group(1) if cpu else platform.processor()}"
    digest = hashlib.sha256(features.encode()).hexdigest()[:12]
    folder = root / f"{framework}-{version}-{threads}-{digest}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        limit_size(root, LIMIT_BYTES)
    except OSError:
        return None
    return folder


class Entries:
    """The files of a folder, in JAX's cache interface; a damaged file counts as missing."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, key: str) -> bytes | None:
        """Return the value of a key; None if it is missing."""
        path = self._path / key
        try:
            content = path.read_bytes()
            os.utime(path)  # many file systems do not record when a file is read
        except OSError:
            return None
        return unpack_entry(content)

    def put(self, key: str, value: bytes) -> None:
        """Store a value; an existing file is replaced, since it was not usable."""
        with suppress(OSError):
            descriptor, path = tempfile.mkstemp(dir=self._path)
            try:
                with open(descriptor, "wb") as file:
                    file.write(hashlib.sha256(value).digest() + value)
                os.replace(path, self._path / key)
            except OSError:
                os.unlink(path)


def unpack_entry(content: bytes) -> bytes | None:
    """Return the value in a file's content; None if it is damaged."""
    digest = content[:DIGEST_BYTES]
    value = content[DIGEST_BYTES:]
    return value if hashlib.sha256(value).digest() == digest else None


def limit_size(root: Path, limit: int) -> None:
    """Shrink the folders to `limit` bytes, unless they were checked a short while ago."""
    stamp = root / STAMP
    with suppress(FileNotFoundError):
        if abs(time.time() - stamp.stat().st_mtime) < CHECK_SECONDS:
            return
    stamp.touch()  # first, so that only one of several starting trainers checks
    shrink(root, limit)


def shrink(root: Path, limit: int) -> None:
    """Remove the least recently used files until the others take `limit` bytes at most."""
    files = sorted(_list_files(root), reverse=True)
    total = 0
    for file in files:
        total += file.size
        if total > limit:
            with suppress(FileNotFoundError):  # another trainer may shrink them, too
                os.unlink(file.path)


class _File(NamedTuple):
    """A file of the cache; sorted by time."""

    used_at: float
    size: int
    path: str


def _list_files(root: Path) -> Iterator[_File]:
    for folder in root.iterdir():
        if not folder.is_dir():
            continue
        for entry in os.scandir(folder):
            with suppress(FileNotFoundError):
                status = entry.stat(follow_symlinks=False)
                if entry.is_file(follow_symlinks=False):
                    used_at = max(status.st_atime, status.st_mtime)
                    yield _File(used_at, status.st_size, entry.path)
