"""Signs of life: they go on while there is nothing to do, and while something is computed; else all stands still."""

from __future__ import annotations

import mmap
import os
import threading
import time
from collections.abc import Iterator

import pytest
from processes import eventually

from cerebro_trainer.wire import pulse


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[pulse.Pulse, mmap.mmap]]:
    """A pulse that beats a hundred times a second, and the memory that it shares."""
    monkeypatch.setattr(pulse, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(pulse, "LEAST_SECONDS", 0.05)  # the tests' own thread may do a little
    descriptor = os.memfd_create("pulse")
    os.ftruncate(descriptor, mmap.PAGESIZE)
    with mmap.mmap(descriptor, mmap.PAGESIZE) as shared:
        yield pulse.Pulse(descriptor), shared
    os.close(descriptor)


def beats(shared: mmap.mmap) -> bool:
    """Whether the byte changes in half a second."""
    before = shared[0]
    time.sleep(0.5)
    return bool(shared[0] != before)


def test_it_beats_while_there_is_nothing_to_do(page: tuple[pulse.Pulse, mmap.mmap]) -> None:
    alive, shared = page
    eventually(lambda: shared[0])
    alive.follow(lambda: False)
    eventually(lambda: beats(shared))


def test_it_stops_when_all_stands_still_and_beats_while_something_is_computed(
    page: tuple[pulse.Pulse, mmap.mmap],
) -> None:
    alive, shared = page
    alive.follow(lambda: True)
    eventually(lambda: not beats(shared))
    ended = threading.Event()

    def compute() -> None:
        while not ended.is_set():
            sum(range(1000))

    thread = threading.Thread(target=compute)
    thread.start()
    eventually(lambda: beats(shared))
    ended.set()
    thread.join()
    eventually(lambda: not beats(shared))
