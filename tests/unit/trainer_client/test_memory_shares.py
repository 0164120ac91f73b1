"""What is taken for free memory, and what trainers may keep of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.trainer_client import settings
from cerebro_plpy.trainer_client.process import host_resources

MEGABYTE = 1 << 20
GIGABYTE = 1 << 30
V2 = ("memory.max", "memory.current", "inactive_file")
V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def group(folder: Path, names: tuple[str, str, str], limit: str, used: int, idle: int = 0) -> None:
    """The files of a control group."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(f"{limit}\n")
    (folder / names[1]).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 1\n{names[2]} {idle}\nother 2\n")


@pytest.fixture
def computer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 16 GB, 12 of them free, whose files lie in a folder; its process is in the group
    /a/b.
    """
    groups = tuple(
        (str(tmp_path / name), controller, names)
        for name, controller, names in (("v2", "", V2), ("v1", "memory", V1))
    )
    files = {
        "/proc/meminfo": f"MemTotal: {16 << 20} kB\nMemAvailable: {12 << 20} kB\n",
        "/proc/self/cgroup": "0::/a/b\n4:memory:/a/b\n",
    }
    read = host_resources._read
    monkeypatch.setattr(host_resources, "GROUPS", groups)
    monkeypatch.setattr(host_resources, "_read", lambda path: files.get(path) or read(path))
    return tmp_path


def test_without_a_limit_it_is_what_the_system_says(computer: Path) -> None:
    group(computer / "v2" / "a" / "b", V2, "max", 5 * GIGABYTE)
    group(computer / "v1" / "a" / "b", V1, str(2**63 - 4096), 5 * GIGABYTE)
    assert (host_resources.memory_bytes(), host_resources.available_bytes()) == (
        16 * GIGABYTE,
        12 * GIGABYTE,
    )


@pytest.mark.parametrize(("version", "names"), [("v2", V2), ("v1", V1)])
@pytest.mark.parametrize("where", ["a/b", "a", "."])
def test_a_limit_of_any_group_around_the_process_counts(
    computer: Path, version: str, names: tuple[str, str, str], where: str
) -> None:
    group(computer / version / where, names, str(4 * GIGABYTE), 3 * GIGABYTE, idle=GIGABYTE // 2)
    assert (host_resources.memory_bytes(), host_resources.available_bytes()) == (
        4 * GIGABYTE,
        3 * GIGABYTE // 2,
    )


def test_a_group_that_is_full_leaves_nothing(computer: Path) -> None:
    group(computer / "v2", V2, str(GIGABYTE), 2 * GIGABYTE)
    assert host_resources.available_bytes() == 0


@pytest.mark.parametrize(("version", "names"), [("v2", V2), ("v1", V1)])
def test_trainers_share_three_quarters_of_what_the_group_may_have(
    computer: Path, version: str, names: tuple[str, str, str]
) -> None:
    group(computer / version / "a", names, str(4 * GIGABYTE), GIGABYTE)
    shared = settings.TrainerOptions(trainers=3)
    assert (
        settings.trainer_spec(settings.Settings(trainer_python="p"), shared).memory_bytes
        == GIGABYTE
    )
    told = settings.Settings(trainer_python="p", trainer_memory_mb=100)
    assert settings.trainer_spec(told, shared).memory_bytes == 100 * MEGABYTE


@given(st.integers(0, 1 << 40), st.integers(1, 64), st.none() | st.integers(64, 1 << 20))
def test_what_trainers_keep_leaves_room_for_the_rest(
    free: int, trainers: int, limit: int | None
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host_resources, "available_bytes", lambda: free)
        kept = settings.cache_bytes(settings.Settings(trainer_memory_mb=limit), trainers)
    room = min(free // trainers, free if limit is None else limit * MEGABYTE)
    assert 0 <= kept <= room // 2
    assert kept == 0 or kept + host_resources.TRAINER_BYTES <= room


def test_what_an_administrator_sets_holds() -> None:
    assert settings.cache_bytes(settings.Settings(cache_mb=7), 3) == 7 * MEGABYTE
