"""A virtual environment for each peer: what one wants installed, another one must not have.

They lie in `.peers` in the clone, and stay; what one has is named in `bench/peers`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from bench.contenders import Interpreter, find_error

CLONE = Path(__file__).parents[2]
FOLDER = CLONE / ".peers"
REQUIREMENTS = CLONE / "bench" / "peers"
MODULES = (CLONE, CLONE / "tests" / "support")
ALONE = ("unshare", "--net", *(["--map-root-user"] if os.geteuid() else []))
"""What a peer sends over the loopback interface is counted: none but it may use that one. Who is
not root has the rights for that in a namespace of users only; root would lose there what it may
read of others."""


class NotInstalled(Exception):
    """Why a peer has no environment."""


@cache
def interpreter(peer: str) -> Interpreter:
    """How a module is run in the environment of a peer, which is made where it is not there as it
    should be.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, MODULES))}
    return Interpreter((*ALONE, str(_made(peer))), environment)


def _made(peer: str) -> Path:
    """The interpreter of the environment of a peer."""
    folder = FOLDER / peer
    wanted = (
        "".join(file.read_text() for file in _files(REQUIREMENTS / f"{peer}.txt")) + sys.version
    )
    python, stamp = folder / "bin" / "python", folder / "made"
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(folder)])
        pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
        _run([*pip, "install", "-r", str(REQUIREMENTS / f"{peer}.txt")])
        stamp.write_text(wanted)
    return python


def _files(first: Path) -> list[Path]:
    """A file of requirements, and those that it refers to."""
    named = [line.split()[1] for line in first.read_text().splitlines() if line.startswith("-r ")]
    return [first, *(found for name in named for found in _files(first.parent / name))]


def _run(command: list[str]) -> None:
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode:
        lines = [line for line in (ended.stdout + ended.stderr).splitlines() if line.strip()]
        raise NotInstalled(f"{command[3] if len(command) > 3 else command[0]}: {find_error(lines)}")
