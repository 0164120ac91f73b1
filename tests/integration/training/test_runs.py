"""Model hopping by what the log says of real runs: its laws hold whatever the numbers of everything
are.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from workbench import Workbench, setting, several

from cerebro_plpy.trainer_client.process.host_resources import count_cores


@dataclass(frozen=True)
class Shape:
    """How large a run is, and how it is scheduled."""

    configs: int
    segments: int
    workers: int
    epochs: int = 3
    schedule: str = "longest"
    frequency: int = 2

    @property
    def evaluations(self) -> int:
        """Epochs that end with an evaluation."""
        return len(
            {e for e in range(1, self.epochs + 1) if e % self.frequency == 0} | {self.epochs}
        )


SHAPES = {
    "fewer configs than segments": Shape(configs=2, segments=3, workers=2),
    "more configs than segments": Shape(configs=5, segments=2, workers=2),
    "one segment": Shape(configs=3, segments=1, workers=2),
    "one worker": Shape(configs=3, segments=3, workers=1),
    "in rotation, more configs": Shape(
        configs=5, segments=3, workers=2, schedule="rotation", frequency=1
    ),
}

SLOW = ("one segment", "one worker")
PARAMS = [pytest.param(name, marks=pytest.mark.long if name in SLOW else ()) for name in SHAPES]


@dataclass(frozen=True)
class Run:
    """A finished run, with what was asked of it."""

    bench: Workbench
    run_id: int
    shape: Shape


@pytest.fixture(scope="module", params=PARAMS)
def run(bench: Workbench, request: pytest.FixtureRequest) -> Run:
    shape = SHAPES[request.param]
    name = f"s{list(SHAPES).index(request.param)}"
    bench.pack(f"{name}_packed", shape.segments)
    bench.configure(f"{name}_configs", several(shape.configs))
    run_id = bench.fit(
        f"{name}_packed",
        f"{name}_model",
        f"{name}_configs",
        shape.epochs,
        workers=shape.workers,
        schedule=shape.schedule,
        metrics_compute_frequency=shape.frequency,
        seed=5,
    )
    return Run(bench, run_id, shape)


@pytest.mark.postgresql("there each segment needs a worker of its own")
def test_workers_that_would_have_nothing_to_do_leave_their_cores_to_the_others(
    bench: Workbench,
) -> None:
    """Unless only all of them together have room for the rows."""
    bench.pack("alone_packed", 2)
    bench.configure("alone_configs", several(1))

    def workers_and_threads(output: str) -> tuple[int, int]:
        run_id = bench.fit("alone_packed", output, "alone_configs", 1)
        asked = (
            "SELECT count(DISTINCT worker_pid), max(threads) FROM cerebro.visit WHERE run_id = %s"
        )
        return bench.rows(asked, run_id)[0]

    assert workers_and_threads("alone") == (1, count_cores())
    with setting(bench, "cache_mb", "0"):
        assert workers_and_threads("alone_streamed") == (2, max(1, count_cores() // 2))


@pytest.mark.checklist(19)
def test_each_config_completes_each_segment_once_in_every_epoch(run: Run) -> None:
    shape = run.shape
    found = run.bench.rows(
        "SELECT mst_key, epoch, segment_id, count(*) FROM cerebro.visit WHERE run_id = %s AND "
        "status = 'completed' GROUP BY 1, 2, 3",
        run.run_id,
    )
    assert len(found) == shape.configs * shape.epochs * shape.segments
    assert {count for *_, count in found} == {1}
    assert len({segment for _, _, segment, _ in found}) == shape.segments


def test_every_visit_ended_and_says_what_it_did(run: Run) -> None:
    ended, rows, tables = run.bench.row(
        "SELECT bool_and(status = 'completed' AND started_at < ended_at AND attempt = 1 AND error "
        "IS NULL), sum(rows), bool_and(state_bytes > 0 AND form IS NOT NULL AND threads >= 1 AND "
        "loss > 0) FROM cerebro.visit WHERE run_id = %s",
        run.run_id,
    )
    total = run.bench.value("SELECT count(*) FROM points")
    assert (ended, tables) == (True, True)
    assert rows == total * run.shape.configs * run.shape.epochs


def test_a_config_is_in_one_place_at_a_time(run: Run) -> None:
    numbers = run.bench.rows(
        "SELECT array_agg(visit_no ORDER BY visit_no), array_agg(visit_no ORDER BY started_at),"
        " array_agg(epoch ORDER BY visit_no) FROM cerebro.visit WHERE run_id = %s GROUP BY mst_key",
        run.run_id,
    )
    visits = run.shape.epochs * run.shape.segments
    for by_number, by_time, epochs in numbers:
        assert by_number == by_time == list(range(1, visits + 1))
        assert epochs == [1 + n // run.shape.segments for n in range(visits)]
    assert (
        overlaps(run, "a.mst_key = b.mst_key AND (a.kind, b.kind) <> ('evaluate', 'evaluate')") == 0
    )


def test_a_worker_serves_one_config_at_a_time(run: Run) -> None:
    """But for those that it trains in one job, which end together. A segment serves one at a time
    where configs hop; by `longest` they stay with their workers, which have all rows here."""
    together = run.bench.value(
        "SELECT count(*) FROM cerebro.visit a JOIN cerebro.visit b USING (run_id, worker_pid)"
        " WHERE run_id = %s AND (a.mst_key, a.visit_no) < (b.mst_key, b.visit_no)"
        " AND a.started_at < b.ended_at AND b.started_at < a.ended_at AND a.ended_at <> b.ended_at",
        run.run_id,
    )
    assert together == 0
    assert run.shape.schedule == "longest" or overlaps(run, "a.segment_id = b.segment_id") == 0


def test_evaluations_follow_the_epochs_they_are_of(run: Run) -> None:
    shape = run.shape
    found = run.bench.rows(
        "SELECT e.mst_key, e.epoch, e.segment_id FROM cerebro.evaluation e WHERE run_id = %s AND "
        "status = 'completed'",
        run.run_id,
    )
    assert len(found) == len(set(found)) == shape.configs * shape.evaluations * shape.segments
    early = run.bench.value(
        "SELECT count(*) FROM cerebro.evaluation e JOIN cerebro.visit v USING (run_id, mst_key)"
        " WHERE run_id = %s AND ((v.epoch <= e.epoch AND e.started_at < v.ended_at)"
        " OR (v.epoch > e.epoch AND v.started_at < e.ended_at))",
        run.run_id,
    )
    assert early == 0, "the weights stand still while they are evaluated"


def test_workers_work_at_the_same_time(run: Run) -> None:
    shape = run.shape
    used = run.bench.value(
        "SELECT count(DISTINCT worker_pid) FROM cerebro.visit WHERE run_id = %s", run.run_id
    )
    # On Greenplum each segment has a session of its own; so many of them as there are workers work
    # at a time.
    assert used == (shape.segments if run.bench.greenplum else min(shape.workers, shape.segments))
    together = overlaps(
        run, "a.mst_key <> b.mst_key AND a.ended_at <> b.ended_at"
    )  # but in one job
    assert (together > 0) == (min(shape.workers, shape.segments) > 1)


def test_the_run_and_its_configs_say_that_they_completed(run: Run) -> None:
    bench, run_id, shape = run.bench, run.run_id, run.shape
    assert bench.row(
        "SELECT status, epochs, cardinality(segments), error, ended_at > started_at FROM "
        "cerebro.run WHERE run_id = %s",
        run_id,
    ) == ("completed", shape.epochs, shape.segments, None, True)
    configs = bench.rows(
        "SELECT status, epochs, reason FROM cerebro.config WHERE run_id = %s", run_id
    )
    assert configs == [("completed", shape.epochs, None)] * shape.configs


@pytest.mark.parametrize(
    "view", ["run", "config", "leaderboard", "progress", "timeline", "learning_curve"]
)
@pytest.mark.parametrize("extreme", ["min", "max"])
def test_a_condition_on_a_view_holds_inside_a_comparison(run: Run, view: str, extreme: str) -> None:
    found = run.bench.rows(
        "SELECT DISTINCT v.run_id FROM cerebro.visit v"
        f" WHERE v.run_id = (SELECT {extreme}(w.run_id) FROM cerebro.{view} w WHERE w.run_id = %s)",
        run.run_id,
    )
    assert found == [(run.run_id,)]


def overlaps(run: Run, condition: str) -> int:
    """How many pairs of different intervals of the timeline that fulfil the condition overlap."""
    query = (
        "WITH t AS (SELECT row_number() OVER (ORDER BY started_at, segment_id, mst_key, kind) AS "
        "n, *           FROM cerebro.timeline WHERE run_id = %s) SELECT count(*) FROM t a JOIN t "
        "b ON a.n < b.n AND a.started_at < b.ended_at AND b.started_at < a.ended_at WHERE "
        f"{condition}"
    )
    return int(run.bench.value(query, run.run_id))


@pytest.fixture(scope="module")
def mixed(bench: Workbench) -> int:
    """A run of one config with long visits and three with short ones, on two workers."""
    bench.pack("mixed_packed", 2)
    bench.configure("mixed_configs", several(3), ["batch_size=8"])
    bench.rows(
        "INSERT INTO mixed_configs (model_id, compile_params, fit_params) SELECT model_id, "
        "compile_params, 'batch_size=1,epochs=60' FROM mixed_configs WHERE mst_key = 1"
    )
    return bench.fit("mixed_packed", "mixed_model", "mixed_configs", 2, workers=2)


LONG = "(SELECT max(mst_key) FROM cerebro.config WHERE run_id = %s)"


@pytest.mark.long
def test_a_long_visit_holds_up_nobody_else_s_hop(bench: Workbench, mixed: int) -> None:
    most = bench.value(
        "SELECT max((SELECT count(*) FROM cerebro.visit o WHERE o.run_id = v.run_id AND o.mst_key "
        "<> v.mst_key             AND o.started_at > v.started_at AND o.ended_at < v.ended_at)) "
        f"FROM cerebro.visit v WHERE v.run_id = %s AND v.mst_key = {LONG}",
        mixed,
        mixed,
    )
    assert most >= 3, "with a barrier at each hop at most one other visit fits into a visit"


@pytest.mark.long
def test_a_long_epoch_holds_up_nobody_else_s_next_epoch(bench: Workbench, mixed: int) -> None:
    ahead = bench.value(
        "SELECT count(*) FROM cerebro.visit o JOIN cerebro.visit v USING (run_id) WHERE v.run_id "
        f"= %s AND v.mst_key = {LONG} AND o.epoch > v.epoch AND o.started_at < v.ended_at AND "
        "o.mst_key <> v.mst_key",
        mixed,
        mixed,
    )
    assert ahead > 0
