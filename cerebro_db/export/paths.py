"""Write exported files without overwriting others, and without leaving incomplete ones."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from cerebro_db.errors import DuplicateObject


def check_free(paths: Sequence[Path], force: bool) -> None:
    """Check that none of the paths exists, unless `force` is set.

    Raises:
        DuplicateObject: a path exists.
    """
    for path in paths:
        if path.exists() and not force:
            raise DuplicateObject(
                f"{path} exists already", hint="Name another path, or say --force (force=True)."
            )


@contextmanager
def stage_files(folder: Path) -> Iterator[Path]:
    """Yield a new folder; move its files to `folder` after all have been written."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".export-", dir=folder) as name:
        staging = Path(name)
        yield staging
        for path in sorted(staging.iterdir()):
            os.replace(path, folder / path.name)
