"""Files that commands write: checks before work starts."""

from __future__ import annotations

from pathlib import Path

import typer


def check_output(path: Path, *, force: bool = False, hint: str = "") -> None:
    """Check that a new file can be made.

    Args:
        force: True if an existing file may be replaced.
        hint: advice if the file exists.

    Raises:
        typer.BadParameter: the file exists, or there is no such folder.
    """
    if path.exists() and not force:
        raise typer.BadParameter(f"{path} exists already{hint}", param_hint="--output")
    if path.is_dir():
        raise typer.BadParameter(f"{path} is a folder; name a file", param_hint="--output")
    if not path.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {path.parent}", param_hint="--output")
