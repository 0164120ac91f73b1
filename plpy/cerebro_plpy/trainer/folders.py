"""The folders in which trainers work: private, and gone with them."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

PREFIX = "cerebro_trainer-"


def make() -> str:
    """A folder for a trainer of this backend."""
    sweep()
    return tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-")


def remove(folder: str | Path) -> None:
    """Remove a folder as far as this user may."""
    shutil.rmtree(folder, ignore_errors=True)


def sweep() -> None:
    """Remove the folders left by trainers whose backend, named in the folder, was killed while they started."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        owner = folder.name[len(PREFIX) :].partition("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            remove(folder)  # those of other users cannot be removed, and stay
