"""Signs of life: they go on while there is nothing to do, and while something is computed; else all
stands still.
"""

from __future__ import annotations

import mmap
import os
import threading
from collections.abc import Callable, Iterator

import pytest

from cerebro_trainer.wire import heartbeat

LONGEST_WAIT = 120.0


class SteppedTime:
    """The module `time` for the thread of a pulse, which goes on only when a test says so.

    A daemon, it sleeps for ever once the test is over.
    """

    def __init__(self) -> None:
        self.used = 0.0
        """Processor seconds of the other threads."""
        self._slept = threading.Semaphore(0)
        self._woken = threading.Semaphore(0)

    def process_time(self) -> float:
        return self.used

    def thread_time(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        assert seconds == heartbeat.BEAT_SECONDS
        self._slept.release()
        self._woken.acquire()

    def await_sleep(self) -> None:
        assert self._slept.acquire(timeout=LONGEST_WAIT)

    def wake(self) -> None:
        self._woken.release()


class Heart:
    """A pulse, and the memory that it shares."""

    def __init__(self, time: SteppedTime, descriptor: int, shared: mmap.mmap) -> None:
        self.time = time
        self.heartbeat = heartbeat.Heartbeat(descriptor)
        self._shared = shared
        time.await_sleep()

    def beats(self) -> bool:
        """Let the thread look once, and return whether the byte changes."""
        before = self._shared[0]
        self.time.wake()
        self.time.await_sleep()
        return self._shared[0] != before

    def compute(self, seconds: float) -> None:
        self.time.used += seconds


@pytest.fixture
def heart(monkeypatch: pytest.MonkeyPatch) -> Iterator[Heart]:
    time = SteppedTime()
    monkeypatch.setattr(heartbeat, "time", time)
    descriptor = os.memfd_create("pulse")
    os.ftruncate(descriptor, mmap.PAGESIZE)
    with mmap.mmap(descriptor, mmap.PAGESIZE) as shared:
        yield Heart(time, descriptor, shared)
    os.close(descriptor)


@pytest.mark.parametrize("is_active", [None, lambda: False], ids=["not watched", "idle"])
def test_it_beats_while_there_is_nothing_to_do(
    heart: Heart, is_active: Callable[[], bool] | None
) -> None:
    if is_active:
        heart.heartbeat.watch(is_active)
    assert all(heart.beats() for _ in range(300)), "the byte overflows"


def test_it_stops_when_all_stands_still_and_beats_while_something_is_computed(heart: Heart) -> None:
    heart.heartbeat.watch(lambda: True)
    assert not heart.beats()
    heart.compute(heartbeat.MIN_CPU_SECONDS)
    assert heart.beats()
    assert not heart.beats(), "what was computed counts once"


def test_what_computes_little_is_noticed_at_last(heart: Heart) -> None:
    heart.heartbeat.watch(lambda: True)
    seen = []
    for _ in range(4):
        heart.compute(heartbeat.MIN_CPU_SECONDS / 2)
        seen.append(heart.beats())
    assert seen == [False, True, False, True]
