"""What runs cost, by configuration: the log has what the kernel says of the processes that
worked.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg2
import pytest
from models import NOISY
from processes import eventually, trainers
from workbench import Row, Workbench, compile_text, setting, several

from cerebro_plpy.scheduling.quota.cost_limits import Prices, Usage

FIT_WORKERS = 1
SEGMENTS, EPOCHS = 2, 3
SUMS = (
    "SELECT sum(trainer_seconds), sum(backend_seconds), sum(unmeasured)::integer FROM "
    "cerebro.cost WHERE run_id = %s"
)
OF_LOG = """
SELECT mst_key, sum(trainer_seconds), sum(backend_seconds), sum(read_bytes) + sum(state_bytes),
    max(peak_memory_bytes)
FROM (SELECT run_id, mst_key, trainer_seconds, backend_seconds, read_bytes, coalesce(state_bytes,
    0) AS state_bytes,
             peak_memory_bytes
      FROM cerebro.visit
      UNION ALL
      SELECT run_id, mst_key, trainer_seconds, backend_seconds, read_bytes, 0, peak_memory_bytes
      FROM cerebro.evaluation) m
WHERE run_id = %s GROUP BY mst_key
UNION ALL
SELECT NULL, trainer_seconds, backend_seconds, read_bytes, peak_memory_bytes FROM cerebro.run_log
    WHERE run_id = %s
ORDER BY 1 NULLS FIRST"""
OF_VIEW = """
SELECT mst_key, trainer_seconds, backend_seconds, moved_bytes, peak_memory_bytes FROM cerebro.cost
    WHERE run_id = %s
ORDER BY 1 NULLS FIRST"""
STORED = """
SELECT mst_key, state_table, state_bytes, extract(epoch FROM stored_at)::float8, extract(epoch
    FROM dropped_at)::float8
FROM cerebro.visit WHERE run_id = %s AND state_table IS NOT NULL ORDER BY visit_no"""
NEWEST = "run_id = (SELECT max(run_id) FROM cerebro.run WHERE status = 'running')"
BYTE_SECONDS = (
    "SELECT mst_key, stored_byte_seconds FROM cerebro.cost WHERE run_id = %s AND mst_key IS NOT "
    "NULL"
)


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.pack("packed", SEGMENTS)
    bench.configure("two", several(2))
    bench.configure("endless", [compile_text()], ["batch_size=1,epochs=1000000"])
    model = bench.model(NOISY)
    bench.configure("slow", [compile_text()], ["batch_size=1,epochs=100"], model)
    bench.configure("cut_short", [compile_text()], ["batch_size=1,epochs=15"], model)


def spent(pids: set[int]) -> float:
    """Processor seconds of processes that wait, by the kernel's clocks."""
    return sum(time.clock_gettime((~pid << 3) | 2) for pid in pids)


@pytest.mark.postgresql("it reads the clocks of processes of this machine")
def test_the_sums_are_what_the_processes_took(bench: Workbench) -> None:
    """Of two runs, of which the second one finds the sessions and the trainers of the first one.

    A limit that no other module has keeps trainers away that have worked before, and have compiled
    code.
    """
    with setting(bench, "trainer_memory_mb", "4321"), closing(bench.another()) as mine:
        before, own = bench.workers(), mine.connection.info.backend_pid
        took = spent({own})
        named = {"workers": 1, "metrics_compute_frequency": 1}
        runs = [mine.fit("packed", f"summed_{n}", "two", EPOCHS, seed=n, **named) for n in (1, 2)]
        workers = mine.workers() - before
        sums = [mine.row(SUMS, run) for run in runs]
        its = trainers(workers)
        in_trainers, in_backends = spent(its), spent(workers) + spent({own}) - took
    assert its and [unmeasured for *_, unmeasured in sums] == [0, 0]
    assert in_trainers / 2 < sum(row[0] for row in sums) <= in_trainers
    assert in_backends / 2 < sum(row[1] for row in sums) <= in_backends
    assert sums[1][0] < sums[0][0], "the second one found what was compiled"


def test_each_row_has_the_sums_of_its_log(bench: Workbench) -> None:
    run = bench.fit("packed", "logged", "two", EPOCHS, seed=1, metrics_compute_frequency=2)
    found = bench.rows(OF_VIEW, run)
    assert [row[0] for row in found] == [None, 1, 2]
    assert found == [pytest.approx(row) for row in bench.rows(OF_LOG, run, run)]
    assert all(value > 0 for row in found[1:] for value in row)
    query = "SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND NOT trainer_seconds > 0"
    assert bench.value(query, run) == 0, "a visit of a tour, too, has its own"


def test_averages_cost_as_well(bench: Workbench) -> None:
    text = "SELECT madlib_fit('packed', 'averaged', 'models', 1, %s, 'batch_size=8', 2)"
    bench.rows(text, compile_text())
    run = bench.newest_run()
    made = (
        "SELECT kind, bool_and(trainer_seconds > 0 AND backend_seconds > 0), count(*) FROM "
        "cerebro.visit"
    )
    kinds = bench.rows(f"{made} WHERE run_id = %s GROUP BY 1 ORDER BY 1", run)
    assert kinds == [("average", True, 2), ("train", True, 4)]
    assert (
        bench.value(
            "SELECT sum(read_bytes) FROM cerebro.visit WHERE run_id = %s AND kind = 'average'", run
        )
        > 0
    )


def test_what_failed_has_cost_something(bench: Workbench) -> None:
    bench.configure("wild", [compile_text("SGD(learning_rate=1e38)"), compile_text()])
    run = bench.fit("packed", "wild_model", "wild", 2, seed=1)
    failed = (
        "SELECT trainer_seconds > 0, backend_seconds > 0 FROM cerebro.{} WHERE run_id = %s AND "
        "status = 'failed'"
    )
    seen = [*bench.rows(failed.format("visit"), run), *bench.rows(failed.format("evaluation"), run)]
    assert seen and set(seen) == {(True, True)}
    assert bench.row(SUMS, run)[2] == 0


@pytest.mark.postgresql("it ends a trainer of this machine")
@pytest.mark.long
def test_an_attempt_whose_trainer_was_ended_has_cost_something(bench: Workbench) -> None:
    with (
        closing(bench.another()) as mine,
        mine.fitting("packed", "ended", "slow", 1, seed=1, workers=1) as fitted,
    ):
        begun = f"SELECT worker_pid FROM cerebro.visit WHERE status = 'running' AND {NEWEST}"
        ((worker,),) = eventually(lambda: bench.rows(begun))
        (trainer,) = eventually(lambda: trainers({worker}))
        used = spent({trainer})
        eventually(lambda: spent({trainer}) > used + 0.5)
        os.kill(trainer, signal.SIGKILL)
        run = fitted.result()
    lost = bench.rows(
        "SELECT trainer_seconds, error FROM cerebro.visit WHERE run_id = %s AND status = 'failed'",
        run,
    )
    assert len(lost) == 1 and lost[0][0] > 0 and "exit status" in lost[0][1]
    assert bench.row(SUMS, run)[2] == 0


@pytest.mark.postgresql("it reads the clocks of processes of this machine")
def test_what_was_under_way_when_a_run_was_cancelled_belongs_to_the_run(bench: Workbench) -> None:
    with (
        closing(bench.another()) as mine,
        mine.fitting("packed", "left", "endless", 1, seed=1, workers=1) as fitted,
    ):
        begun = (
            f"SELECT run_id, worker_pid FROM cerebro.visit WHERE status = 'running' AND {NEWEST}"
        )
        ((run, worker),) = eventually(lambda: bench.rows(begun))
        (trainer,) = eventually(lambda: trainers({worker}))
        before = spent({trainer})
        eventually(lambda: spent({trainer}) > before + 0.2)
        assert bench.value("SELECT cerebro.cancel(%s)", run)
        with pytest.raises(psycopg2.Error):
            fitted.result()
    seconds, _, unmeasured = bench.row(SUMS, run)
    assert seconds >= 0.2 and unmeasured == 0


def test_a_run_that_is_resumed_adds_up(bench: Workbench) -> None:
    with (
        closing(bench.another()) as mine,
        mine.fitting("packed", "cut", "cut_short", 3, seed=1) as fitted,
    ):
        made = f"SELECT run_id FROM cerebro.visit WHERE status = 'completed' AND {NEWEST}"
        run = eventually(lambda: bench.rows(made))[0][0]
        assert bench.value("SELECT cerebro.cancel(%s)", run)
        with pytest.raises(psycopg2.Error):
            fitted.result()
    first = dict[int | None, Row]((row[0], row[1:3]) for row in bench.rows(OF_VIEW, run))
    bench.rows("SELECT cerebro.resume(%s)", run)
    whole = dict[int | None, Row]((row[0], row[1:3]) for row in bench.rows(OF_VIEW, run))
    assert first.keys() == whole.keys() == {None, 1}
    assert all(
        before < after
        for key in first
        for before, after in zip(first[key], whole[key], strict=True)
    )


def lying(bench: Workbench, run: int, now: float) -> Mapping[int, float]:
    """Bytes times seconds of states, by the log: each until the next one in its table, or until
    that was dropped.
    """
    found, held = dict[int, float](), dict[str, tuple[int, int, float, float | None]]()
    for key, table, size, since, dropped in bench.rows(STORED, run):
        if table in held:
            of, before, began, _ = held[table]
            found[of] = found.get(of, 0.0) + before * (since - began)
        held[table] = (key, size, since, dropped)
    for key, size, began, dropped in held.values():
        found[key] = found.get(key, 0.0) + size * ((now if dropped is None else dropped) - began)
    return found


def test_states_cost_as_long_as_they_lie(bench: Workbench) -> None:
    run = bench.fit("packed", "lying", "two", EPOCHS, seed=1)
    now = "SELECT extract(epoch FROM clock_timestamp())::float8"
    least, seen, most = (
        bench.value(now),
        dict[int, float](bench.rows(BYTE_SECONDS, run)),
        bench.value(now),
    )
    for key, value in seen.items():
        assert (
            lying(bench, run, least)[key] * 0.999 <= value <= lying(bench, run, most)[key] * 1.001
        )
    bench.rows("DROP TABLE lying, lying_info, lying_summary")
    bench.rows("SELECT cerebro.vacuum_runs('0 seconds')")
    after = dict[int, float](bench.rows(BYTE_SECONDS, run))
    # A moment as a double precision number is known to a microsecond, in which so many bytes lie.
    assert after == pytest.approx(lying(bench, run, 0.0), abs=1e-3) and after == dict(
        bench.rows(BYTE_SECONDS, run)
    )
    assert all(after[key] >= seen[key] for key in seen)


def test_what_nobody_measured_is_unknown(bench: Workbench) -> None:
    """As in the log of an earlier version."""
    run = bench.fit("packed", "unknown", "two", 1, seed=1)
    columns = (
        "trainer_seconds",
        "backend_seconds",
        "gpu_seconds",
        "read_bytes",
        "peak_memory_bytes",
    )
    nothing = ", ".join(f"{name} = NULL" for name in columns)
    for table in ("visit", "evaluation", "run_log"):
        bench.rows(f"UPDATE cerebro.{table} SET {nothing} WHERE run_id = %s", run)
    query = (
        "SELECT trainer_seconds, backend_seconds, peak_memory_bytes, unmeasured > 0 FROM "
        "cerebro.cost"
    )
    assert bench.rows(f"{query} WHERE run_id = %s", run) == [(None, None, None, True)] * 3


DOCS = Path(__file__).parents[3] / "docs" / "reference"


@pytest.fixture(scope="module")
def rated(bench: Workbench) -> int:
    """A run of which one visit had a GPU, for half an hour."""
    run = bench.fit("packed", "rated", "two", 1, seed=1)
    bench.rows(
        "UPDATE cerebro.visit SET gpu_seconds = 1800 WHERE run_id = %s AND mst_key = 1 AND "
        "visit_no = 1",
        run,
    )
    return run


@pytest.mark.parametrize("page", ["sql/runs.md", "operations.md"])
def test_the_statements_of_the_page_can_be_made(bench: Workbench, rated: int, page: str) -> None:
    section = re.split(
        r"^##+ ", (DOCS / page).read_text().split("# What runs cost\n")[1], flags=re.MULTILINE
    )[0]
    statements = re.findall(r"^    (SELECT (?!cerebro\.set)[^;]*);", section, re.MULTILINE)
    assert statements and all(bench.rows(statement) for statement in statements)


PRICES = {"price_per_core_hour": 0.05, "price_per_gpu_hour": 2.0, "price_per_gb_month": 0.1}
WATTS = {"watts_per_core": 7.5, "watts_per_gpu": 300.0}
RATED = """
SELECT trainer_seconds + backend_seconds, gpu_seconds, stored_byte_seconds, money, kwh
FROM cerebro.cost WHERE run_id = %s AND status <> 'running'"""


@pytest.mark.parametrize(
    "chosen", [{}, PRICES, {"price_per_gpu_hour": 3.0}, WATTS, {**PRICES, **WATTS}]
)
def test_prices_and_watts_make_money_and_energy(
    bench: Workbench, rated: int, chosen: Mapping[str, float]
) -> None:
    with ExitStack() as settings:
        for name, value in chosen.items():
            settings.enter_context(setting(bench, name, str(value)))
        rows = bench.rows(RATED, rated)
    core, gpu, disk = (chosen.get(name, 0.0) for name in PRICES)
    for cores, gpus, stored, money, kwh in rows:
        expected = Prices(core, gpu, disk).cost_of(Usage(cores, gpus, stored))
        assert money == (pytest.approx(expected) if set(chosen) & set(PRICES) else None)
        used = (
            cores * chosen.get("watts_per_core", 0.0) + gpus * chosen.get("watts_per_gpu", 0.0)
        ) / 3.6e6
        assert kwh == (pytest.approx(used) if set(chosen) & set(WATTS) else None)
