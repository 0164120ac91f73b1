"""Scripts for psql, run as a user would run them."""

from __future__ import annotations

import subprocess
from pathlib import Path


def printed(url: str, script: Path) -> str:
    """What a script prints; messages of the server, which tell times, are not part of it."""
    command = [
        "psql",
        "--no-psqlrc",
        "--quiet",
        "--set",
        "ON_ERROR_STOP=1",
        "--file",
        str(script),
        url,
    ]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return done.stdout
