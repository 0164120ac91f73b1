"""Compiled code that outlives a trainer: the folder in which a framework keeps it, and how large that may grow.

What lies there is executed by whoever finds it. The backend passes only a folder that nobody but its own system
user can write to.
"""

from __future__ import annotations

import hashlib
import platform
import re
from pathlib import Path

LIMIT_BYTES = 1 << 30


def folder(root: Path, framework: str, version: str, threads: int) -> Path:
    """A folder for the code that this version makes here for so many threads; what was not used longest goes.

    Code may use every instruction of the processor it was made on, and splits its work by the number of threads,
    on which the bits of a result depend; neither is part of the frameworks' own keys.
    """
    cpu = re.search(r"^(?:flags|Features)\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    facts = f"{platform.machine()} {cpu.group(1) if cpu else platform.processor()}"
    digest = hashlib.sha256(facts.encode()).hexdigest()[:12]
    found = root / f"{framework}-{version}-{threads}-{digest}"
    found.mkdir(mode=0o700, exist_ok=True)
    shrink(root, LIMIT_BYTES)
    return found


def shrink(root: Path, limit: int) -> None:
    """Remove the files that were not used longest, until the others take `limit` bytes at most."""
    files = []
    for path in root.glob("*/*"):
        try:
            facts = path.stat()
        except FileNotFoundError:
            continue  # another trainer is at it too
        files.append((max(facts.st_atime, facts.st_mtime), facts.st_size, path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= limit:
            return
        path.unlink(missing_ok=True)
        total -= size
