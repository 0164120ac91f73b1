"""Compiled code is kept apart where it may differ, and does not grow for ever."""

from __future__ import annotations

import os
from pathlib import Path

from cerebro_trainer.programs import code_cache


def test_what_decides_about_bits_has_a_folder_of_its_own(tmp_path: Path) -> None:
    asked = [("jax", "1.0", 1), ("jax", "1.0", 2), ("jax", "1.1", 1), ("tensorflow", "1.0", 1)]
    found = [code_cache.folder(tmp_path, *key) for key in asked]
    assert len(set(found)) == len(asked)
    assert found == [code_cache.folder(tmp_path, *key) for key in asked]
    assert {path.stat().st_mode & 0o777 for path in found} == {0o700}


def test_what_was_not_used_longest_goes_first(tmp_path: Path) -> None:
    folder = code_cache.folder(tmp_path, "jax", "1.0", 1)
    for age, name in enumerate(["new", "old", "older", "oldest"]):
        path = folder / name
        path.write_bytes(bytes(100))
        os.utime(path, (1e9 - age, 1e9 - age))
    os.utime(folder / "oldest", (2e9, 1e9))  # read a short while ago
    code_cache.shrink(tmp_path, 250)
    assert {path.name for path in folder.iterdir()} == {"new", "oldest"}
    code_cache.shrink(tmp_path, 250)
    assert len(list(folder.iterdir())) == 2
