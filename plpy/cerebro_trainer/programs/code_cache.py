"""Compiled code that outlives a trainer: the folder in which it is kept, what an entry is, and how
large that may grow.

What lies there is executed by whoever finds it. The backend passes only a folder that nobody but
its own system user can write to. Whatever is wrong with it costs a compilation and nothing else: a
trainer may be ended while it writes, a disk may be full, and a machine that loses power may leave a
file of zeros.
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

LIMIT_BYTES = 1 << 30
LOOK_SECONDS = 600
"""How seldom the size is looked at: an entry has 2 to 50 kB, and to look at 100,000 takes a second.
"""
STAMP = "looked_at"
DIGEST = hashlib.sha256().digest_size


def folder(root: Path, framework: str, version: str, threads: int) -> Path | None:
    """A folder for the code that this version makes here for so many threads; None where there can
    be none.

    Code may use every instruction of the processor it was made on, and splits its work by the
    number of threads, on which the bits of a result depend; neither is part of the frameworks' own
    keys.
    """
    cpu = re.search(
        r"^(?:flags|Features)\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE
    )
    facts = f"{platform.machine()} {cpu.group(1) if cpu else platform.processor()}"
    digest = hashlib.sha256(facts.encode()).hexdigest()[:12]
    found = root / f"{framework}-{version}-{threads}-{digest}"
    try:
        found.mkdir(mode=0o700, exist_ok=True)
        look(root, LIMIT_BYTES)
    except OSError:
        return None
    return found


class Entries:
    """The files of a folder, as JAX asks for them and writes them: each whole, or as if it were not
    there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, key: str) -> bytes | None:
        """What was kept under this key."""
        path = self._path / key
        try:
            content = path.read_bytes()
            os.utime(path)  # many file systems do not note when a file is read
        except OSError:
            return None
        return entry(content)

    def put(self, key: str, value: bytes) -> None:
        """Keep this, in place of what is there: that was not good enough to be found."""
        with suppress(OSError):
            descriptor, path = tempfile.mkstemp(dir=self._path)
            try:
                with open(descriptor, "wb") as file:
                    file.write(hashlib.sha256(value).digest() + value)
                os.replace(path, self._path / key)
            except OSError:
                os.unlink(path)


def entry(content: bytes) -> bytes | None:
    """What a file was made to keep; None where it is not whole."""
    digest, value = content[:DIGEST], content[DIGEST:]
    return value if hashlib.sha256(value).digest() == digest else None


def look(root: Path, limit: int) -> None:
    """See to it that the files take `limit` bytes at most, unless somebody has a short while
    ago.
    """
    stamp = root / STAMP
    with suppress(FileNotFoundError):
        if abs(time.time() - stamp.stat().st_mtime) < LOOK_SECONDS:
            return
    stamp.touch()  # first, so that of several trainers that start now one does it
    shrink(root, limit)


def shrink(root: Path, limit: int) -> None:
    """Remove the files that were not used longest, until the others take `limit` bytes at most."""
    files = sorted(_files(root), reverse=True)
    total = 0
    for _, size, path in files:
        total += size
        if total > limit:
            with suppress(FileNotFoundError):  # another trainer is at it, too
                os.unlink(path)


def _files(root: Path) -> Iterator[tuple[float, int, str]]:
    """When each was last used, its size, its path."""
    for found in root.iterdir():
        if found.is_dir():
            for each in os.scandir(found):
                with suppress(FileNotFoundError):
                    facts = each.stat(follow_symlinks=False)
                    if each.is_file(follow_symlinks=False):
                        yield max(facts.st_atime, facts.st_mtime), facts.st_size, each.path
