"""The pure parts of the table of the seeds: its rows, its curves, its ratios, and the schedule in
simulation.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trials import trials

from bench import must
from bench.bench_server import BenchServer, make_environment
from bench.job import read_result, write_result
from bench.measure import Usage
from bench.seeds import contest, curves, environments, parts, report, scale, workload
from bench.seeds.contest import (
    AVERAGE,
    JAX,
    METHODS,
    MOP,
    SERVER,
    SYNCHRONOUS,
    TASKS,
    Contest,
    WayAttempt,
)
from bench.seeds.curves import AT_REST, Point
from bench.tests.bench_job import JOB as ANY_JOB
from bench.workloads import REPORT, SMALL
from cerebro_plpy.scheduling.planning import run_duration, simulation
from cerebro_plpy.scheduling.schedule.schedule import Plan

JOB = replace(ANY_JOB, classes=10, epochs=2, configs=workload.WORKLOAD.configs, processes=2)
COSTS = st.lists(st.sampled_from([0.25, 1.0, 2.0]) | st.floats(0.01, 3), min_size=1, max_size=12)


@given(COSTS, st.integers(1, 6))
@trials(60)
def test_the_schedule_in_arrays_takes_as_long_as_the_schedule(
    costs: list[float], segments: int
) -> None:
    everywhere = tuple(range(segments))
    plan = Plan(1, everywhere, {segment: segment for segment in everywhere})
    case = simulation.Case(
        plan, {key: simulation.ConfigCost("a", cost) for key, cost in enumerate(costs)}
    )
    makespan = scale.simulate_makespan(costs, segments)
    assert makespan == simulation.simulate(case).seconds
    assert scale.find_bound(costs, segments) == pytest.approx(run_duration.lower_bound(case))
    assert makespan >= scale.find_bound(costs, segments) * (1 - 1e-9)


def test_a_size_has_a_row_and_without_visits_there_is_none() -> None:
    (cluster,) = scale.simulate([scale.Visit(1.0, 0.5), scale.Visit(0.5, 0.0)], [(2, 4)])
    assert (cluster.bound, cluster.makespan) == (4.0, 4.0)
    assert cluster.decision > 0
    assert "| 2 | 4 | 8 | 1.0000 |" in scale.report([cluster])
    assert scale.simulate([], [(2, 4)]) == []


def test_an_epoch_has_a_thousand_batches_on_average_and_no_rest() -> None:
    job_workload = workload.WORKLOAD
    sizes = [config.batch_size for config in job_workload.configs]
    assert len(job_workload.configs) == 16
    assert np.mean([job_workload.count_rows(REPORT) / size for size in sizes]) >= 1000
    assert all(
        job_workload.count_rows(name) % (size * job_workload.segments) == 0
        for size in sizes
        for name in (SMALL, REPORT)
    )


def test_pictures_are_the_same_each_time_and_those_held_out_are_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = (workload.WORKLOAD.draw_examples(SMALL) for _ in range(2))
    assert all(
        (a == b).all()
        for x, y in zip(first, second, strict=True)
        for a, b in zip(x, y, strict=True)
    )
    assert first[0][0].shape == (1280, 8, 8, 1)
    assert {*first[0][1]} <= set(range(10))
    pictures = workload.load_pictures()[0]
    monkeypatch.setattr(
        workload, "load_pictures", lambda: (pictures, np.arange(len(pictures), dtype=np.int32))
    )
    train, held_out = (
        draw(np.random.default_rng(1), 4000)[1]
        for draw in (workload.draw_training, workload.draw_validation)
    )
    assert not {*train} & {*held_out}


@given(st.integers(1, 200), st.integers(0, 15), st.integers(0, 3))
def test_batches_have_each_row_at_most_once_and_are_the_same_each_time(
    rows: int, number: int, epoch: int
) -> None:
    batches = parts.draw_batches(JOB, number, epoch, rows)
    batch_size = JOB.configs[number].batch_size
    assert batches.shape == (rows // batch_size, batch_size)
    assert len(np.unique(batches)) == batches.size
    assert batches.size == 0 or batches.max() < rows
    assert (batches == parts.draw_batches(JOB, number, epoch, rows)).all()


def test_a_step_of_data_parallelism_is_a_step_of_keras() -> None:
    """The loops of these peers have the loss, the penalties and the optimizer that all others
    have.
    """
    # A process of its own, because the number of TensorFlow's threads is set once per process.
    command = [sys.executable, "-m", "bench.tests.data_parallel_steps", "0", "12"]
    assert subprocess.run(command, cwd=environments.CLONE, env=make_environment()).returncode == 0


def test_curves_survive_the_way(tmp_path: Path) -> None:
    points = {1: [Point(1.0, 0.5, 0.25), Point(2.0, 0.25, 0.5)]}
    write_result(curves.make_result(points, 7, visits=[[1.0, 0.5]]), tmp_path / "result")
    extra = read_result(tmp_path / "result")
    assert curves.read_curves(extra) == points
    assert (extra.scores, extra.moved_bytes) == ({1: (0.25, 0.5)}, 7)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=5), st.floats(0, 1)
)
def test_an_accuracy_is_reached_at_the_end_of_the_first_epoch_that_has_it(
    pairs: list[Any], accuracy: float
) -> None:
    curve_pair = {
        key: [Point(at + key, 0, pair[key]) for at, pair in enumerate(pairs)] for key in (0, 1)
    }
    when = curves.find_time(curve_pair, accuracy)
    means = curves.average_epochs(curve_pair)
    assert (when is None) == (max(means) < accuracy)
    if when is not None:
        at = curves.list_ends(curve_pair).index(when)
        assert means[at] >= accuracy
        assert all(mean < accuracy for mean in means[:at])


def make_attempt(
    wall: float, accuracies: tuple[float, float] = (0.5, 0.8), **more: Any
) -> WayAttempt:
    """It began at 100 s, and its epochs ended one after another."""
    points = [
        Point(100 + wall * end, 0.1, one) for end, one in zip((0.5, 1.0), accuracies, strict=True)
    ]
    curves_by_config = {1: points, 2: points}
    extra = {AT_REST: 1 << 20, **more}
    moved_bytes = extra.pop("moved_bytes", 2 << 20)
    return WayAttempt(
        began=100.0,
        usage=usage(wall),
        result=curves.make_result(curves_by_config, moved_bytes, **extra),
    )


def usage(wall: float) -> Usage:
    return Usage(wall=wall, cpu=wall, memory=1, trainer=0)


def make_contest() -> Contest:
    results = Contest(job=JOB, scale=SMALL, settings={"jit_compile": True})
    ours = {
        turn: make_attempt(10.0, (0.7, accuracy), moved_bytes=1 << 20)
        for turn, accuracy in enumerate((0.8, 0.82, 0.81))
    }
    ray = {
        turn: make_attempt(20.0, (0.7, accuracy), rows_at_rest=4 << 20)
        for turn, accuracy in enumerate((0.81, 0.8, 0.82))
    }
    results.attempts = {
        MOP.name: ours,
        AVERAGE.name: {0: make_attempt(10.0, (0.3, 0.6))},
        TASKS[0].name: {0: make_attempt(30.0)},
        TASKS[2].name: ray,
        SYNCHRONOUS.name: {0: make_attempt(40.0, moved_bytes=100 << 20)},
        SERVER.name: {
            0: WayAttempt(
                began=100.0, usage=usage(60), result=None, reason="stopped after 60 s", stopped=True
            )
        },
    }
    return results


def test_ratios_are_of_the_fastest_tasks_and_of_what_succeeded() -> None:
    rows = {row[0]: row[2:] for row in must.make_seed_rows(make_contest())}
    assert rows[report.TASKS_WALL] == ["0.50x", "yes"]
    assert rows[report.SYNCHRONOUS_WALL] == ["0.25x", "yes"]
    assert rows[report.SERVER_WALL] == [
        "not measured: stopped after 60 s, so its wall is at least 6.0 times ours",
        "",
    ]
    assert rows[report.AVERAGE_TIME] == ["0.50x", "yes"]
    assert rows[report.PLAIN_TIME] == ["not measured: nobody tried it", ""]
    assert rows[report.ROWS] == ["0.25x", "yes"]
    assert rows[report.MOVED] == ["0.0100x", "yes"]
    assert rows[report.NOISE][1] == "yes"


def test_in_walls_alone_the_faster_framework_stands_for_hopping() -> None:
    results = make_contest()
    rows_before = {row[0]: row for row in must.make_seed_rows(make_contest())}
    results.attempts[JAX.name] = {0: make_attempt(8.0)}
    rows_after = {row[0]: row for row in must.make_seed_rows(results)}
    walls = {report.SYNCHRONOUS_WALL: "0.20x", report.TASKS_WALL: "0.40x"}
    assert {name: rows_after[name][2] for name in walls} == walls
    assert "7.5 times" in rows_after[report.SERVER_WALL][2]
    unchanged = rows_before.keys() - walls.keys() - {report.SERVER_WALL}
    assert {name: rows_after[name] for name in unchanged} == {
        name: rows_before[name] for name in unchanged
    }


def test_by_one_seed_nobody_can_say_what_noise_is() -> None:
    results = make_contest()
    results.attempts[MOP.name] = {0: results.attempts[MOP.name][0]}
    assert report.measure_all(results)[report.NOISE] == (
        None,
        "too few seeds, or never as accurate",
    )
    assert "of 3 seeds" in report.report(make_contest(), 60) and "seeds" not in report.report(
        results, 60
    )


def test_an_accuracy_that_hopping_never_has_is_said_so() -> None:
    results = make_contest()
    results.attempts[AVERAGE.name] = {0: make_attempt(10.0, (0.3, 0.99))}
    assert report.measure_all(results)[report.AVERAGE_TIME][0] is None


def test_the_table_has_all_ways_and_says_why_one_is_not_measured() -> None:
    text = report.report(make_contest(), 60)
    costs = text.partition("Mean accuracy")[0]
    assert all(f"| {method.name} |" in costs for method in METHODS)
    assert "| parameter server, TensorFlow | stopped after 60 s |" in costs
    assert (
        "| model hopping, cerebro_db | 10.00 | 10.00 | 1.00 | 0.5 | 1.00 | 0.00 | 1.77 | 250 |"
        in costs
    )
    assert "| averaging, cerebro_db | 0.3000, 5.0 s | 0.6000, 10.0 s (0.6000) |" in text


def test_each_way_is_a_module_and_has_requirements() -> None:
    for method in METHODS:
        assert importlib.util.find_spec(method.module) is not None
        if method.environment:
            files = environments._list_files(
                environments.REQUIREMENTS / f"{method.environment}.txt"
            )
            assert any("tensorflow" in file.name for file in files)


def test_what_cannot_be_installed_is_not_measured_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(environments.NotInstalled, match="no such package"):
        environments._run([sys.executable, "-c", "raise SystemExit('Error: no such package')"])

    def refused(peer: str) -> None:
        raise environments.NotInstalled(f"{peer} is not there")

    monkeypatch.setattr(environments, "find_interpreter", refused)
    at = BenchServer(url="u", superuser_url="u", pid=0, log=tmp_path, folder=tmp_path)
    attempt = contest.run_attempt(at, Contest(job=JOB, scale=SMALL, settings={}), TASKS[0], 0, 60)
    assert (attempt.result, attempt.reason) == (None, "not installed: celery is not there")
    assert list(tmp_path.iterdir()) == []
