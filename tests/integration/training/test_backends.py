"""Runs on each framework: by name, or whichever proves faster for an architecture."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import psycopg2
import pytest
from interpreters import interpreter
from models import CLASSES, NOISY, dense, sequential
from processes import eventually, trainers
from states import metadata, stored
from workbench import Row, Workbench, compile_text

FIT_WORKERS = 1
ADAM = compile_text("Adam(learning_rate=0.01)")
FORMS = {
    "tensorflow": {"graph_loop", "xla_step", "xla_loop"},
    "jax": {"jit_step", "scan_block", "scan"},
    "torch": {"graph", "eager"},
}
WITHOUT_OTHERS = """#!{python} -I
import runpy, sys
from importlib.machinery import PathFinder
found = PathFinder.find_spec
PathFinder.find_spec = lambda name, *rest: None if name in ("jax", "torch") else found(name, *rest)
_, _, module = sys.argv[1:4]  # -I -m cerebro_trainer
del sys.argv[1:4]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""
"""An interpreter as that of an environment with TensorFlow alone."""


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> Iterator[None]:
    """A packed table of two segments, and configs of two architectures."""
    bench.pack("halves", 2)
    bench.configure("one", [ADAM], ["batch_size=8", "batch_size=16"], bench.model(NOISY))
    bench.configure("noisy", [ADAM], ["batch_size=8"], 2)
    bench.configure("two", [ADAM], ["batch_size=8"], bench.model(CLASSES))
    bench.rows("INSERT INTO one SELECT mst_key + 2, model_id, compile_params, fit_params FROM two")
    yield


def visits(bench: Workbench, run: int) -> list[Row]:
    return bench.rows(
        "SELECT c.mst_key, c.backend, v.form FROM cerebro.config c JOIN cerebro.visit v USING "
        "(run_id, mst_key) WHERE run_id = %s ORDER BY 1, v.visit_no",
        run,
    )


def weights(bench: Workbench, table: str) -> list[Row]:
    return bench.rows(f"SELECT mst_key, md5(model_weights) FROM {table} ORDER BY 1")


@pytest.fixture(scope="module", params=["jax", "torch"])
def backend(request: pytest.FixtureRequest) -> str:
    """Each that is not the default."""
    return installed(request.param)


def installed(framework: str) -> str:
    """Return the framework, or skip the test where an environment has none."""
    if find_spec(framework) is None:
        pytest.skip(f"without {framework}, which is not installed")
    return framework


@pytest.fixture(scope="module")
def torch() -> str:
    """One of them, for what our code does alike for each."""
    return installed("torch")


@pytest.fixture(scope="module")
def trained(bench: Workbench, backend: str) -> str:
    """The output table of a run."""
    run = bench.fit(
        "halves", f"on_{backend}", "noisy", 2, backend=backend, validation_table="halves", workers=1
    )
    assert {found for _, found, _ in visits(bench, run)} == {backend}
    assert {form for _, _, form in visits(bench, run)} <= FORMS[backend]
    bench.fit(
        "halves", f"{backend}_again", "noisy", 2, schedule="replay", replay_run=run, workers=1
    )
    return f"on_{backend}"


def test_a_run_is_repeated_to_the_bit(bench: Workbench, backend: str, trained: str) -> None:
    assert bench.value(
        f"SELECT bool_and(backend = '{backend}' AND training_loss_final < 2) FROM {trained}_info"
    )
    assert weights(bench, f"{backend}_again") == weights(bench, trained)


def test_a_model_is_evaluated_and_predicted_by_its_framework(
    bench: Workbench, backend: str, trained: str
) -> None:
    bench.rows(f"SELECT madlib_evaluate('{trained}', 'halves', '{backend}_loss', mst_key => 1)")
    found, expected = bench.row(
        f"SELECT e.loss, i.training_loss_final FROM {backend}_loss e, {trained}_info i WHERE "
        "i.mst_key = 1"
    )
    assert found == pytest.approx(expected, rel=1e-6)
    bench.rows(
        f"SELECT madlib_predict('{trained}', 'points', 'id', 'x', '{backend}_rows', mst_key => 1)"
    )
    assert bench.value(f"SELECT count(DISTINCT id) FROM {backend}_rows") == bench.value(
        "SELECT count(*) FROM points"
    )


def test_a_warm_start_takes_the_optimizer_to_another_backend(
    bench: Workbench, backend: str
) -> None:
    table = f"to_{backend}"
    bench.fit("halves", table, "two", 1)
    before = metadata(stored(bench, table, 1))
    bench.messages()
    bench.fit("halves", table, "two", 1, backend=backend, warm_start=True)
    after = metadata(stored(bench, table, 1))
    assert (before["framework"], after["framework"]) == ("tensorflow", backend)
    assert int(after["step"]) == 2 * int(before["step"]) > 0
    assert not [text for text in bench.messages() if "anew" in text]


@pytest.mark.long
def test_a_warm_start_takes_the_weights_alone_where_losses_are_scaled(
    bench: Workbench, torch: str
) -> None:
    table, settings = "scaled", {"dtype_policy": "mixed_float16"}
    bench.fit("halves", table, "two", 1, **settings)
    before = metadata(stored(bench, table, 1))
    bench.messages()
    bench.fit("halves", table, "two", 1, backend=torch, warm_start=True, **settings)
    assert metadata(stored(bench, table, 1))["step"] == before["step"]
    assert "do not go over to another backend" in "".join(bench.messages())


@pytest.mark.long
@pytest.mark.postgresql("on Greenplum each state has all of its weights")
def test_frozen_weights_stand_once(bench: Workbench, torch: str) -> None:
    """And states that hop without them come to the same bits again."""
    frozen = dense(600, "wide", trainable=False), dense(500, "narrow", trainable=False)
    network = sequential([4], dense(8, "first"), *frozen, dense(3, "output", "softmax"))
    bench.configure("frozen", [ADAM], ["batch_size=8", "batch_size=16"], bench.model(network))
    table, settings = "heads", {"workers": 2, "backend": torch}
    run = bench.fit("halves", table, "frozen", 2, **settings, schedule="rotation")
    bases = (
        "SELECT count(*) FROM pg_class WHERE relnamespace = 'cerebro_state'::regnamespace AND "
        "relname ~ %s"
    )
    assert bench.value(bases, f"^r{run}_z_") == 2
    assert metadata(stored(bench, table, 1))["base"]
    bench.fit(
        "halves", f"{table}_again", "frozen", 2, **settings, schedule="replay", replay_run=run
    )
    assert weights(bench, f"{table}_again") == weights(bench, table)


@pytest.mark.long
def test_a_trainer_leaves_no_folder_however_it_ends(bench: Workbench, torch: str) -> None:
    """Killed, cancelled, or with its session, in which it has waited."""
    watcher, caller = bench.another(), bench.another()
    idle, before, seen = watcher.workers(), bench.last_run_id(), set[Path]()

    def homes() -> set[Path]:
        working = watcher.workers() - idle
        found = {
            home
            for pid in working
            for home in Path(tempfile.gettempdir()).glob(f"cerebro_trainer-{pid}-*")
        }
        seen.update(found)
        return found

    def trained() -> int:
        count: int = watcher.value(
            "SELECT count(*) FROM cerebro.visit WHERE run_id > %s AND status = 'completed'", before
        )
        return count

    with caller.fitting("halves", "ended", "two", 100_000, backend=torch, workers=1) as fitting:
        eventually(trained)
        (home,) = homes()
        (pid,) = trainers(watcher.workers() - idle)
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not home.exists())
        count = trained()
        eventually(lambda: trained() > count)
        assert homes()
        watcher.rows("SELECT pg_cancel_backend(%s)", caller.pid())
        with pytest.raises(psycopg2.errors.QueryCanceled):
            fitting.result()
    eventually(lambda: not any(each.exists() for each in seen))
    caller.fit("halves", "waiting", "two", 1, backend=torch)
    assert homes()
    caller.close()
    watcher.close()
    eventually(lambda: not any(each.exists() for each in seen))


@pytest.mark.long_for(name="torch")
@pytest.mark.parametrize("name", ["jax", "torch"])
def test_a_framework_that_is_not_installed_is_named(
    bench: Workbench, shared_superuser: Workbench, folder: Path, name: str
) -> None:
    with (
        interpreter(shared_superuser, folder, WITHOUT_OTHERS),
        pytest.raises(
            psycopg2.errors.ObjectNotInPrerequisiteState, match="the trainer could not start"
        ) as refused,
    ):
        bench.fit("halves", "without", "two", 1, backend=name)
    assert f"No module named '{name}'" in str(refused.value.diag.message_detail)
    assert f"pip install '.[{name}]'" in str(refused.value.diag.message_hint)
    assert not bench.exists("without")


@pytest.mark.long
def test_what_is_not_installed_is_passed_over(
    bench: Workbench, shared_superuser: Workbench, folder: Path
) -> None:
    with interpreter(shared_superuser, folder, WITHOUT_OTHERS):
        run = bench.fit("halves", "with_one", "two", 1, backend="auto")
    assert {backend for _, backend, _ in visits(bench, run)} == {"tensorflow"}


@pytest.mark.long
def test_the_faster_framework_is_found(bench: Workbench) -> None:
    """Which one it is, is a matter of the machine; that every config has one, and keeps it, is
    not.
    """
    before = bench.last_run_id()
    call = "SELECT cerebro.plan_fit('halves', 'one', 1, backend => 'auto', format => 'json')"
    (planned,) = json.loads(bench.value(call))
    programs = [part for part in planned["Plan"]["Plans"] if part["Node Type"] == "Program"]
    assert {each["Backend"] for each in programs} <= set(FORMS)
    assert bench.last_run_id() == before
    run = bench.fit("halves", "on_either", "one", 1, backend="auto")
    for mst_key, backend, form in visits(bench, run):
        assert form in FORMS[backend], mst_key
    assert len({(key, backend) for key, backend, _ in visits(bench, run)}) == 3
    bench.fit("halves", "either_again", "one", 1, schedule="replay", replay_run=run)
    assert weights(bench, "either_again") == weights(bench, "on_either")


@pytest.mark.long
def test_a_run_can_have_both_frameworks(bench: Workbench, shared_superuser: Workbench) -> None:
    """Each config trains with its own, in the same places."""
    run = bench.fit("halves", "alike", "one", 1)
    # As if a choice had come out so; a replay takes frameworks and forms from the log.
    shared_superuser.rows(
        "UPDATE cerebro.config_log SET backend = 'jax' WHERE run_id = %s AND mst_key = 3", run
    )
    shared_superuser.rows(
        "UPDATE cerebro.visit SET form = 'jit_step' WHERE run_id = %s AND mst_key = 3", run
    )
    again = bench.fit("halves", "mixed", "one", 1, schedule="replay", replay_run=run)
    assert visits(bench, again) == visits(bench, run)
    kept: set[Row] = dict(weights(bench, "mixed")).items() & dict(weights(bench, "alike")).items()
    assert {key for key, _ in kept} == {1, 2}
