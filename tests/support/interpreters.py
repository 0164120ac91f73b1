"""A program of a test's own in the place of the interpreter that trainers are started with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workbench import Workbench, setting


@contextmanager
def interpreter(superuser: Workbench, folder: Path, script: str) -> Iterator[None]:
    """Trainers are started by this script, in which {python} is what starts them else."""
    before = superuser.value("SELECT value FROM cerebro.setting WHERE name = 'trainer_python'")
    program = folder / "python"
    program.write_text(script.format(python=before))
    for path in (folder, program):
        path.chmod(0o755)
    with setting(superuser, "trainer_python", str(program)):
        yield
