"""The libraries of the trainers' interpreter, as a child process of it sees them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cerebro_plpy.trainer_client.process.installed_modules import has_module, try_import
from cerebro_plpy.trainer_client.process.launch import TrainerSpec

SPEC = TrainerSpec(sys.executable)


def test_a_library_is_found_without_its_import_and_imported_for_its_version() -> None:
    assert has_module(SPEC, "numpy") and not has_module(SPEC, "no_such_library")
    numpy = try_import(SPEC, "numpy")
    assert numpy.version and numpy.version[0].isdigit() and numpy.problem is None
    missing = try_import(SPEC, "no_such_library")
    assert missing.version is None and "no_such_library" in str(missing.problem)


def test_what_is_missing_may_be_installed_later(tmp_path: Path) -> None:
    """An answer that there is a library is remembered; one that there is none is not."""
    interpreter = tmp_path / "python"
    for status, expected in ((1, False), (0, True), (1, True)):
        interpreter.write_text(f"#!/bin/sh\nexit {status}\n")
        interpreter.chmod(0o755)
        assert has_module(TrainerSpec(str(interpreter)), "lightgbm") is expected


@pytest.mark.parametrize("text", ["", "#!/no/such/interpreter\n"])
def test_an_interpreter_that_cannot_be_executed_has_no_library(tmp_path: Path, text: str) -> None:
    path = tmp_path / "python"
    path.write_text(text)
    spec = TrainerSpec(str(path))
    assert not has_module(spec, "numpy")
    assert "could not be executed" in str(try_import(spec, "numpy").problem)
