"""A session that gives way leaves the processor to others now and then, and no other session does."""

from __future__ import annotations

import os
import time
from itertools import pairwise

import pytest

from cerebro_plpy.database.courtesy import NICENESS, PAUSE_SECONDS, Pauses


@pytest.mark.parametrize(("niceness", "yields"), [(0, 0), (NICENESS, 4), (19, 4)])
def test_who_gives_way_pauses_so_often_at_most(monkeypatch: pytest.MonkeyPatch, niceness: int, yields: int) -> None:
    seen, now = list[float](), 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(os, "getpriority", lambda which, who: niceness)
    monkeypatch.setattr(os, "sched_yield", lambda: seen.append(now))
    pauses = Pauses()
    for _ in range(17):  # statements of a quarter of the time
        now += PAUSE_SECONDS / 4 + 1e-9
        pauses.pause()
    assert len(seen) == yields
    assert all(later - earlier >= PAUSE_SECONDS for earlier, later in pairwise(seen))
