"""Runs on either framework: by name, or whichever proves faster for an architecture."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from models import CLASSES, NOISY
from workbench import Row, Workbench, compile_text

ADAM = compile_text("Adam(learning_rate=0.01)")
JAX_FORMS = {"jit_step", "scan_block", "scan"}
TENSORFLOW_FORMS = {"graph_loop", "xla_step", "xla_loop"}


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> Iterator[None]:
    """A packed table of two segments, and configs of two architectures."""
    bench.pack("halves", 2)
    bench.configure("one", [ADAM], ["batch_size=8", "batch_size=16"], bench.model(NOISY))
    bench.configure("two", [ADAM], ["batch_size=8"], bench.model(CLASSES))
    bench.rows("INSERT INTO one SELECT mst_key + 2, model_id, compile_params, fit_params FROM two")
    yield


def visits(bench: Workbench, run: int) -> list[Row]:
    return bench.rows(
        "SELECT c.mst_key, c.backend, v.form FROM cerebro.config c JOIN cerebro.visit v USING (run_id, mst_key)"
        " WHERE run_id = %s ORDER BY 1, v.visit_no",
        run,
    )


def weights(bench: Workbench, table: str) -> list[Row]:
    return bench.rows(f"SELECT mst_key, md5(model_weights) FROM {table} ORDER BY 1")


def test_a_run_on_jax(bench: Workbench) -> None:
    run = bench.fit("halves", "on_jax", "one", 2, backend="jax", validation_table="halves")
    assert {backend for _, backend, _ in visits(bench, run)} == {"jax"}
    assert {form for _, _, form in visits(bench, run)} <= JAX_FORMS
    assert bench.value("SELECT bool_and(backend = 'jax' AND training_loss_final < 2) FROM on_jax_info")
    bench.fit("halves", "jax_again", "one", 2, schedule="replay", replay_run=run)
    assert weights(bench, "jax_again") == weights(bench, "on_jax")


def test_a_model_is_evaluated_and_predicted_by_its_framework(bench: Workbench) -> None:
    bench.rows("SELECT madlib_evaluate('on_jax', 'halves', 'jax_loss', mst_key => 1)")
    found, expected = bench.row(
        "SELECT e.loss, i.training_loss_final FROM jax_loss e, on_jax_info i WHERE i.mst_key = 1"
    )
    assert found == pytest.approx(expected, rel=1e-6)
    bench.rows("SELECT madlib_predict('on_jax', 'points', 'id', 'x', 'jax_rows', mst_key => 1)")
    assert bench.value("SELECT count(DISTINCT id) FROM jax_rows") == bench.value("SELECT count(*) FROM points")


@pytest.mark.long
def test_the_faster_framework_is_found(bench: Workbench) -> None:
    """Which one it is, is a matter of the machine; that every config has one, and keeps it, is not."""
    before = bench.newest_run()
    call = "SELECT cerebro.plan_fit('halves', 'one', 1, backend => 'auto', format => 'json')"
    (planned,) = json.loads(bench.value(call))
    programs = [part for part in planned["Plan"]["Plans"] if part["Node Type"] == "Program"]
    assert {each["Backend"] for each in programs} <= {"tensorflow", "jax"}
    assert bench.newest_run() == before
    run = bench.fit("halves", "on_either", "one", 1, backend="auto")
    for mst_key, backend, form in visits(bench, run):
        assert form in (JAX_FORMS if backend == "jax" else TENSORFLOW_FORMS), mst_key
    assert len({(key, backend) for key, backend, _ in visits(bench, run)}) == 3
    bench.fit("halves", "either_again", "one", 1, schedule="replay", replay_run=run)
    assert weights(bench, "either_again") == weights(bench, "on_either")


@pytest.mark.long
def test_a_run_can_have_both_frameworks(bench: Workbench, shared_superuser: Workbench) -> None:
    """Each config trains with its own, in the same places."""
    run = bench.fit("halves", "alike", "one", 1)
    # As if a choice had come out so; a replay takes frameworks and forms from the log.
    shared_superuser.rows("UPDATE cerebro.config_log SET backend = 'jax' WHERE run_id = %s AND mst_key = 3", run)
    shared_superuser.rows("UPDATE cerebro.visit SET form = 'jit_step' WHERE run_id = %s AND mst_key = 3", run)
    again = bench.fit("halves", "mixed", "one", 1, schedule="replay", replay_run=run)
    assert visits(bench, again) == visits(bench, run)
    kept: set[Row] = dict(weights(bench, "mixed")).items() & dict(weights(bench, "alike")).items()
    assert {key for key, _ in kept} == {1, 2}
