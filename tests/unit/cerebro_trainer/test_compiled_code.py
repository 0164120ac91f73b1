"""Compiled code is kept apart where it may differ, is whole or not there, and does not grow for
ever.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cerebro_trainer.programs import code_cache
from cerebro_trainer.programs.code_cache import Entries


def files(folder: Path, **ages: int) -> None:
    """Files of 100 bytes that were used so many seconds before some moment."""
    for name, age in ages.items():
        (folder / name).write_bytes(bytes(100))
        os.utime(folder / name, (1e9 - age, 1e9 - age))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_what_decides_about_bits_has_a_folder_of_its_own(tmp_path: Path) -> None:
    asked = [("jax", "1.0", 1), ("jax", "1.0", 2), ("jax", "1.1", 1), ("other", "1.0", 1)]
    found = [code_cache.open_folder(tmp_path, *key) for key in asked]
    assert len(set(found)) == len(asked)
    assert found == [code_cache.open_folder(tmp_path, *key) for key in asked]
    assert {path.stat().st_mode & 0o777 for path in found if path} == {0o700}


def test_where_no_folder_can_be_made_there_is_none(tmp_path: Path) -> None:
    root = tmp_path / "file"
    root.touch()
    assert code_cache.open_folder(root, "jax", "1.0", 1) is None


def test_what_is_kept_is_found_by_whoever_looks(tmp_path: Path) -> None:
    Entries(tmp_path).put("key", b"code")
    assert Entries(tmp_path).get("key") == b"code"
    assert Entries(tmp_path).get("another") is None
    Entries(tmp_path).put("key", b"newer")
    assert Entries(tmp_path).get("key") == b"newer"
    assert names(tmp_path) == {"key"}


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 1000])
def test_half_an_entry_is_none(tmp_path: Path, size: int) -> None:
    entries = Entries(tmp_path)
    entries.put("key", os.urandom(2000))
    (tmp_path / "key").write_bytes((tmp_path / "key").read_bytes()[:size])
    assert entries.get("key") is None
    entries.put("key", b"anew")
    assert entries.get("key") == b"anew"


def test_a_reader_never_sees_a_part_of_what_is_written(tmp_path: Path) -> None:
    entries, written = Entries(tmp_path), [bytes([number]) * 300_000 for number in range(1, 5)]
    entries.put("key", written[0])

    def write(value: bytes) -> None:
        for _ in range(20):
            entries.put("key", value)

    with ThreadPoolExecutor(len(written)) as pool:
        writers = [pool.submit(write, value) for value in written]
        while not all(writer.done() for writer in writers):
            assert entries.get("key") in written
    assert names(tmp_path) == {"key"}


def test_what_cannot_be_written_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "key").mkdir()  # nothing takes the place of a folder
    for folder in (tmp_path, tmp_path / "gone"):
        Entries(folder).put("key", b"code")
        assert Entries(folder).get("key") is None
    assert names(tmp_path) == {"key"}


def test_what_was_not_used_longest_goes_first(tmp_path: Path) -> None:
    (folder := tmp_path / "jax").mkdir()
    files(folder, new=0, old=1, older=2, oldest=3)
    os.utime(folder / "oldest", (2e9, 1e9))  # read a short while ago
    code_cache.shrink(tmp_path, 250)
    assert names(folder) == {"new", "oldest"}
    code_cache.shrink(tmp_path, 250)
    assert names(folder) == {"new", "oldest"}


def test_to_be_found_is_to_be_used(tmp_path: Path) -> None:
    (folder := tmp_path / "jax").mkdir()
    entries = Entries(folder)
    for key in ("first", "second", "third"):
        entries.put(key, bytes(100))
    files(folder, second=0, third=1)
    os.utime(folder / "first", (1e9 - 2, 1e9 - 2))
    entries.get("first")
    code_cache.shrink(tmp_path, 150)
    assert names(folder) == {"first"}


def test_several_that_shrink_at_once_remove_no_more_than_one_would(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for number, folder in enumerate(folders):
        folder.mkdir()
        files(folder, **{f"file{each}": 2 * each + number for each in range(200)})
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(code_cache.shrink, tmp_path, 100 * 100) for _ in range(8)]:
            done.result()
    assert [names(folder) for folder in folders] == [{f"file{each}" for each in range(50)}] * 2


def test_what_is_no_file_is_left_alone(tmp_path: Path) -> None:
    (folder := tmp_path / "jax").mkdir()
    (folder / "within").mkdir()
    (folder / "link").symlink_to("/nowhere")
    code_cache.shrink(tmp_path, 0)
    assert names(folder) == {"within", "link"}


def test_the_size_is_looked_at_seldom(tmp_path: Path) -> None:
    (folder := tmp_path / "jax").mkdir()
    files(folder, first=0)
    code_cache.limit_size(tmp_path, 50)
    assert not names(folder)
    files(folder, second=0)
    code_cache.limit_size(tmp_path, 50)
    assert names(folder) == {"second"}
    for moment in (
        time.time() - code_cache.CHECK_SECONDS - 1,
        time.time() + 1e6,
    ):  # clocks are set back, too
        files(folder, second=0)
        os.utime(tmp_path / code_cache.STAMP, (moment, moment))
        code_cache.limit_size(tmp_path, 50)
        assert not names(folder)
