"""How a session gives way, by what the kernel has of its process."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
from processes import CHOSEN_SLICES, slice_of

from cerebro_plpy.database.sessions import cpu_priority
from cerebro_trainer import process_isolation


@pytest.mark.parametrize(
    ("told", "written"),
    [
        ("/autogroup-7 nice 0\n", "5"),
        ("/autogroup-7 nice -4\n", "5"),
        ("/autogroup-7 nice 10\n", ""),
        ("", ""),  # no group was made of it
    ],
)
def test_a_group_is_weighed_where_there_is_one_that_is_not_as_nice(
    tmp_path: Path, told: str, written: str
) -> None:
    group = tmp_path / "autogroup"
    group.write_text(told)
    cpu_priority._lower_group_priority(str(group))
    assert group.read_text() == told + written


def test_nothing_is_to_be_done_for_a_process_that_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert cpu_priority.lower_priority(process.pid)


def test_a_process_becomes_nicer_and_stays_so() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True
    ) as process:
        while not cpu_priority.lower_priority(process.pid):
            pass
        usual = os.getpriority(os.PRIO_PROCESS, 0)
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == max(cpu_priority.NICENESS, usual)
        assert not CHOSEN_SLICES or slice_of(process.pid) == cpu_priority.SLICE_NS
        os.setpriority(os.PRIO_PROCESS, process.pid, max(15, usual))
        assert cpu_priority.lower_priority(process.pid)
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == max(15, usual)
        process.kill()


@pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="of one processor nothing can be spared"
)
def test_a_beginning_is_apart_and_over_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    every = os.sched_getaffinity(os.getppid())
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        usual = os.sched_getaffinity(process.pid)
        cpu_priority.StartupCores((process.pid,), ()).release()
        assert os.sched_getaffinity(process.pid) == usual, "nothing is spared"
        startup_cores = cpu_priority.StartupCores((process.pid,), {max(usual)})
        startup_cores.release_if_over()
        assert os.sched_getaffinity(process.pid) == {max(usual)}
        monkeypatch.setattr("time.monotonic", lambda: math.inf)
        startup_cores.release_if_over()
        assert os.sched_getaffinity(process.pid) == every
        process.kill()
    cpu_priority.StartupCores((process.pid,), {max(usual)}).release()  # of one that is gone


def test_sessions_ask_for_slices_as_trainers_do() -> None:
    """Where a session waits for trainers, others may wait for what it has locked."""
    assert cpu_priority.SLICE_NS == process_isolation.SLICE_NS


@pytest.mark.parametrize(("niceness", "yields"), [(0, 0), (cpu_priority.NICENESS, 4), (19, 4)])
def test_who_gives_way_pauses_so_often_at_most(
    monkeypatch: pytest.MonkeyPatch, niceness: int, yields: int
) -> None:
    seen, now = list[float](), 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(os, "getpriority", lambda which, who: niceness)
    monkeypatch.setattr(os, "sched_yield", lambda: seen.append(now))
    pauses = cpu_priority.CpuYield()
    for _ in range(17):  # statements of a quarter of the time
        now += cpu_priority.YIELD_SECONDS / 4 + 1e-9
        pauses.yield_cpu()
    assert len(seen) == yields
    assert all(later - earlier >= cpu_priority.YIELD_SECONDS for earlier, later in pairwise(seen))
