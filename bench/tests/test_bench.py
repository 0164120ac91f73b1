"""Tests of the pure parts of `make bench`, which turn measurements into numbers and text."""

from __future__ import annotations

import doctest
import importlib
import math
import os
import re
import subprocess
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import greenplum
import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trials import trials

from bench import (
    calibration,
    courses,
    first_model,
    generated_tables,
    limits,
    measure,
    must,
    searching,
    tables,
    tree_predictions,
)
from bench.bench_server import BenchServer
from bench.breakdown import PHASES, break_down, break_down_cpu, read_steps
from bench.contenders import Attempt, Loops
from bench.copying import SIGNATURE, decode, encode
from bench.document import DOCUMENT, merge_rows, replace_section
from bench.job import Result, read_job, read_result, write_job, write_result
from bench.madlib_hop import list_hops
from bench.must import Target
from bench.pools import Curve, Pool
from bench.ratios import Span, compute_ratios
from bench.tests.bench_job import JOB
from bench.turns import WorkloadResults, is_out
from bench.workloads import REPORT, SMALL, WORKLOADS
from cerebro_plpy.configs.search_space.distributions import Range
from cerebro_plpy.preprocessing.scoring.calibration import Calibration
from cerebro_plpy.preprocessing.scoring.error_quantiles import ErrorQuantiles
from cerebro_plpy.scheduling.search.promotion_rules import Asha, Stepwise

FOLDER = Path(__file__).parents[1]
MODULES = [path for path in FOLDER.rglob("*.py") if path.parent != Path(__file__).parent]
WITH_EXAMPLES = sorted(
    ".".join(path.relative_to(FOLDER).with_suffix("").parts)
    for path in MODULES
    if ">>> " in path.read_text()
)
BEGAN = datetime(2026, 5, 4, 12, 0, 0)
positive = st.floats(1e-3, 1e3)


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_the_examples_in_docstrings_hold(module: str) -> None:
    result = doctest.testmod(importlib.import_module(f"bench.{module}"))
    assert result.attempted > 0
    assert result.failed == 0


@given(st.dictionaries(st.integers(0, 5), positive, min_size=1), positive)
def test_a_ratio_lies_between_its_ends_and_scales(values: dict[int, float], factor: float) -> None:
    span = compute_ratios({number: value * factor for number, value in values.items()}, values)
    assert span is not None
    assert span.least <= span.middle <= span.most
    assert span.middle == pytest.approx(factor)


def test_repetitions_without_a_partner_give_no_ratio() -> None:
    assert compute_ratios({0: 1.0}, {1: 1.0}) is None


@given(
    st.integers(1, 5),
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.integers(0, 2**32 - 1),
)
def test_rows_survive_the_binary_format(rows: int, shape: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, *shape)).astype(np.float32)
    y = rng.integers(0, 9, size=rows).astype(np.int32)
    decoded = decode(encode((x, y)))
    assert decoded[0].tobytes() == x.tobytes() and decoded[0].shape == x.shape
    assert decoded[1].tobytes() == y.tobytes()


def test_rows_of_unequal_shapes_are_refused() -> None:
    one, two = (
        encode((np.ones(shape, np.float32), np.zeros(1, np.int32)))
        for shape in ((1, 2, 3), (1, 3, 2))
    )
    with pytest.raises(ValueError, match="shape"):
        decode(one[:-2] + two[len(SIGNATURE) :])


@given(st.integers(1, 9), st.integers(1, 5))
def test_every_configuration_visits_every_segment_once_an_epoch(
    configs: int, segments: int
) -> None:
    epoch = list_hops(configs, segments)
    visits = [visit for hop in epoch for visit in hop]
    assert sorted(visits) == [
        (config, segment) for config in range(configs) for segment in range(segments)
    ]
    for hop in epoch:
        assert (
            len({config for config, _ in hop}) == len({segment for _, segment in hop}) == len(hop)
        )


def entry(pid: int, end: float, seconds: float, statement: str) -> str:
    at = datetime.fromtimestamp(BEGAN.timestamp() + end).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    return (
        f"{at} UTC [{pid}] ann@flowers LOG:  duration: {1000 * seconds:.3f} ms  statement: "
        f"{statement}\n"
    )


def visit(pid: int, at: float, seconds: float, config: int = 1) -> str:
    """A visit that begins at a time: a second to read the state, so many to train, a second to
    write.
    """
    job = (
        f'SELECT cerebro_internal.job_begin(\'{{"job": "train", "order": {{"mst_key": '
        f"{config}}}}}');\nSELECT 1"
    )
    return (
        entry(pid, at + 1, 1, "INSERT INTO cerebro.visit (run_id)\nVALUES (1)")
        + entry(pid, at + 1 + seconds, seconds, job)
        + entry(
            pid,
            at + 2 + seconds,
            1,
            "TRUNCATE s; INSERT INTO s SELECT cerebro_internal.state_chunks(1)",
        )
    )


def test_the_breakdown_of_a_log() -> None:
    log = (
        entry(7, 2, 1, "SELECT cerebro_internal.trainer_start('{}')")
        + entry(7, 3, 1, "SELECT cerebro_internal.dataset_open('d', 1)")
        + visit(7, 3, 6)
        + visit(7, 11, 2)
        + visit(7, 20, 2)
        + entry(8, 30, 29, "SELECT madlib_fit_multiple_model('a', 'b')")
    )
    began = BEGAN.timestamp()
    phases = break_down(read_steps(log), began, began + 30)
    expected = {"start-up": 2, "data": 1, "train": 6, "compile": 4, "hop": 6, "idle": 5, "end": 6}
    assert phases == pytest.approx({phase: expected.get(phase, 0) for phase in PHASES}, abs=0.01)

    corrected = break_down(read_steps(log), began, began + 30, training=5.0)
    assert (corrected["train"], corrected["hop"]) == pytest.approx((5, 7), abs=0.01)


def test_what_is_stored_beside_a_visit_is_no_hop() -> None:
    begin = (
        'SELECT cerebro_internal.job_begin(\'{"job": "train", "order": {"mst_key": 1}}\'); SELECT '
        "cerebro_internal.job_start()"
    )
    log = (
        entry(7, 1, 1, "SELECT cerebro_internal.trainer_start('{}')")
        + entry(7, 2, 1, begin)
        + entry(7, 5, 3, "TRUNCATE s; INSERT INTO s SELECT cerebro_internal.state_chunks(1)")
        + entry(7, 8, 3, "SELECT cerebro_internal.job_finish()")
        + entry(7, 9, 1, begin)
        + entry(7, 21, 12, 'SELECT cerebro_internal.job_series(\'{"jobs": [{"job": "train"}]}\')')
        + entry(7, 22, 1, "TRUNCATE s; INSERT INTO s SELECT cerebro_internal.state_chunks(1)")
    )
    phases = break_down(read_steps(log), BEGAN.timestamp(), BEGAN.timestamp() + 22)
    expected = {"start-up": 1, "train": 18, "hop": 3}
    assert phases == pytest.approx({phase: expected.get(phase, 0) for phase in PHASES}, abs=0.01)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=6), st.integers(1, 3))
def test_the_phases_add_up_to_the_time_of_the_call(lengths: list[int], workers: int) -> None:
    log = ""
    longest = 0
    for pid in range(workers):
        at = 5
        for length in lengths:
            log += visit(pid, at, length)
            at += length + 2 + pid
        longest = max(longest, at)
    began = BEGAN.timestamp()
    assert sum(break_down(read_steps(log), began, began + longest).values()) == pytest.approx(
        longest, abs=0.01
    )


FAMILIES = st.sampled_from(["Adam", "SGD"])
VALUES = st.lists(st.floats(0.1, 9) | st.just(float("inf")), min_size=1, max_size=27).filter(
    lambda row: row[0] < 10
)
CURVES = st.lists(
    st.builds(Curve, FAMILIES, st.builds(dict, lr=st.floats(0.1, 1)), VALUES.map(tuple)),
    min_size=2,
    max_size=6,
)


def pool_of(curves: list[Curve]) -> Pool:
    ranges = {(family, "lr"): Range(0.1, 1, "log") for family in ("Adam", "SGD")}
    return Pool("wine", 1, "loss", 2, tuple(curves), ranges, tuple(curves))


@given(CURVES, st.integers(0, 9))
@trials(20)
def test_searches_over_curves_see_what_they_have_trained_and_no_more(
    curves: list[Curve], number: int
) -> None:
    """A grid makes all visits and finds the best; nobody makes more than are granted, or finds what
    is not there.
    """
    pool = pool_of(curves)
    grid = courses.search_by_rule(pool, courses.shuffle(pool, pool.curves, number), Stepwise((27,)))
    assert (grid.visits, grid.best) == (pool.visits, pool.best)
    asha = courses.search_by_rule(pool, courses.shuffle(pool, pool.curves, number), Asha(27))
    peers = [peer(pool, asha.visits, number) for peer in searching.PEERS.values()]
    for tally in (asha, *peers):
        assert tally.visits <= pool.visits and tally.best >= pool.best
        assert tally.until(tally.best) is not None
        assert (tally.until(pool.best) is None) == (tally.best > pool.best)
    assert all(tally.visits <= asha.visits for tally in peers)


def test_asha_and_pasha_are_judged_over_the_same_curves() -> None:
    """If curves never cross, `pasha` reaches the same value in fewer visits."""
    pool = pool_of([Curve("SGD", {"lr": rate / 20}, (rate / 10,) * 27) for rate in range(2, 20)])
    judgement = searching.judge([pool])
    assert judgement.gaps["pasha"] == judgement.gaps["asha"] == [0.0]
    assert all(
        0 < less < more < 1
        for less, more in zip(judgement.pasha_visits, judgement.asha_visits, strict=True)
    )


def test_a_search_that_is_better_by_less_than_two_standard_errors_is_as_good() -> None:
    gaps = {
        "asha": [0.0, 0.1, 0.0],
        "clear": [0.5, 0.6, 0.5],
        "noisy": [0.2, 0.0, 0.0],
        "near": [0.0, 0.0, 0.0],
    }
    judgement = searching.Judgement("wine", "accuracy", [0.1, 0.2, float("inf")], [0.2] * 3, gaps)
    assert [judgement.compare(peer) for peer in ("clear", "noisy", "near")] == [
        "better",
        "within noise",
        "within noise",
    ]
    peers = dict.fromkeys(searching.PEERS, gaps["clear"])
    ours = {"asha": gaps["asha"], "pasha": gaps["near"]}
    text = searching.report(
        {"networks": [replace(judgement, gaps={**ours, **peers}, pasha_visits=[0.1, 0.2])]}
    )
    assert (
        "| `wine` | accuracy | 3 | 0.20 | 0.20 | 67% | 3.33 % | 0.00 %, 0.15 | 53.33 % (better) |"
        in text
    )
    assert "on 1 of 1 tables" in text and "Beside random: better on 1, worse on 0." in text


def test_without_statements_of_workers_nothing_is_known() -> None:
    assert set(break_down(read_steps("no log at all"), 0.0, 9.0).values()) == {0.0}


def test_a_statement_that_trains_several_visits_compiles_nothing_for_it() -> None:
    job = '{"job": "train", "order": {"mst_key": 1}}'
    tour = "SELECT cerebro_internal.job_series('" + 3 * job + "')"
    log = "".join(
        entry(7, at, 1, f"SELECT cerebro_internal.job_begin('{job}')") for at in (2, 4, 6)
    ) + entry(7, 9, 3, tour)
    began = BEGAN.timestamp()
    phases = break_down(read_steps(log), began, began + 9)
    assert (phases["train"], phases["compile"]) == pytest.approx((6, 0), abs=0.01)


@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 3))
def test_cpu_seconds_of_phases_are_those_of_the_course(
    compiling: float, training: float, workers: int
) -> None:
    """A trainer that uses a part of a core while it compiles, and another while it trains, and
    nothing else.
    """
    log = ""
    began = BEGAN.timestamp()
    histories = {}
    for pid in range(workers):
        log += visit(pid, 0, 6) + visit(pid, 8, 2) + visit(pid, 12, 2)
        times = [0.0, 1, 5, 7, 9, 11, 13, 15, 16]
        shares = [0, compiling, training, 0, training, 0, training, 0]
        used = np.cumsum(
            [
                0.0,
                *(
                    share * (b - a)
                    for share, a, b in zip(shares, times[:-1], times[1:], strict=True)
                ),
            ]
        )
        histories[pid] = [([began + at for at in times], used.tolist())]
    phases = break_down_cpu(read_steps(log), began, began + 16, 6.0 * workers, histories)
    assert (phases["compile"], phases["train"]) == pytest.approx(
        (4 * compiling * workers, 6 * training * workers), abs=0.01
    )
    assert sum(phases.values()) == pytest.approx((4 * compiling + 6 * training) * workers, abs=0.01)


def test_a_family_is_all_that_comes_from_its_root() -> None:
    processes = [
        measure.Process(pid, 0, parent, 0.0)
        for pid, parent in ((1, 0), (2, 1), (3, 2), (4, 1), (5, 4), (6, 9))
    ]
    assert {process.pid for process in measure.find_descendants(processes, [2, 4, 8])} == {
        2,
        3,
        4,
        5,
    }


def test_a_process_is_told_by_its_title() -> None:
    titles = {
        "cerebro_trainer: jax for backend 7": measure.TRAINERS,
        "cerebro_trainer: jax kept": measure.TRAINERS,
        "cerebro_nursery: jax": measure.SERVER,
        "cerebro_keeper: nursery 3 for server 2": measure.SERVER,
        "postgres: ann flowers [local] SELECT": measure.BACKENDS,
        "postgres: garden: ann flowers [local] SELECT": measure.BACKENDS,
        "postgres: garden: parallel worker for PID 12 ": measure.BACKENDS,
        "postgres: garden: background writer ": measure.SERVER,
        "postgres: ann flowers 127.0.0.1(40312) idle": measure.BACKENDS,
        "postgres: parallel worker for PID 12 ": measure.BACKENDS,
        "postgres: walwriter ": measure.SERVER,
        "postgres: autovacuum launcher ": measure.SERVER,
        "postgres: logical replication launcher ": measure.SERVER,
        "/usr/lib/postgresql/15/bin/postgres\0-D\0data": measure.SERVER,
        "python\0-m\0bench.ours": measure.CLIENT,
    }
    assert {title: measure.find_role(title) for title in titles} == titles


def test_a_watch_tells_what_a_process_used() -> None:
    command = ["python3", "-c", "import time\nwhile time.process_time() < 0.5: pass"]
    result = measure.run(command, {"PATH": os.environ["PATH"]}, [], None)
    assert result.status == 0
    assert result.usage.cpu == pytest.approx(result.usage.cpu_of[measure.CLIENT])
    assert result.usage.cpu > 0


def test_a_process_began_when_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    """So long after the machine did; the clocks stand still, for they are read one after the
    other.
    """
    monkeypatch.setattr(time, "time", lambda: 5000.0)
    monkeypatch.setattr(time, "clock_gettime", {time.CLOCK_BOOTTIME: 2000.0}.__getitem__)
    with subprocess.Popen(["sleep", "60"]) as process:
        (child,) = measure.find_descendants(measure.list_processes(), [process.pid])
        process.kill()
    assert measure.find_start(child) == 3000 + child.start / measure.TICKS
    this_process, *_ = measure.find_descendants(measure.list_processes(), [os.getpid()])
    assert this_process.start <= child.start


def make_attempt(wall: float, succeeded: bool = True) -> Attempt:
    usage = measure.Usage(wall=wall, cpu=wall, memory=1, trainer=0)
    return Attempt(
        usage=usage,
        result=Result(scores={}, moved_bytes=0) if succeeded else None,
        reason="no rows",
    )


def test_a_peer_that_lost_clearly_or_failed_takes_no_other_turn() -> None:
    assert is_out(make_attempt(16.0), 10.0)
    assert is_out(make_attempt(1.0, succeeded=False), 10.0)
    assert not is_out(make_attempt(14.0), 10.0)
    assert not is_out(make_attempt(14.0), None)


def test_a_contender_that_failed_is_shown_with_its_reason() -> None:
    results = WorkloadResults(workload=WORKLOADS["F"], job=JOB, scale=SMALL, settings={})
    results.packing[0] = make_attempt(1.0).usage
    results.attempts = {
        "cerebro_db, tensorflow": {0: make_attempt(2.0), 1: make_attempt(4.0)},
        "a peer": {0: make_attempt(6.0), 1: make_attempt(8.0)},
        "another": {0: make_attempt(1.0, succeeded=False)},
    }
    text = tables.format_contenders(results)
    assert "| another | failed: no rows |" in text
    assert "2.50 (2.00 to 3.00) |" in text
    assert (tables.find_best_peer(results), tables.find_best_of_ours(results)) == (
        "a peer",
        "cerebro_db, tensorflow",
    )


def test_a_target_is_reached_where_the_median_reaches_it() -> None:
    span = Span(2.0, 1.0, 3.0)
    assert Target(name="w", bound=2, unit="x").make_row(span) == [
        "w",
        "≥ 2x",
        "2.00 (1.00 to 3.00)x",
        "yes",
    ]
    assert Target(name="w", bound=1.9, unit="x", least=False).make_row(span)[-1] == "no"
    assert "because" in Target(name="w", bound=2, unit="x").make_row(None, "because")[2]


def test_bare_loops_are_shared_by_their_trainers() -> None:
    assert Loops([3.0, 1.0, 2.0], 2).seconds == 3.0


def make_results(key: str, ours: float, **peers: float) -> WorkloadResults:
    results = WorkloadResults(workload=WORKLOADS[key], job=JOB, scale=SMALL, settings={})
    results.attempts = {
        name: {0: make_attempt(wall)} for name, wall in {"cerebro_db, jax": ours, **peers}.items()
    }
    return results


def test_the_best_peer_counts_and_of_a_large_state_keras_alone() -> None:
    peers = {"Keras fit, jax, one process": 20.0, "Ray Tune, jax": 15.0}
    rows = must.make_workload_rows(
        {key: make_results(key, 5.0, **peers) for key in ("B", "E", "F")}
    )
    assert [(row[0][0], row[2], row[3]) for row in rows] == [
        ("B", "3.00x", "no"),
        ("F", "3.00x", "no"),
        ("E", "0.25x", "yes"),
    ]


def bench() -> limits.Bench:
    url = str(FOLDER)
    at = BenchServer(url=url, superuser_url=url, pid=0, log=FOLDER, folder=FOLDER)
    return limits.Bench(server=at, scale=SMALL, repeats=2, echo=lambda line: None)


def test_parts_that_are_measured_together_have_a_row_each() -> None:
    targets = (must.at_most("a", 1.0, "x"), must.at_most("b", 1.0, "x"))
    rows = must.measure_rows(bench(), targets, lambda _: iter([(1.0, 2.0), (0.5, 4.0)]))
    assert [(row[0], row[2], row[3]) for row in rows] == [
        ("a", "0.75 (0.50 to 1.00)x", "yes"),
        ("b", "3.00 (2.00 to 4.00)x", "no"),
    ]


def test_a_part_that_fails_says_why_in_all_its_rows() -> None:
    def failing(_: limits.Bench) -> limits.Numbers:
        yield (1.0,)
        raise RuntimeError("there is none")

    rows = must.measure_rows(
        bench(), (must.at_most("a", 1.0, "x"), must.at_most("b", 1.0, "x")), failing
    )
    assert [row[2] for row in rows] == ["not measured: there is none"] * 2


def test_without_greenplum_its_rows_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(greenplum.URL, raising=False)
    (row,) = must.measure_rows(
        bench(), (must.at_most("a", 1.0, "x"),), limits.compare_greenplum("C")
    )
    assert row[2].startswith("not measured: no Greenplum is given")


def test_the_table_of_the_document_has_the_targets_and_says_rightly_which_are_reached() -> None:
    rows = merge_rows(DOCUMENT.read_text(), "must reach", [])
    assert [row[:2] for row in rows] == [
        target.make_row(None)[:2] for target in must.TARGETS.values()
    ]
    for name, _, measurement, reached in rows:
        if not measurement.startswith("not measured"):
            number = re.match(r"-?[\d.]+", measurement)
            assert number is not None, measurement
            middle = float(number[0])
            assert must.TARGETS[name].make_row(Span(middle, middle, middle))[3] == reached


def test_a_row_that_is_no_target_any_more_is_left_out() -> None:
    first, second = (target.make_row(None) for target in list(must.TARGETS.values())[:2])
    lines = must.format_table([["hops a second", "≥ 1", "2", "yes"], second, first]).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == [f"| {first[0]}", f"| {second[0]}"]


def test_text_outside_the_markers_stays() -> None:
    text = "before\n<!-- bench A: begin -->\nold\n<!-- bench A: end -->\nafter"
    once = replace_section(text, "A", "new")
    assert once == "before\n<!-- bench A: begin -->\nnew\n<!-- bench A: end -->\nafter"
    assert replace_section(once, "A", "old") == text
    with pytest.raises(ValueError, match="markers"):
        replace_section(text, "B", "new")


def test_the_document_has_a_place_for_everything_measured() -> None:
    document = DOCUMENT.read_text()
    for name in (
        "machine",
        "must reach",
        "quality",
        "searches",
        "search-job",
        "groups",
        "seeds",
        "first-model",
        "tree-predictions",
        "calibration",
        *WORKLOADS,
        *must.FASTER,
    ):
        assert replace_section(document, name, "content") != document


def test_a_first_model_is_reported_by_medians_and_a_missing_one_is_counted() -> None:
    size = first_model.Size(10_000, 14, 6, 5)
    attempts = [
        first_model.FirstModel(2.0, 5.1, "linear"),
        first_model.FirstModel(4.0, 5.3, "boosting"),
        first_model.FirstModel(None, 6.5, reason="the budget was over"),
    ]
    assert (
        "| 10,000 x 20 | 5 s | 3.0 s | boosting, linear | 5.3 s | 2 of 3 |"
        in first_model.report({size: attempts})
    )
    assert "| 10,000 x 20 | 5 s | - |  | 6.5 s | 0 of 1 |" in first_model.report(
        {size: attempts[2:]}
    )


def test_the_speed_of_trees_is_reported_as_a_share_of_lightgbm() -> None:
    speed = tree_predictions.TreeSpeed(
        leaves=31,
        threads=2,
        rows_per_second=27_000,
        own_rows_per_second=30_000,
        row_ms=3.5,
        own_row_ms=1.0,
    )
    text = tree_predictions.report([speed], REPORT)
    assert "| 31 | 27,000 | 30,000 | 0.90 | 3.5 ms | 1.0 ms | 2.5 ms |" in text
    assert "200,000 rows of 20 columns, 2 threads" in text


def test_both_calibrations_are_measured_on_the_same_rows() -> None:
    """Probabilities under the temperature of the folds tell those under any other."""
    narrow, wide = (
        Calibration(errors=ErrorQuantiles.from_errors([margin] * 9)) for margin in (1.0, 2.0)
    )
    numbers: list[calibration.Prediction] = [("1", {}), ("2", {}), ("9", {})]
    covered = calibration.measure_coverage(numbers, pandas.Series([2.5, 2, 4]), (narrow, wide))
    assert covered == pytest.approx([1 / 3, 2 / 3])
    rows = [("a", {"a": 0.8, "b": 0.2}), ("a", {"a": 0.6, "b": 0.4})]
    heated = Calibration(temperature=1.0), Calibration(temperature=2.0)
    losses = calibration.measure_log_losses(rows, pandas.Series(["a", "b"]), heated)
    squares = math.log(0.64 / 0.68) + math.log(0.16 / 0.52)
    assert losses == pytest.approx([-squares / 2, -(math.log(0.8) + math.log(0.4)) / 2])
    model = calibration.CalibratedModel("regression", 300, 60)
    models = [model, replace(model, by_holdout=0.8, by_folds=0.9)]
    line = "| diabetes | 300 | 60 | rows in intervals of 0.9 | 0.800 | 0.900 | 1 of 2 |"
    assert line in calibration.report({"diabetes": models})
    assert "| - | - | 0 of 1 |" in calibration.report({"diabetes": [model]})


def test_generated_rows_have_the_inputs_that_are_asked_for() -> None:
    frame = generated_tables.make_rows("50")
    assert frame.shape == (50, 31)
    for size in (size for sizes in first_model.SIZES.values() for size in sizes):
        rows = generated_tables.select_columns(frame, size.numbers, size.categories)
        assert rows.shape == (50, size.columns + 1) and rows["y"].notna().all()
    assert frame["n2"].isna().any() and frame["c0"].nunique() == 3
    assert frame.equals(generated_tables.make_rows("50"))


def test_what_contenders_are_told_and_tell_survives_the_way(tmp_path: Path) -> None:
    job = replace(JOB, settings={"a": 1})
    write_job(job, tmp_path / "job")
    assert read_job(tmp_path / "job") == job
    result = Result(scores={1: (0.5, 0.75)}, moved_bytes=7, more={"form": "xla_loop"})
    write_result(result, tmp_path / "result")
    assert read_result(tmp_path / "result") == result


@pytest.mark.parametrize("key", WORKLOADS)
def test_a_workload_draws_the_same_rows_each_time(key: str) -> None:
    first, second = (WORKLOADS[key].draw_examples(SMALL) for _ in range(2))
    for (x, y), (x_again, y_again) in zip(first, second, strict=True):
        assert x.tobytes() == x_again.tobytes() and y.tobytes() == y_again.tobytes()
        assert set(y) <= set(range(WORKLOADS[key].classes))
    assert WORKLOADS[key].count_rows(REPORT) >= WORKLOADS[key].count_rows(SMALL)
