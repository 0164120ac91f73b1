"""The progress of a live run, as it follows from what its log contains."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

import pytest
from forged import forge
from hypothesis import given
from hypothesis import strategies as st
from workbench import Workbench, superuser

SET = """
UPDATE cerebro.run_log SET epochs = 256, segments = '{0}', phase = 'training', status = %s,
    started_at = clock_timestamp() - interval '60 s',
    deadline = clock_timestamp() + make_interval(secs => %s)
WHERE run_id = %s"""
CONFIG = """
INSERT INTO cerebro.config_log (run_id, mst_key, params, status, model_id, compile_params,
    fit_params, architecture)
VALUES (%s, %s, '{}', %s, 1, '', '', '{}')"""
VISITS = """
INSERT INTO cerebro.visit (run_id, epoch, mst_key, segment_id, visit_no, attempt, status,
    started_at, ended_at, rows)
SELECT %s, e, %s, 0, e, 1, 'completed', clock_timestamp() - interval '50 s', clock_timestamp(), 100
FROM generate_series(1, %s) e"""
READ = """
SELECT status, phase, epoch, extract(epoch FROM eta)::float8,
    extract(epoch FROM elapsed)::float8, share
FROM cerebro.progress WHERE run_id = %s"""


class Shown(NamedTuple):
    """A row of `cerebro.progress`."""

    status: str
    phase: str | None
    epoch: int
    eta: float | None
    elapsed: float
    share: float


class LiveRun(NamedTuple):
    """A run that nobody trains; the session holds its lock."""

    session: Workbench
    run_id: int

    def show(self, epochs: list[int], left: float | None, status: str = "running") -> Shown:
        """Return the progress of configurations that have trained so many epochs."""
        for table in ("visit", "config_log"):
            self.session.rows(f"DELETE FROM cerebro.{table} WHERE run_id = %s", self.run_id)
        self.session.rows(SET, status, left, self.run_id)
        for key, count in enumerate(epochs, 1):
            self.session.rows(CONFIG, self.run_id, key, "running" if count else "waiting")
            self.session.rows(VISITS, self.run_id, key, count)
        return Shown(*self.session.row(READ, self.run_id))


@pytest.fixture(scope="module")
def live(bench: Workbench) -> Iterator[LiveRun]:
    with closing(superuser(bench)) as session:
        yield LiveRun(session, forge(session).run_id)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=3), st.floats(0.0, 1e4))
def test_nothing_is_expected_after_the_end_of_the_budget(
    live: LiveRun, epochs: list[int], left: float
) -> None:
    shown = live.show(epochs, left)
    assert shown.eta is not None and 0 <= shown.eta <= left
    assert 0 < shown.share <= 1
    assert shown.share == pytest.approx(shown.elapsed / (shown.elapsed + shown.eta), rel=1e-6)
    assert shown.phase == "training"
    assert shown.epoch == max(1, *epochs)


def test_a_run_without_a_budget_is_expected_to_go_on_as_fast_as_before(live: LiveRun) -> None:
    shown = live.show([0, 0], None)
    assert (shown.eta, shown.share) == (None, 0.0)
    shown = live.show([128, 0], None)
    assert shown.eta is not None and shown.eta > 100
    assert shown.epoch == 128


def test_a_run_that_has_ended_is_in_no_phase(live: LiveRun) -> None:
    shown = live.show([3], 10.0, "failed")
    assert (shown.status, shown.phase, shown.eta) == ("failed", None, None)
    assert shown.share == 3 / 256
    assert live.show([256], 10.0, "completed").share == 1.0
