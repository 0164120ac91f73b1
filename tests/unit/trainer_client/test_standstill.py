"""A process that a backend waits for stands still if it was stopped, or sleeps; not while it
works.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from processes import eventually

from cerebro_plpy.errors import TrainerFailure
from cerebro_plpy.trainer_client.process import heartbeat, standstill
from cerebro_plpy.trainer_client.process.heartbeat import Heartbeat
from cerebro_plpy.trainer_client.process.standstill import Standstill, is_stopped, read_state


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standstill, "PAUSE_SECONDS", 1e-9)
    monkeypatch.setattr(standstill, "STOPPED_SECONDS", 3e-9)
    monkeypatch.setattr(standstill, "ASLEEP_SECONDS", 10e-9)
    monkeypatch.setattr(heartbeat, "PAUSE_SECONDS", 0.0)


@pytest.fixture(params=["import time; time.sleep(300)", "while True: pass"], ids=["asleep", "busy"])
def process(request: pytest.FixtureRequest) -> Iterator[tuple[int, bool]]:
    """A process, and whether it sleeps."""
    asleep = "sleep" in request.param
    with subprocess.Popen([sys.executable, "-c", request.param]) as started:
        eventually(lambda: read_state(started.pid) == ("S" if asleep else "R"))
        yield started.pid, asleep
        started.kill()


def looks(pid: int) -> list[bool]:
    watched = Standstill()
    return [watched.has_stalled(pid) for _ in range(20)]


def test_what_is_stopped_or_asleep_stands_still_and_what_works_does_not(
    process: tuple[int, bool],
) -> None:
    pid, asleep = process
    assert any(looks(pid)) == asleep
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: is_stopped(pid))
    found = looks(pid)
    assert found.index(True) == 3, "sooner than one that sleeps"
    os.kill(pid, signal.SIGCONT)
    eventually(lambda: not is_stopped(pid))


def test_nothing_is_said_of_a_process_that_is_gone() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert read_state(gone.pid) is None and not is_stopped(gone.pid) and not any(looks(gone.pid))


def test_a_trainer_that_is_stopped_while_it_starts_is_given_up_like_any_other(
    process: tuple[int, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not only after the time that a framework may take to load."""
    pid, _ = process
    monkeypatch.setattr(heartbeat, "SILENT_SECONDS", 0.0)
    found = Heartbeat()
    found.check(pid, is_starting=True)
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: is_stopped(pid))
    with pytest.raises(TrainerFailure, match="no sign of life for 0 seconds"):
        found.check(pid, is_starting=True)
    found.close()
    os.close(found.descriptor)
