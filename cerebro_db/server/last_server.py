"""The folder of the embedded server that was started last, in a file of the user.

Each virtual environment has a file of its own, because a start updates the server to the release of
its environment.
"""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from pathlib import Path


def remember_folder(data: Path) -> None:
    """Store the folder of a server that has just been started."""
    file = _find_file()
    # The server runs, even if a later command has to be given its folder.
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{data}\n")


def find_folder() -> Path | None:
    """Return the folder of the server that was started last, if it still exists."""
    try:
        folder = Path(_find_file().read_text().rstrip("\n"))
    except (OSError, ValueError):
        return None
    if folder.is_absolute() and folder.is_dir():
        return folder
    return None


def _find_file() -> Path:
    state_home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state"
    digest = hashlib.sha256(os.fsencode(sys.prefix)).hexdigest()
    return Path(state_home) / "cerebro_db" / f"server-{digest[:12]}"
