"""Configurations that are trained side by side in one job: what the log says, and what of it is the
same again.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec

import psycopg2
import pytest
from models import CLASSES, NOISY
from processes import eventually, trainers
from timings import remember
from workbench import Workbench, compile_text

from cerebro_plpy.database.queries import sql
from cerebro_plpy.run.log.form_timings import MAX_CORE_LANES, choose_fused_form

COUNT, EPOCHS = 8, 8
RATES = [compile_text(f"Adam(learning_rate={0.001 * key})") for key in range(1, COUNT + 1)]
FUSED = choose_fused_form(MAX_CORE_LANES)
FAST = {"scan": 1.0, "jit_step": 1.0, "scan_block": 1.0, FUSED: 1e-9}
SLOW = {**FAST, FUSED: 1e9}
OTHERS = {"tensorflow": ("graph_loop", "xla_step", "xla_loop"), "torch": ("graph", "eager")}

pytestmark = pytest.mark.skipif(
    find_spec("jax") is None, reason="without jax, which is not installed"
)


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> Iterator[None]:
    bench.pack("parts", 3)
    model = bench.model(NOISY)
    bench.configure("rates", RATES, model=model)
    bench.configure("plain", RATES, model=bench.model(CLASSES))
    bench.configure("slow", RATES, ["batch_size=8,epochs=20"], model)
    yield


@pytest.fixture
def watcher(bench: Workbench) -> Iterator[Workbench]:
    other = bench.another()
    yield other
    other.close()


def believe(
    bench: Workbench,
    shared_superuser: Workbench,
    seconds: Mapping[str, float],
    backend: str = "jax",
    network: str = NOISY,
) -> None:
    """Have it remembered how fast forms are."""
    shared_superuser.rows("DELETE FROM cerebro.form_timing")
    for threads in range(1, len(os.sched_getaffinity(0)) + 1):
        remember(bench, RATES[0], 8, threads, seconds, backend, network)


def fit(
    bench: Workbench, output: str, iterations: int = 2, configs: str = "rates", **named: object
) -> int:
    return bench.fit(
        "parts", output, configs, iterations, **{"backend": "jax", "workers": 1, **named}
    )


def forms(bench: Workbench, run: int) -> list[tuple[int, int, str]]:
    return bench.rows(
        "SELECT mst_key, visit_no, form FROM cerebro.visit WHERE run_id = %s ORDER BY 1, 2", run
    )


@pytest.fixture(scope="module")
def original(bench: Workbench, shared_superuser: Workbench) -> int:
    """A run in which configurations were trained side by side; it may go on without that before it
    evaluates them.
    """
    believe(bench, shared_superuser, FAST)
    return fit(bench, "together", seed=1)


def test_all_visits_are_logged_once_and_with_their_form(bench: Workbench, original: int) -> None:
    found = forms(bench, original)
    assert [place[:2] for place in found] == [
        (key, number) for key in range(1, COUNT + 1) for number in range(1, 7)
    ]
    assert {form for _, number, form in found if number == 1} == {FUSED}
    told = (
        "SELECT DISTINCT status, error, worker_pid IS NOT NULL FROM cerebro.visit WHERE run_id = %s"
    )
    assert bench.rows(told, original) == [("completed", None, True)]
    stored = (
        "SELECT count(DISTINCT state_table) FROM cerebro.visit WHERE run_id = %s AND state_bytes "
        "IS NOT NULL"
    )
    assert bench.value(stored, original) >= COUNT
    at_once = (
        "SELECT DISTINCT worker_pid, ended_at FROM cerebro.visit v WHERE run_id = %s AND visit_no "
        "= 1"
    )
    assert len(bench.rows(at_once, original)) == 1, "so the log tells who was trained together"
    assert bench.value("SELECT status FROM cerebro.run WHERE run_id = %s", original) == "completed"


def test_what_they_took_together_is_counted_once(bench: Workbench, original: int) -> None:
    workers, work, span = bench.row(sql("plan.course"), original, original)
    assert workers == 1 and 0 < work <= span
    keys = json.dumps(dict.fromkeys(range(1, COUNT + 1), "p"))
    _, visits, _, training, *_, around = bench.row(sql("plan.visits"), keys, original, 10)[:11]
    assert visits == 6 * COUNT and training + around <= span


PLAN = "SELECT * FROM cerebro.plan_fit('parts', 'rates', 2, backend => 'jax', workers => 1)"


def test_a_plan_tells_who_is_trained_side_by_side(
    bench: Workbench, shared_superuser: Workbench, original: int
) -> None:
    for seconds, fused in (
        (FAST, f"Fused: {COUNT} at a time"),
        (SLOW, "Fused: no: one by one is faster"),
        ({"scan": 1.0}, f"Fused: {COUNT} at a time, if they are found to be faster"),
    ):
        believe(bench, shared_superuser, seconds)
        assert fused in [line.strip() for (line,) in bench.rows(PLAN)]
    made = [line.strip() for (line,) in bench.rows("SELECT * FROM cerebro.plan_of(%s)", original)]
    assert {f"Fused: {COUNT} at a time", f"Actual Visits: {6 * COUNT}"} <= {*made}
    together = sum(form == FUSED for *_, form in forms(bench, original))
    assert f"Actual Fused: {together} of these visits" in made


def test_a_replay_gives_the_same_bits(
    bench: Workbench, shared_superuser: Workbench, original: int
) -> None:
    believe(bench, shared_superuser, SLOW)
    run = fit(bench, "again", schedule="replay", replay_run=original)
    assert forms(bench, run) == forms(bench, original)
    assert bench.weights("again") == bench.weights("together")


@pytest.mark.long
@pytest.mark.parametrize(("backend", "alone"), list(OTHERS.items()))
def test_other_backends_do_so_too(
    bench: Workbench, shared_superuser: Workbench, backend: str, alone: Sequence[str]
) -> None:
    if find_spec(backend) is None:
        pytest.skip(f"without {backend}, which is not installed")
    fast = {**dict.fromkeys(alone, 1.0), FUSED: 1e-9}
    believe(bench, shared_superuser, fast, backend, CLASSES)
    run = fit(bench, f"by_{backend}", configs="plain", seed=1, backend=backend)
    assert {form for _, number, form in forms(bench, run) if number == 1} == {FUSED}
    believe(bench, shared_superuser, {**fast, FUSED: 1e9}, backend, CLASSES)
    again = fit(
        bench,
        f"by_{backend}_again",
        configs="plain",
        backend=backend,
        schedule="replay",
        replay_run=run,
    )
    assert forms(bench, again) == forms(bench, run)
    assert bench.weights(f"by_{backend}_again") == bench.weights(f"by_{backend}")


def test_a_search_trains_those_together_that_go_on_together(
    bench: Workbench, shared_superuser: Workbench
) -> None:
    """Where all begin at once; a replay comes to the same, to the bit."""
    bench.rows("SELECT validation_preprocessor_dl('points', 'held_back', 'label', 'x', 'parts')")
    believe(bench, shared_superuser, FAST)
    run = fit(bench, "sought", 9, search="halving", validation_table="held_back", seed=1)
    first = "SELECT DISTINCT form FROM cerebro.visit WHERE run_id = %s AND visit_no = 1"
    assert bench.rows(first, run) == [(FUSED,)]
    epochs: list[int] = [
        count for (count,) in bench.rows("SELECT epochs FROM cerebro.config WHERE run_id = %s", run)
    ]
    assert len(epochs) == COUNT and {1, 9} <= {*epochs} <= {1, 3, 9}
    believe(bench, shared_superuser, SLOW)
    again = fit(bench, "sought_again", 9, schedule="replay", replay_run=run)
    assert forms(bench, again) == forms(bench, run)
    assert bench.weights("sought_again") == bench.weights("sought")


@pytest.mark.long
def test_a_budget_ends_those_that_are_trained_together(
    bench: Workbench, shared_superuser: Workbench
) -> None:
    """Each goes as far as all do in a job, and a replay as far as that, to the bit."""
    believe(bench, shared_superuser, FAST)
    run = fit(
        bench,
        "limited",
        400,
        "slow",
        search="grid",
        search_params=json.dumps({"max_cpu": 5}),
        seed=1,
    )
    ended = "SELECT DISTINCT status, ended_by FROM cerebro.config WHERE run_id = %s"
    assert bench.rows(ended, run) == [("stopped", "max_cpu")]
    first = "SELECT DISTINCT form FROM cerebro.visit WHERE run_id = %s AND visit_no = 1"
    assert bench.rows(first, run) == [(FUSED,)]
    believe(bench, shared_superuser, SLOW)
    again = fit(bench, "limited_again", 400, "slow", schedule="replay", replay_run=run)
    assert forms(bench, again) == forms(bench, run)
    assert bench.weights("limited_again") == bench.weights("limited")


def test_who_cannot_be_trained_fails_alone(bench: Workbench, shared_superuser: Workbench) -> None:
    believe(bench, shared_superuser, FAST)
    wild = compile_text("Adam(learning_rate=1e38)")
    bench.configure(
        "wild",
        [*RATES[:2], wild, *RATES[3:]],
        model=bench.value("SELECT DISTINCT model_id FROM rates"),
    )
    run = fit(bench, "tamed", configs="wild", seed=1)
    statuses: dict[int, str] = dict(
        bench.rows("SELECT mst_key, status FROM cerebro.config WHERE run_id = %s", run)
    )
    assert statuses == {key: "failed" if key == 3 else "completed" for key in range(1, COUNT + 1)}
    errors = bench.rows(
        "SELECT mst_key, form, error FROM cerebro.visit WHERE run_id = %s AND status = 'failed'",
        run,
    )
    assert [(key, "training loss became" in error) for key, _, error in errors] == [(3, True)]
    first = (
        "SELECT DISTINCT form FROM cerebro.visit WHERE run_id = %s AND visit_no = 1 AND mst_key "
        "<> 3"
    )
    assert bench.rows(first, run) == [(FUSED,)]


def disturbed(
    bench: Workbench, watcher: Workbench, output: str, act: Callable[[int], object]
) -> int:
    """A run of long visits, with which somebody does something when all its configurations were
    trained together.
    """
    before = watcher.last_run_id()
    together = "SELECT count(DISTINCT mst_key) FROM cerebro.visit WHERE run_id = %s AND form = %s"
    named = {"backend": "jax", "workers": 1, "seed": 1, "metrics_compute_frequency": 1}
    with bench.fitting("parts", output, "slow", EPOCHS, **named) as fitted:
        eventually(lambda: watcher.newest_run() > before)
        run = watcher.newest_run()
        eventually(lambda: watcher.value(together, run, FUSED) == COUNT)
        act(run)
        try:
            fitted.result()
        except psycopg2.errors.QueryCanceled:
            bench.rows("SELECT cerebro.resume(%s)", run)
    return run


def check_replay(bench: Workbench, run: int, output: str) -> None:
    """Each visit has been made once, and a replay comes to the same bits, by the same forms."""
    assert bench.value("SELECT status FROM cerebro.run WHERE run_id = %s", run) == "completed"
    done = (
        "SELECT mst_key, visit_no, form FROM cerebro.visit WHERE run_id = %s AND status = "
        "'completed' ORDER BY 1, 2"
    )
    logged = bench.rows(done, run)
    assert len(logged) == len({row[:2] for row in logged})
    again = bench.fit(
        "parts",
        f"{output}_again",
        "slow",
        EPOCHS,
        backend="jax",
        workers=1,
        schedule="replay",
        replay_run=run,
    )
    assert bench.rows(done, again) == logged
    assert bench.weights(f"{output}_again") == bench.weights(output)


@pytest.mark.long
def test_after_the_loss_of_the_trainer_nobody_is_charged(
    bench: Workbench, shared_superuser: Workbench, watcher: Workbench
) -> None:
    believe(bench, shared_superuser, FAST)

    def kill(run: int) -> None:
        together = """SELECT worker_pid FROM cerebro.visit WHERE run_id = %s AND status = 'running'
                      GROUP BY worker_pid HAVING count(*) > 2"""
        for pid in eventually(
            lambda: trainers({worker for (worker,) in watcher.rows(together, run)})
        ):
            os.kill(pid, signal.SIGKILL)

    run = disturbed(bench, watcher, "orphaned", kill)
    assert (
        bench.value(
            "SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND status = 'failed'", run
        )
        > 0
    )
    assert bench.rows("SELECT DISTINCT status FROM cerebro.config WHERE run_id = %s", run) == [
        ("completed",)
    ]
    check_replay(bench, run, "orphaned")


@pytest.mark.long
def test_a_cancelled_run_goes_on(
    bench: Workbench, shared_superuser: Workbench, watcher: Workbench
) -> None:
    believe(bench, shared_superuser, FAST)
    pid = bench.pid()
    run = disturbed(
        bench, watcher, "paused", lambda run: watcher.rows("SELECT pg_cancel_backend(%s)", pid)
    )
    check_replay(bench, run, "paused")


@pytest.mark.long
def test_one_of_them_may_be_stopped_and_who_is_to_go_first_waits_for_no_others(
    bench: Workbench, shared_superuser: Workbench, watcher: Workbench
) -> None:
    believe(bench, shared_superuser, FAST)

    def steer(run: int) -> None:
        for call in ("prioritize(%s, 3)", "stop_config(%s, 5)"):
            watcher.value(f"SELECT cerebro.{call}", run)

    run = disturbed(bench, watcher, "thinned", steer)
    assert bench.rows("SELECT status FROM cerebro.act WHERE run_id = %s", run) == [("done",)] * 2
    epochs: dict[int, int] = dict(
        bench.rows("SELECT mst_key, epochs FROM cerebro.config WHERE run_id = %s", run)
    )
    assert epochs.pop(5) < EPOCHS and set(epochs.values()) == {EPOCHS}
    last = [
        form for key, number, form in forms(bench, run) if key == 3 and number > 3 * (EPOCHS - 1)
    ]
    assert len(last) == 3 and FUSED not in last
    check_replay(bench, run, "thinned")
