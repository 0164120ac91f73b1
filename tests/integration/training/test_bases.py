"""Frozen weights stand once in a run, not in every state: the same bits come out, and whoever reads
a state has all.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

import numpy as np
import psycopg2
import pytest
from models import dense, layer, sequential
from processes import eventually, trainers
from states import load, metadata, packed_rows, same, stored, trainer, weights
from workbench import Workbench, several

from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.run.request.visit_jobs import derive_seed
from cerebro_plpy.trainer_client.connection import TrainerConnection
from cerebro_plpy.trainer_client.process.launch import TrainerSpec

pytestmark = pytest.mark.postgresql("on Greenplum each state has all of its weights")
FIT_WORKERS = 1
FROZEN = {"trainable": False}
MIDDLE = (
    dense(600, "wide", **FROZEN),
    layer("BatchNormalization", "normal", **FROZEN),
    dense(500, "narrow", "tanh", **FROZEN),
)
NETWORKS = (
    sequential(
        [4],
        dense(8, "first"),
        *MIDDLE,
        layer("Dropout", "drop", rate=0.3),
        dense(3, "output", "softmax"),
    ),
    sequential([4], dense(8, "first"), *MIDDLE, dense(5, "hidden"), dense(3, "output", "softmax")),
)
"""What is trained stands on both sides of what is not, and is not the same number of variables."""
MIDDLE_FLOATS = 9 * 600 + 4 * 600 + 601 * 500
SIZES = ((5 * 8, 501 * 3), (5 * 8, 501 * 5 + 6 * 3))
SEED = 5
OPTIMIZERS = several(1)
BASES = (
    "SELECT count(*) FROM pg_class WHERE relnamespace = 'cerebro_state'::regnamespace AND relname "
    "~ '^r[0-9]+_z_'"
)
TABLES = (
    "SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relnamespace = "
    "'cerebro_state'::regnamespace AND relname ~ ('^r' || %s::bigint || '_') ORDER BY relname"
)


def flat(number: int) -> bytes:
    """Weights of a network, of which those in the middle are the same for both."""
    draw = np.random.default_rng(2)
    middle = draw.normal(size=MIDDLE_FLOATS).astype("<f4") / 20
    middle[9 * 600 + 3 * 600 : 9 * 600 + 4 * 600] = 1  # the variances
    first, last = (draw.normal(size=size).astype("<f4") / 3 for size in SIZES[number])
    return np.concatenate([first, middle, last]).tobytes()


@pytest.fixture(scope="module")
def run(bench: Workbench) -> int:
    """Two heads, which hop between three segments."""
    for number, network in enumerate(NETWORKS):
        bench.rows("SELECT load_keras_model('models', %s::json, %s)", network, flat(number))
    bench.pack("packed", 3)
    bench.rows(
        "SELECT load_model_selection_table('models', 'mst', ARRAY[2, 3], %s, "
        "ARRAY['batch_size=8'])",
        OPTIMIZERS,
    )
    return fit(bench, "heads")


def fit(bench: Workbench, output: str, **named: object) -> int:
    return bench.fit(
        "packed", output, "mst", 2, **{"seed": SEED, "workers": 2, "schedule": "rotation", **named}
    )


def straight(bench: Workbench, link: TrainerConnection, run_id: int, mst_key: int) -> bytes:
    """The state that the visits of a configuration come to within one trainer, whole."""
    visits = bench.rows(
        "SELECT epoch, segment_id FROM cerebro.visit WHERE run_id = %s AND mst_key = %s ORDER BY "
        "visit_no",
        run_id,
        mst_key,
    )
    (text, number) = bench.row(
        "SELECT compile_params, model_id - 2 FROM mst WHERE mst_key = %s", mst_key
    )
    for step, (epoch, segment) in enumerate(visits):
        link.call(begin(NETWORKS[number], text, mst_key, step, epoch, segment))
        if not step:
            link.send({"do": "state"}, flat(number))
        link.call({"do": "finish"})
    last = {"do": "state_get", "key": f"{mst_key}-{len(visits)}", "chunk_bytes": 1 << 20}
    return b"".join(link.stream_chunks(last))


def begin(
    network: str, text: str, mst_key: int, step: int, epoch: int, segment: int
) -> dict[str, Any]:
    program = {
        "architecture": json.loads(network),
        "compile": parse_compile_params(text).to_json(),
        "targets": [{"kind": "onehot", "classes": 3}],
    }
    return {
        "do": "begin",
        "job": "train",
        "program": program,
        "datasets": [str(segment)],
        "state": {
            "source": "kept" if step else "weights",
            "key": f"{mst_key}-{step}",
            "seed": derive_seed(SEED, mst_key),
        },
        "result_key": f"{mst_key}-{step + 1}",
        "fit": {"batch_size": 8, "epochs": 1, "shuffle": True},
        "order": {"seed": SEED, "mst_key": mst_key, "epoch": epoch, "segment_id": segment},
    }


def test_the_same_bits_come_out_as_within_one_trainer(bench: Workbench, run: int) -> None:
    threads = bench.value("SELECT DISTINCT threads FROM cerebro.visit WHERE run_id = %s", run)
    with trainer(
        TrainerConnection(TrainerSpec(sys.executable, threads=threads), lambda: None)
    ) as link:
        for (segment,) in bench.rows(
            "SELECT DISTINCT segment_id FROM cerebro.visit WHERE run_id = %s", run
        ):
            load(link, str(segment), packed_rows(bench, "packed", segment))
        for (mst_key,) in bench.rows("SELECT mst_key FROM mst ORDER BY mst_key"):
            found = stored(bench, "heads", mst_key)
            assert metadata(found)["format"] == "cerebro_db.state/2"
            assert same(found, straight(bench, link, run, mst_key))
            assert bench.weights("heads")[mst_key] == weights(found)


def test_frozen_weights_stand_once_for_all_configurations(bench: Workbench, run: int) -> None:
    tables: dict[str, int] = dict(bench.rows(TABLES, run))
    (base,) = (size for name, size in tables.items() if "_z_" in name)
    assert base >= 4 * MIDDLE_FLOATS
    states = [size for name, size in tables.items() if "_c" in name]
    assert len(states) == 2, "the newest of each"
    assert max(states) < 4 * MIDDLE_FLOATS / 10
    visits = "SELECT state_bytes FROM cerebro.visit WHERE run_id = %s AND state_table IS NOT NULL"
    stored_bytes = [size for (size,) in bench.rows(visits, run)]
    assert len(stored_bytes) >= 2 and max(stored_bytes) < 4 * MIDDLE_FLOATS / 10


def test_a_hop_does_not_read_them_again(bench: Workbench, run: int) -> None:
    read = bench.rows("SELECT visit_no, read_bytes FROM cerebro.visit WHERE run_id = %s", run)
    assert sum(size >= 4 * MIDDLE_FLOATS for _, size in read) <= 2 + 2, (
        "the architecture's weights, and once a worker"
    )


def test_a_replay_comes_to_the_same_bits_and_averages_share_them_too(
    bench: Workbench, run: int
) -> None:
    fit(bench, "again", schedule="replay", replay_run=run)
    assert bench.weights("again") == bench.weights("heads")
    averaged = fit(bench, "averaged", schedule="longest", strategy="average")
    assert len({size for name, size in bench.rows(TABLES, averaged) if "_z_" in name}) == 1
    assert all(
        found[4 * 40 :][: 4 * MIDDLE_FLOATS] == middle()
        for found in bench.weights("averaged").values()
    )


def middle() -> bytes:
    return flat(0)[4 * 40 :][: 4 * MIDDLE_FLOATS]


def test_a_warm_start_reads_states_of_the_older_format(bench: Workbench, run: int) -> None:
    """That of version 1 has its tensors in the order of their positions, all in one table."""
    bench.rows("SELECT cerebro.write_outputs(%s, 'older')", run)
    for (mst_key,) in bench.rows("SELECT mst_key FROM older ORDER BY 1"):
        replace(bench, bench.states("older"), older(stored(bench, "older", mst_key)), mst_key)
    warm = fit(bench, "heads", warm_start=True)
    fit(bench, "older", warm_start=True, schedule="replay", replay_run=warm)
    assert bench.weights("heads") == bench.weights("older")


def older(state: bytes) -> bytes:
    """A state as versions before 0.3.0 have written it."""
    length = int.from_bytes(state[:8], "little")
    header, data = json.loads(state[8 : 8 + length]), state[8 + length :]
    about = {**header.pop("__metadata__"), "format": "cerebro_db.state/1"}
    del about["base"]
    made: dict[str, Any] = {"__metadata__": about}
    found = b""
    for name in sorted(header):
        begin, end = header[name]["data_offsets"]
        made[name] = {**header[name], "data_offsets": [len(found), len(found) + end - begin]}
        found += data[begin:end]
    text = json.dumps(made).encode()
    return len(text).to_bytes(8, "little") + text + found


def replace(bench: Workbench, table: str, state: bytes, mst_key: int | None = None) -> None:
    """Let a table have this state."""
    key = [] if mst_key is None else [mst_key]
    bench.rows(f"DELETE FROM {table} {'WHERE mst_key = %s' if key else ''}", *key)
    for part, start in enumerate(range(0, len(state), 8120), 1):
        holes = ", ".join(["%s"] * (len(key) + 2))
        bench.rows(f"INSERT INTO {table} VALUES ({holes})", *key, part, state[start : start + 8120])


def whole(bench: Workbench, table: str, base: str) -> bytes:
    found = [
        row
        for name in (table, base)
        for row in bench.rows(f"SELECT chunk FROM {name} ORDER BY part")
    ]
    return b"".join(bytes(chunk) for (chunk,) in found)


@pytest.fixture(scope="module")
def slow(bench: Workbench, run: int) -> str:
    """Configurations that take long enough to be disturbed."""
    fits = ["batch_size=1,epochs=24"]
    bench.rows(
        "SELECT load_model_selection_table('models', 'slow', ARRAY[2, 3], %s, %s)", OPTIMIZERS, fits
    )
    return "slow"


@pytest.mark.long
def test_a_run_goes_on_after_kills_also_from_a_state_of_the_older_format(
    bench: Workbench, slow: str
) -> None:
    watcher, before = bench.another(), bench.last_run_id()
    named = {"seed": SEED, "workers": 2, "schedule": "rotation"}
    with bench.fitting("packed", "late", slow, 2, **named) as fitted:
        eventually(lambda: watcher.newest_run() > before)
        late = watcher.newest_run()
        completed = "SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND status = 'completed'"
        eventually(lambda: watcher.value(completed, late) >= 2)
        os.kill(min(trainers(watcher.workers())), signal.SIGKILL)
        eventually(lambda: watcher.value(completed, late) >= 4)
        watcher.rows("SELECT pg_cancel_backend(%s)", bench.pid())
        with pytest.raises(psycopg2.Error):
            fitted.result()
    newest = (
        "SELECT DISTINCT ON (mst_key) visit_no, mst_key, state_table, base_table FROM cerebro.visit"
    )
    newest += " WHERE run_id = %s AND status = 'completed' ORDER BY mst_key, visit_no DESC"
    (visit_no, mst_key, table, base) = watcher.rows(newest, late)[0]
    replace(watcher, table, older(whole(watcher, table, base)))
    old = (
        "UPDATE cerebro.visit SET base_table = NULL WHERE (run_id, mst_key, visit_no) = (%s, %s, "
        "%s)"
    )
    watcher.rows(old, late, mst_key, visit_no)
    watcher.rows("SELECT cerebro.resume(%s)", late)
    bench.fit("packed", "late_again", slow, 2, schedule="replay", replay_run=late)
    assert bench.weights("late_again") == bench.weights("late")
    assert sum("_z_" in name for name, _ in bench.rows(TABLES, late)) == 1
    watcher.close()


@pytest.mark.long
def test_a_clone_begins_from_a_whole_copy_and_shares_them_again(
    bench: Workbench, slow: str
) -> None:
    person, before = bench.another(), bench.last_run_id()
    named = {"seed": SEED, "workers": 2, "schedule": "rotation", "metrics_compute_frequency": 1}
    with bench.fitting("packed", "cloned", slow, 2, **named) as fitted:
        eventually(lambda: person.newest_run() > before)
        cloned = person.newest_run()
        begun = (
            "SELECT count(*) > 0 FROM cerebro.visit WHERE (run_id, mst_key, status) = (%s, 1, "
            "'completed')"
        )
        eventually(lambda: person.value(begun, cloned))
        person.value("SELECT cerebro.clone_config(%s, 1, '{\"batch_size\": 2}')", cloned)
        fitted.result()
    person.close()
    assert sum("_z_" in name for name, _ in bench.rows(TABLES, cloned)) == 1
    assert len(bench.weights("cloned")) == 3
    bench.fit("packed", "cloned_again", slow, 2, schedule="replay", replay_run=cloned)
    assert bench.weights("cloned") == bench.weights("cloned_again")
    assert all(
        found[4 * 40 :][: 4 * MIDDLE_FLOATS] == middle()
        for found in bench.weights("cloned").values()
    )


def test_who_comes_second_waits_and_finds_them(bench: Workbench, run: int) -> None:
    """Another session of the same role is in the midst of storing them: a worker, as far as anybody
    can see.
    """
    (base,) = (name for name, _ in bench.rows(TABLES, run) if "_z_" in name)
    first, watcher = bench.another(), bench.another()
    next_run = first.value("SELECT nextval('cerebro.run_log_run_id_seq') + 1")
    made = base.replace(f"r{run}_", f"r{next_run}_")
    first.rows("BEGIN")
    first.rows(f"CREATE TABLE cerebro_state.{made} AS SELECT * FROM cerebro_state.{base}")
    named = {"seed": SEED, "workers": 2, "schedule": "replay", "replay_run": run}
    with bench.fitting("packed", "second", "mst", 2, **named) as fitted:
        eventually(
            lambda: watcher.rows(
                "SELECT FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted"
            )
        )
        first.rows("COMMIT")
        fitted.result()
    assert [name for name, _ in bench.rows(TABLES, bench.newest_run()) if "_z_" in name] == [made]
    assert bench.weights("second") == bench.weights("again")
    failed = "SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND status = 'failed'"
    assert bench.value(failed, bench.newest_run()) == 0
    for session in (first, watcher):
        session.close()


def test_a_run_in_the_callers_own_session_shares_them(bench: Workbench, run: int) -> None:
    """What only its transaction sees goes with it."""
    bench.rows("BEGIN")
    for name in ("", "_summary"):
        bench.rows(f"CREATE TABLE mine{name} AS SELECT * FROM packed{name}")
    bench.fit("mine", "own", "mst", 2, seed=SEED, workers=None)
    own = bench.newest_run()
    assert sum("_z_" in name for name, _ in bench.rows(TABLES, own)) == 1
    assert all(
        found[4 * 40 :][: 4 * MIDDLE_FLOATS] == middle() for found in bench.weights("own").values()
    )
    bench.rows("ROLLBACK")
    assert not any("_z_" in name for name, _ in bench.rows(TABLES, own))


def test_a_best_state_shares_them_too(bench: Workbench, run: int) -> None:
    stopping = (
        "callbacks=[EarlyStopping(monitor='loss', mode='max', patience=2, "
        "restore_best_weights=True)]"
    )
    bench.rows(
        "SELECT load_model_selection_table('models', 'worse', ARRAY[2, 3], %s, %s)",
        OPTIMIZERS,
        [f"batch_size=8,{stopping}"],
    )
    for schedule in ("rotation", "longest"):  # one by one, and in tours
        name = f"worse_{schedule}"
        named = {"metrics_compute_frequency": 1, "seed": SEED, "workers": 2, "schedule": schedule}
        best = bench.fit("packed", name, "worse", 3, **named)
        assert bench.rows(
            "SELECT DISTINCT best_epoch FROM cerebro.config WHERE run_id = %s", best
        ) == [(1,)]
        sizes: dict[str, int] = dict(bench.rows(TABLES, best))
        assert len([1 for table in sizes if "_b_" in table]) == 2
        assert max(size for table, size in sizes.items() if "_c" in table) < 4 * MIDDLE_FLOATS / 10
        assert all(
            found[4 * 40 :][: 4 * MIDDLE_FLOATS] == middle()
            for found in bench.weights(name).values()
        )
        for key, loss in bench.rows(f"SELECT mst_key, training_loss[1] FROM {name}_info"):
            bench.rows(
                f"SELECT madlib_evaluate('{name}', 'packed', '{name}_{key}', mst_key => {key})"
            )
            assert bench.value(f"SELECT loss FROM {name}_{key}") == pytest.approx(loss, abs=1e-6)


def test_nothing_is_left_of_a_run_that_is_dropped(bench: Workbench, run: int) -> None:
    assert bench.value(BASES) > 1
    for (each,) in bench.rows("SELECT run_id FROM cerebro.run WHERE run_id <> %s", run):
        bench.rows("SELECT cerebro.drop_run(%s)", each)
    assert bench.value(BASES) == 1
    bench.rows("SELECT cerebro.vacuum_runs('0 seconds')")
    assert bench.value(BASES) == 0 and not bench.rows(TABLES, run)
