"""Few rows go to one segment, and several workers train on it all the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from workbench import Workbench

CALL = (
    "'few', 'y', 'few', models => '{linear}', configs => 4, epochs => 30, workers => 2, "
    "ensemble => 1, seed => 1, refit => 'none'"
)


@pytest.fixture(scope="module")
def run_id(bench: Workbench) -> Iterator[int]:
    bench.rows(
        "CREATE TABLE few AS SELECT n AS id, n::real AS x, (3 * n + 1)::real AS y "
        "FROM generate_series(1, 300) n"
    )
    yield bench.value(f"SELECT max(run_id) FROM cerebro.train({CALL})")
    bench.rows("SELECT cerebro.drop_model('few')")


@pytest.mark.postgresql("on Greenplum, a worker has the rows of its own segment")
def test_several_workers_train_on_the_segment_of_few_rows(bench: Workbench, run_id: int) -> None:
    segments, workers = bench.row(
        "SELECT count(DISTINCT segment_id), count(DISTINCT worker_pid) FROM cerebro.visit "
        "WHERE run_id = %s",
        run_id,
    )
    assert (segments, workers) == (1, 2)
    assert bench.value("SELECT count(*) FROM cerebro.leaderboard WHERE run_id = %s", run_id) == 4


@pytest.mark.postgresql("on Greenplum, a worker has the rows of its own segment")
def test_rows_of_one_segment_are_packed_again_as_they_were(bench: Workbench, run_id: int) -> None:
    """The version is repeated to the bit from the rows of its source."""
    for side in ("training", "validation"):
        bench.rows(f"DROP TABLE cerebro_state.r{run_id}_{side}")
    checks: dict[str, bool] = dict(bench.rows("SELECT what, ok FROM cerebro.verify('few')"))
    assert (checks["packed rows"], checks["state"]) == (False, True), checks
