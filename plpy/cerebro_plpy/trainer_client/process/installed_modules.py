"""The question whether the interpreter of the trainers has an optional library.

A child process of that interpreter answers, because a backend imports none of its libraries.
"""

from __future__ import annotations

import subprocess
import tempfile
from typing import NamedTuple

from cerebro_plpy.trainer_client.process.launch import TrainerSpec

FIND = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
"""Looks for a library without importing it."""
IMPORT = "import importlib, sys; print(importlib.import_module(sys.argv[1]).__version__)"
"""Imports a library, which may lack others."""
MESSAGE_CHARACTERS = 500
SECONDS = 30.0
"""The longest time to wait for an interpreter on a busy machine."""
_modules_by_python: set[tuple[str, str]] = set()
"""Interpreters and the libraries that they have; others may be installed at any time."""


class Library(NamedTuple):
    """The version of a library, or the problem of its import."""

    version: str | None = None
    problem: str | None = None


def has_module(spec: TrainerSpec, name: str) -> bool:
    """Return whether an interpreter finds a library; an answer that it does is remembered."""
    key = (spec.python, name)
    if key not in _modules_by_python:
        process = _run(spec, FIND, name)
        if process is not None and process.returncode == 0:
            _modules_by_python.add(key)
    return key in _modules_by_python


def try_import(spec: TrainerSpec, name: str) -> Library:
    """Import a library in a process of its own; return its version, or why that failed."""
    process = _run(spec, IMPORT, name)
    if process is None:
        return Library(problem=f"{spec.python} could not be executed")
    if process.returncode:
        lines = process.stderr.strip().splitlines() or [f"exit status {process.returncode}"]
        return Library(problem=lines[-1][:MESSAGE_CHARACTERS])
    return Library(version=process.stdout.strip()[:MESSAGE_CHARACTERS])


def _run(spec: TrainerSpec, script: str, name: str) -> subprocess.CompletedProcess[str] | None:
    """Run a script; return None if there is no answer.

    The start of a trainer reports what is wrong with the interpreter.
    """
    try:
        return subprocess.run(
            [spec.python, "-I", "-c", script, name],
            env=spec.environment(tempfile.gettempdir()),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
