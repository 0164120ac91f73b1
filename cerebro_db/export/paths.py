"""Where exports are written: nothing is overwritten unless somebody says so, and no file is there
half.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from cerebro_db.errors import DuplicateObject


def check_free(paths: Sequence[Path], force: bool) -> None:
    """Raises DuplicateObject where one of the paths exists, unless that is meant."""
    for path in paths:
        if path.exists() and not force:
            raise DuplicateObject(
                f"{path} exists already", hint="Name another path, or say --force (force=True)."
            )


@contextmanager
def written(folder: Path) -> Iterator[Path]:
    """A new folder, whose files are moved to `folder` when all are written."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".export-", dir=folder) as name:
        made = Path(name)
        yield made
        for path in sorted(made.iterdir()):
            os.replace(path, folder / path.name)
