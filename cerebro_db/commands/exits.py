"""Exit codes of commands; a test compares them with docs/how-to/command-line.md."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit code of a command that does not succeed; 0 is success."""

    ERROR = 1
    """An error of the database or of the call, or a check that failed."""
    USAGE = 2
    """An unknown command, option or argument; typer itself exits with this code."""
    NOT_RUNNING = 3
    """`server status` found no running server; pg_ctl and init scripts use the same code."""
    NOT_COMPLETED = 4
    """A watched run ended with another status than completed."""
    CANCELLED = 130
    """Ctrl-C cancelled the command; typer itself exits with this code."""
