"""The exit codes of commands; docs/command-line.md says the same, and a test compares the two."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What a command ends with; 0 is success."""

    ERROR = 1
    """An error of the database or of the call, or a check that failed."""
    USAGE = 2
    """A command, an option or an argument that there is not; typer ends so by itself."""
    NOT_RUNNING = 3
    """`server status` found no server running, as in the exit codes of pg_ctl and of init scripts.
    """
    NOT_COMPLETED = 4
    """A watched run ended otherwise than completed."""
    CANCELLED = 130
    """Ctrl-C cancelled what the command waited for; typer ends so by itself."""
