"""How a search ends when something is wrong: configurations that fail, a cancel, Optuna that is not
installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from interpreters import interpreter
from processes import eventually, trainers
from searches import BOTH, OUTPUTS, compiles, family, run_of, search, states
from workbench import Workbench

DIVERGING = family("SGD", "[1e37, 3e38, 'log']")
STEADY = family("SGD", "[0.01, 0.1, 'log']")
LONG_VISITS = "{'batch_size': [1], 'epochs': [2]}"
WITHOUT_OPTUNA = """#!{python} -I
import runpy, sys
sys.modules["optuna"] = None
del sys.argv[1:4]  # -I -m cerebro_trainer
runpy.run_module("cerebro_trainer", run_name="__main__", alter_sys=True)
"""


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.pack("packed", 2)
    bench.pack("narrow", 1)


@pytest.fixture
def watcher(bench: Workbench) -> Iterator[Workbench]:
    session = bench.another()
    yield session
    session.close()


def nothing_of(bench: Workbench, output: str) -> bool:
    """Whether no table of a search is there."""
    return not bench.exists(
        *(output + s for s in OUTPUTS), f"{output}_mst", f"{output}_mst_summary"
    )


@pytest.mark.long
def test_what_fails_is_out_and_the_others_go_on(bench: Workbench) -> None:
    search(bench, "mixed", compiles(DIVERGING, STEADY), automl_params="R=9, eta=3", random_state=2)
    failed = bench.rows(
        "SELECT c.mst_key, c.params ->> 'compile_params' LIKE '%%e+3%%' FROM cerebro.config c"
        " WHERE c.run_id = %s AND c.status = 'failed'",
        run_of(bench, "mixed"),
    )
    assert failed and all(large for _, large in failed)
    best, loss = bench.row(
        "SELECT mst_key, training_loss_final FROM mixed_info JOIN mixed_mst USING (mst_key)"
    )
    assert (best,) not in failed and loss < 1.1
    for key, _ in failed:
        assert bench.value("SELECT model_weights IS NULL FROM mixed WHERE mst_key = %s", key)
    assert (
        bench.value("SELECT count(*) FROM mixed_info")
        == bench.value("SELECT count(*) FROM mixed")
        == 15
    )


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ["rand", "tpe"])
def test_some_that_fail_end_no_search(bench: Workbench, algorithm: str) -> None:
    output = f"alone_{algorithm}"
    search(
        bench,
        output,
        compiles(DIVERGING, STEADY),
        source="narrow",
        automl_method="hyperopt",
        random_state=0,
        automl_params=f"num_configs=6, num_iterations=1, algorithm={algorithm}",
    )
    assert (
        bench.value("SELECT status FROM cerebro.run WHERE run_id = %s", run_of(bench, output))
        == "completed"
    )
    count = "SELECT count(*) FROM cerebro.config WHERE run_id = %s AND status = "
    assert bench.value(f"{count} 'failed'", run_of(bench, output)) >= 1
    assert bench.value(f"SELECT compile_params NOT LIKE '%%e+3%%' FROM {output}_mst")
    weighted = (
        f"SELECT count(*) FROM {output} JOIN {output}_info USING (mst_key) WHERE model_weights IS "
        "NOT NULL"
    )
    assert bench.value(weighted) == bench.value(f"{count} 'completed'", run_of(bench, output)) >= 1
    assert not states(bench)


@pytest.mark.long_for(method="hyperopt")
@pytest.mark.parametrize(
    ("method", "params"), [("hyperband", "R=3"), ("hyperopt", "num_configs=5,num_iterations=1")]
)
def test_a_search_in_which_all_failed_fails(bench: Workbench, method: str, params: str) -> None:
    with pytest.raises(psycopg2.Error, match="all 5 configurations failed") as caught:
        search(bench, "hopeless", compiles(DIVERGING), automl_method=method, automl_params=params)
    assert caught.value.pgcode == "MS001"
    assert "mst_key=5: the training loss" in str(caught.value.diag.message_detail)
    assert nothing_of(bench, "hopeless")


@pytest.mark.long
def test_a_search_that_ended_early_can_be_resumed(bench: Workbench, watcher: Workbench) -> None:
    session, before = bench.another(), watcher.last_run_id()
    caller = session.pid()
    params: dict[str, Any] = {"fits": LONG_VISITS, "automl_params": "R=9, eta=3", "random_state": 3}
    with session.calling(lambda: search(session, "cut", BOTH, **params)) as searching:
        eventually(lambda: watcher.newest_run() > before)
        run = watcher.newest_run()
        promoted = (
            "SELECT count(*) > 0 FROM cerebro.decision WHERE run_id = %s AND action = 'promote'"
        )
        eventually(lambda: watcher.value(promoted, run))
        watcher.rows("SELECT pg_cancel_backend(%s)", caller)
        with pytest.raises(psycopg2.Error) as caught:
            searching.result()
    assert caught.value.pgcode == "57014"
    session.close()
    eventually(lambda: not trainers({caller, *watcher.workers()}))
    assert nothing_of(watcher, "cut")
    assert watcher.value("SELECT status FROM cerebro.run WHERE run_id = %s", run) == "cancelled"
    bench.rows("SELECT cerebro.resume(%s)", run)
    assert bench.value("SELECT count(*) FROM cut_mst") == 1
    last = bench.value("SELECT epochs FROM cerebro.run_log WHERE run_id = %s", run)
    bench.fit("packed", "again", "cut_mst", last, schedule="replay", replay_run=run)
    held = "SELECT mst_key, model_weights FROM {} WHERE model_weights IS NOT NULL ORDER BY 1"
    found, again = (dict[int, bytes](bench.rows(held.format(name))) for name in ("cut", "again"))
    assert found and found == {key: again[key] for key in found}
    assert run_of(bench, "cut") == run
    assert not [name for name in states(bench) if name.startswith(f"r{run}_")]


@pytest.mark.long
def test_a_warm_start_from_a_search_is_refused_before_work(bench: Workbench) -> None:
    search(bench, "searched", automl_params="R=3")
    with pytest.raises(psycopg2.Error, match="is the output of madlib_automl") as caught:
        bench.fit("packed", "searched", "searched_mst", 1, warm_start=True)
    assert caught.value.pgcode == "42809" and "load_keras_model" in str(
        caught.value.diag.message_hint
    )


@pytest.mark.long
def test_an_error_after_the_search_leaves_nothing(bench: Workbench) -> None:
    """What the caller's transaction rolls back is gone, and its states can be removed."""
    bench.rows("BEGIN")
    search(bench, "undone", automl_params="R=3")
    bench.rows("ROLLBACK")
    assert not bench.exists(*(f"undone{suffix}" for suffix in OUTPUTS), "undone_mst")
    bench.rows("SELECT cerebro.vacuum_runs('0 s')")
    assert not states(bench)


@pytest.mark.long_for(method="hyperopt")
@pytest.mark.postgresql("on Greenplum a table that only the caller sees is refused")
@pytest.mark.parametrize("method", ["hyperband", "hyperopt"])
def test_a_table_that_only_the_caller_sees(bench: Workbench, method: str) -> None:
    bench.rows("BEGIN")
    bench.pack("own", 2)
    params = {"hyperband": "R=3", "hyperopt": "num_configs=3, num_iterations=1"}[method]
    search(bench, "private", source="own", automl_method=method, automl_params=params)
    assert bench.value("SELECT count(*) FROM private WHERE model_weights IS NOT NULL") >= 3
    run = run_of(bench, "private")
    bench.rows("COMMIT")
    assert not [name for name in states(bench) if name.startswith(f"r{run}_")]
    bench.rows(
        "DROP TABLE own, own_summary, private, private_info, private_summary, private_mst, "
        "private_mst_summary"
    )


@pytest.mark.long
def test_without_optuna_nothing_is_begun(
    bench: Workbench, shared_superuser: Workbench, folder: Path
) -> None:
    newest = bench.newest_run()
    with interpreter(shared_superuser, folder, WITHOUT_OPTUNA):
        with pytest.raises(psycopg2.Error, match="no configurations can be suggested") as caught:
            search(bench, "lacking", automl_method="hyperopt")
        assert caught.value.pgcode == "55000" and "optuna" in str(caught.value.diag.message_hint)
        assert nothing_of(bench, "lacking") and bench.newest_run() == newest
        search(bench, "banded_without", automl_params="R=3")
