"""Virtual environments of peers, whose requirements exclude each other.

The environments are in the folder `.peers` of the clone, and are kept. `bench/peers` has their
requirements.
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
ISOLATION = ("unshare", "--net", *(["--map-root-user"] if os.geteuid() else []))
"""Command that gives a peer a loopback interface of its own, on which its bytes are counted.

Without root's rights this needs a user namespace, in which root would lose rights to read files.
"""


class NotInstalled(Exception):
    """The reason why a peer has no environment."""


@cache
def find_interpreter(peer: str) -> Interpreter:
    """Return the interpreter of a peer's environment, which is created if it is not up to date."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, MODULES))}
    return Interpreter((*ISOLATION, str(_create(peer))), environment)


def _create(peer: str) -> Path:
    """Create the environment of a peer if needed; return the path of its interpreter."""
    folder = FOLDER / peer
    expected_stamp = (
        "".join(file.read_text() for file in _list_files(REQUIREMENTS / f"{peer}.txt"))
        + sys.version
    )
    python = folder / "bin" / "python"
    stamp = folder / "made"
    if not stamp.exists() or stamp.read_text() != expected_stamp:
        shutil.rmtree(folder, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(folder)])
        pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
        _run([*pip, "install", "-r", str(REQUIREMENTS / f"{peer}.txt")])
        stamp.write_text(expected_stamp)
    return python


def _list_files(first: Path) -> list[Path]:
    """Return a file of requirements with the files that it includes."""
    included = [
        line.split()[1] for line in first.read_text().splitlines() if line.startswith("-r ")
    ]
    return [first, *(file for name in included for file in _list_files(first.parent / name))]


def _run(command: list[str]) -> None:
    process = subprocess.run(command, capture_output=True, text=True)
    if process.returncode:
        lines = [line for line in (process.stdout + process.stderr).splitlines() if line.strip()]
        raise NotInstalled(f"{command[3] if len(command) > 3 else command[0]}: {find_error(lines)}")
