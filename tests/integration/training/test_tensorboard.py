"""The TensorBoard callback: what a superuser's run writes, and that nobody else's writes
anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import events
import pytest
from models import CLASSES
from roles import refused
from workbench import Workbench, compile_text

CONFIGURE = "SELECT madlib.load_model_selection_table('models', %s, ARRAY[1], %s, %s)"
BOARD = "batch_size=8,callbacks=[TensorBoard(log_dir='{}',histogram_freq=2{})]"


@pytest.fixture
def superuser(bench: Workbench, shared_superuser: Workbench) -> Workbench:
    """The session of the superuser, in which names are found."""
    if not bench.exists("packed"):
        bench.pack("packed", 2)
    shared_superuser.rows("SET search_path = public, madlib")
    return shared_superuser


@pytest.fixture
def logs(folder: Path) -> Iterator[Path]:
    """A folder that the server's user may write to, with the beginning of the names in it."""
    folder.chmod(0o777)
    yield folder / "segment_"


@pytest.mark.long
def test_what_is_written(superuser: Workbench, logs: Path) -> None:
    compiles = [compile_text(), "loss='mse',optimizer='SGD(learning_rate=0.01)'"]
    superuser.rows(CONFIGURE, "watched", compiles, [BOARD.format(logs, ",write_images=True")])
    superuser.messages()
    run = superuser.fit(
        "packed",
        "watched_model",
        "watched",
        3,
        seed=1,
        validation_table="packed",
        metrics_compute_frequency=1,
        schedule="rotation",
    )
    assert any(
        "TensorBoard is given write_images, without effect" in said for said in superuser.messages()
    )
    found = events.read(logs.parent)
    segments = superuser.value("SELECT segments FROM cerebro.run WHERE run_id = %s", run)
    folders = {
        f"segment_{segment}/run_{run}_mst_key_{key}" for segment in segments for key in (1, 2)
    }
    assert {entry[0].rpartition("/")[0] for entry in found} == folders
    visits = superuser.rows(
        "SELECT segment_id, mst_key, loss FROM cerebro.visit WHERE run_id = %s", run
    )
    written = sorted((place, value) for place, _, name, _, value in found if name == "visit_loss")
    logged = sorted(
        (f"segment_{segment}/run_{run}_mst_key_{key}/train", loss) for segment, key, loss in visits
    )
    assert [place for place, _ in written] == [place for place, _ in logged]
    assert [value for _, value in written] == pytest.approx([loss for _, loss in logged])
    losses = [entry for entry in found if entry[2] == "epoch_loss"]
    assert {entry[3] for entry in losses} == {1, 2, 3} and len(losses) == 2 * 2 * 2 * 3
    accuracies = {
        place.rpartition("/")[2] for place, _, name, _, _ in found if name == "epoch_accuracy"
    }
    assert accuracies == {"train", "validation"}
    shown = [entry for entry in found if entry[1] == "histograms"]
    assert len(shown) == 2 * 2 * 4, "the weights of the second epoch"
    assert all(sum(count for _, _, count in value) in (32, 8, 24, 3) for *_, value in shown)
    assert [entry[4] for entry in found if entry[1] == "graphs"] == [True] * 4
    weights = superuser.weights("watched_model")
    superuser.rows(CONFIGURE, "unwatched", compiles, ["batch_size=8"])
    superuser.fit("packed", "unwatched_model", "unwatched", 3, seed=1, schedule="rotation")
    assert superuser.weights("unwatched_model") == weights


@pytest.mark.long
def test_a_model_that_is_averaged_and_a_grid_that_has_it_as_a_text(
    superuser: Workbench, logs: Path
) -> None:
    """What is trained and what is measured is written; the mean itself is no training, and writes
    nothing.
    """
    call = "SELECT madlib_keras_fit('packed', 'averaged', 'models', 1, %s, %s, 2"
    one = ", metrics_compute_frequency => 1, workers => 1)"
    superuser.rows(call + one, compile_text(), BOARD.format(logs, ""))
    averaged = superuser.newest_run()
    superuser.rows(
        "SELECT madlib.generate_model_configs('models', 'board_grid', ARRAY[1], %s, %s)",
        "{'loss': ['mse'], 'optimizer': ['SGD']}",
        f"""{{'batch_size': [8], 'callbacks': ["[TensorBoard(log_dir='{logs}')]"]}}""",
    )
    of_grid = superuser.fit("packed", "board_grid_model", "board_grid", 1, workers=1)
    every = events.read(logs.parent)
    found, of_text = (
        [entry for entry in every if f"/run_{run}_" in entry[0]] for run in (averaged, of_grid)
    )
    visits = "SELECT segment_id, loss FROM cerebro.visit WHERE run_id = %s AND kind = 'train'"
    logged = superuser.rows(visits, averaged)
    written = [
        (place.split("/")[0], value) for place, _, name, _, value in found if name == "visit_loss"
    ]
    assert sorted(place for place, _ in written) == sorted(
        f"segment_{segment}" for segment, _ in logged
    )
    assert sorted(value for _, value in written) == pytest.approx(
        sorted(loss for _, loss in logged)
    )
    assert {entry[3] for entry in found if entry[2] == "epoch_loss"} == {1, 2}
    assert {entry[2] for entry in of_text} >= {"visit_loss", "epoch_loss"}
    assert len(found) + len(of_text) == len(every)


@pytest.mark.long
def test_a_folder_that_cannot_be_written_fails_the_configuration(superuser: Workbench) -> None:
    superuser.rows(CONFIGURE, "nowhere", [compile_text()], [BOARD.format("/proc/nowhere/", "")])
    error = refused(
        superuser, "SELECT madlib_fit_multiple_model('packed', 'o', 'nowhere', 1)", code="MS001"
    )
    assert "/proc/nowhere" in str(error)


def test_the_other_framework_writes_nothing(superuser: Workbench, logs: Path) -> None:
    superuser.rows(CONFIGURE, "jax_board", [compile_text()], [BOARD.format(logs, "")])
    for backend in ("jax", "auto"):
        call = (
            "SELECT madlib_fit_multiple_model('packed', 'o', 'jax_board', 1, backend => "
            f"'{backend}')"
        )
        assert "TensorBoard's files are written by" in str(refused(superuser, call, code="0A000"))
    assert not superuser.exists("o", "o_info")


def test_only_a_superuser_s(bench: Workbench, superuser: Workbench, logs: Path) -> None:
    """By its own tables, by tables of the superuser's, and by the functions on segments."""
    words, fit = "Only a superuser may use callbacks.", BOARD.format(logs, "")
    assert words in str(refused(bench, CONFIGURE, "mine", [compile_text()], [fit]))
    assert not bench.exists("mine", "mine_summary")
    bench.rows(
        "CREATE TABLE mine (mst_key, model_id, compile_params, fit_params) AS SELECT 1, 1, %s, %s",
        compile_text(),
        fit,
    )
    bench.rows("CREATE TABLE mine_summary AS SELECT 'models' AS model_arch_table")
    call = "SELECT madlib.madlib_fit_multiple_model('packed', 'o', 'mine', 1)"
    assert words in str(refused(bench, call))
    superuser.rows("SET ROLE cerebro")
    assert words in str(refused(superuser, call))
    superuser.rows("RESET ROLE")
    session = bench.another()
    session.rows(
        "SELECT cerebro_internal.trainer_start(%s)",
        json.dumps({"framework": "none", "trainers": 1}),
    )
    compiled = {
        "optimizer": {"class_name": "SGD", "config": {}},
        "loss": "categorical_crossentropy",
        "metrics": [],
    }
    program = {
        "architecture": json.loads(CLASSES),
        "compile": compiled,
        "targets": [{"kind": "onehot", "classes": 3}],
    }
    request = {
        "job": "evaluate",
        "program": program,
        "result_key": "mine",
        "datasets": [],
        "state": {"source": "new", "key": "", "seed": 1},
    }
    board = {
        "folder": str(logs),
        "epoch": 1,
        "histograms": True,
        "graph": True,
        "metrics": [],
        "datasets": {},
    }
    told: list[object] = [board, {}, [], "x", False]
    for callbacks in told:
        spec = json.dumps({**request, "callbacks": callbacks})
        assert words in str(refused(session, "SELECT cerebro_internal.job_begin(%s)", spec))
        assert words in str(refused(session, "SELECT cerebro_internal.metric_results(%s)", spec))
    session.close()
    assert list(logs.parent.iterdir()) == [] and not bench.exists("o")
