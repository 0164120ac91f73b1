"""A call that statement_timeout has ended says how it can be finished."""

from __future__ import annotations

import time

import pytest
from followed_hints import read_ways

from cerebro_plpy.database.call_limit import CallLimit


@pytest.mark.parametrize(
    ("elapsed", "seconds", "passed"), [(10, 5, True), (10, 0, False), (1, 3600, False)]
)
def test_a_limit_passes_after_its_time(elapsed: float, seconds: float, passed: bool) -> None:
    limit = CallLimit()
    assert not limit.has_passed()
    limit.begin(time.time() - elapsed, seconds, "a while")
    assert limit.has_passed() == passed


def test_a_run_that_is_logged_is_resumed() -> None:
    limit = CallLimit()
    limit.begin(0.0, 4.0, "4s")
    limit.run_id = 7
    limit.background = "background => true"
    first, second = read_ways(limit.hint)
    assert first.statements == ("SET statement_timeout = 0;", "SELECT cerebro.resume(7);")
    assert second.arguments == {"background": "true"}
    assert not second.statements
