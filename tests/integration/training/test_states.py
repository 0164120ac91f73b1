"""A config's state hops whole: nothing that training depends on is lost or changed on the way."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pytest
from models import NOISY, dense, sequential
from states import load, metadata, packed_rows, same, stored, tensors, trainer, weights
from workbench import Workbench, compile_text, setting, several

from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.run.request.visit_jobs import derive_seed
from cerebro_plpy.trainer_client.connection import TrainerConnection
from cerebro_plpy.trainer_client.process.launch import TrainerSpec

SEED = 11
OPTIMIZERS = ("Adam(learning_rate=0.01)", "SGD(learning_rate=0.05, momentum=0.9, nesterov=True)")


@pytest.fixture(scope="module")
def hopped(bench: Workbench) -> int:
    """Two optimizers with states of their own, on a model with dropout and moving averages; three
    segments.
    """
    model = bench.model(NOISY)
    bench.pack("hopped_packed", 3)
    bench.configure(
        "hopped_configs", [compile_text(o) for o in OPTIMIZERS], ["batch_size=5,epochs=2"], model
    )
    return bench.fit(
        "hopped_packed",
        "hopped",
        "hopped_configs",
        2,
        workers=2,
        seed=SEED,
        metrics_compute_frequency=1,
    )


@pytest.mark.parametrize("mst_key", [1, 2])
def test_a_state_holds_model_optimizer_generators_and_steps(
    bench: Workbench, hopped: int, mst_key: int
) -> None:
    state = stored(bench, "hopped", mst_key)
    shapes = [tensor.shape for tensor in tensors(state)]
    trainable = [(4, 8), (8,), (8,), (8,), (8, 3), (3,)]  # two kernels with biases, scale and shift
    assert all(shapes.count(shape) >= 2 for shape in set(trainable)), (
        "the optimizer keeps one or two of each"
    )
    whole = [tensor.shape for tensor in tensors(state) if np.issubdtype(tensor.dtype, np.integer)]
    assert sorted(whole) == [(), (2,)], (
        "the optimizer's steps, and the generator of the dropout layer"
    )
    steps = bench.value(
        "SELECT 2 * 2 * sum(ceil(x_shape[1] / 5.0)) FROM hopped_packed"
    )  # iterations, passes, batches
    assert int(metadata(state)["step"]) == steps
    assert len(json.loads(metadata(state)["weights"])) == 8, (
        "kernels, biases, and four of the normalisation"
    )


def test_hopping_equals_staying_in_one_trainer(bench: Workbench, hopped: int) -> None:
    threads = bench.value("SELECT DISTINCT threads FROM cerebro.visit WHERE run_id = %s", hopped)
    with trainer(
        TrainerConnection(TrainerSpec(sys.executable, threads=threads), lambda: None)
    ) as link:
        for (segment,) in bench.rows(
            "SELECT DISTINCT segment_id FROM cerebro.visit WHERE run_id = %s", hopped
        ):
            load(link, str(segment), packed_rows(bench, "hopped_packed", segment))
        for mst_key in (1, 2):
            visits = bench.rows(
                "SELECT epoch, segment_id FROM cerebro.visit WHERE run_id = %s AND mst_key = %s "
                "ORDER BY visit_no",
                hopped,
                mst_key,
            )
            assert len(visits) == 6
            for number, (epoch, segment) in enumerate(visits):
                link.call(visit(mst_key, number, epoch, segment))
                link.call({"do": "finish"})
            last = {"do": "state_get", "key": f"{mst_key}-{len(visits)}", "chunk_bytes": 1 << 20}
            assert same(stored(bench, "hopped", mst_key), b"".join(link.stream_chunks(last)))


def visit(mst_key: int, number: int, epoch: int, segment: int) -> dict[str, Any]:
    """The request that begins a visit on the state that the visit before it left."""
    compiled = parse_compile_params(compile_text(OPTIMIZERS[mst_key - 1])).to_json()
    program = {
        "architecture": json.loads(NOISY),
        "compile": compiled,
        "targets": [{"kind": "onehot", "classes": 3}],
    }
    return {
        "do": "begin",
        "job": "train",
        "program": program,
        "datasets": [str(segment)],
        "state": {
            "source": "kept" if number else "new",
            "key": f"{mst_key}-{number}",
            "seed": derive_seed(SEED, mst_key),
        },
        "result_key": f"{mst_key}-{number + 1}",
        "fit": {"batch_size": 5, "epochs": 2, "shuffle": True},
        "order": {"seed": SEED, "mst_key": mst_key, "epoch": epoch, "segment_id": segment},
    }


def test_model_weights_are_those_of_the_state(bench: Workbench, hopped: int) -> None:
    for mst_key, flat in bench.rows("SELECT mst_key, model_weights FROM hopped"):
        assert bytes(flat) == weights(stored(bench, "hopped", mst_key))


def test_the_log_says_how_large_the_state_is(bench: Workbench, hopped: int) -> None:
    for mst_key, size in bench.rows(
        "SELECT DISTINCT ON (mst_key) mst_key, state_bytes FROM cerebro.visit WHERE run_id = %s"
        " ORDER BY mst_key, visit_no DESC",
        hopped,
    ):
        assert size == len(stored(bench, "hopped", mst_key))


@pytest.mark.parametrize("alike", [True, False], ids=["alike", "drawn"])
@pytest.mark.parametrize("units", [1015, 1016])
def test_training_begins_from_the_weights_of_the_architecture(
    bench: Workbench, hopped: int, units: int, alike: bool
) -> None:
    """However many chunks they take, of which 1015 units fill the last, and however well they can
    be compressed.
    """
    values = (
        np.full(8 * units, 0.25) if alike else np.random.default_rng(units).normal(size=8 * units)
    )
    begun, name = values.astype("<f4").tobytes(), f"begun_{units}_{alike}"
    architecture = sequential(
        [4], dense(units, "hidden"), dense(3, "output", "softmax", use_bias=False)
    )
    bench.rows("SELECT load_keras_model('models', %s::json, %s)", architecture, begun)
    model = int(bench.value("SELECT max(model_id) FROM models"))
    bench.configure(f"{name}_configs", [compile_text("SGD(learning_rate=0.0)")], model=model)
    bench.fit("hopped_packed", name, f"{name}_configs", 1)
    assert bench.weights(name) == {1: begun}


@pytest.fixture(scope="module")
def rotated(bench: Workbench) -> dict[str, dict[int, bytes]]:
    """Weights by config of the same run twice, and with another seed."""
    bench.pack("rotated_packed", 3)
    bench.configure("rotated_configs", several(2))
    return {
        name: rotation(bench, name, seed, 2)
        for name, seed in (("once", 1), ("again", 1), ("seed", 2))
    }


def rotation(bench: Workbench, name: str, seed: int, workers: int) -> dict[int, bytes]:
    """The weights of such a run by config."""
    output, named = f"rotated_{name}", {"seed": seed, "workers": workers, "schedule": "rotation"}
    bench.fit("rotated_packed", output, "rotated_configs", 2, **named)
    return bench.weights(output)


@pytest.mark.checklist(25)
def test_same_seed_and_order_give_the_same_bits(rotated: dict[str, dict[int, bytes]]) -> None:
    assert rotated["once"] == rotated["again"]
    assert rotated["once"][1] != rotated["once"][2]


def test_another_seed_gives_other_weights(rotated: dict[str, dict[int, bytes]]) -> None:
    assert all(rotated["seed"][key] != rotated["once"][key] for key in (1, 2))


@pytest.mark.long
def test_the_number_of_workers_changes_nothing_but_the_threads(
    bench: Workbench, rotated: dict[str, dict[int, bytes]]
) -> None:
    others = rotation(bench, "workers", 1, 3)
    orders = bench.rows(
        "SELECT array_agg((mst_key, segment_id)::text ORDER BY mst_key, visit_no), max(threads)"
        " FROM cerebro.visit JOIN cerebro.run USING (run_id) WHERE spec ->> 'model_output_table' IN"
        " ('rotated_once', 'rotated_workers') GROUP BY run_id ORDER BY run_id"
    )
    (two, threads_of_two), (three, threads_of_three) = orders
    assert two == three, "a rotation does not depend on who is idle"
    if threads_of_two == threads_of_three:
        assert others == rotated["once"]


@pytest.mark.long
def test_a_run_without_a_seed_logs_the_one_it_drew(bench: Workbench, hopped: int) -> None:
    bench.pack("drawn_packed", 2)
    bench.configure("drawn_configs", several(1))
    first = bench.fit("drawn_packed", "drawn_first", "drawn_configs", 1, schedule="rotation")
    seed = int(bench.value("SELECT spec ->> 'seed' FROM cerebro.run WHERE run_id = %s", first))
    bench.fit("drawn_packed", "drawn_second", "drawn_configs", 1, schedule="rotation", seed=seed)
    assert bench.value(
        "SELECT a.model_weights = b.model_weights FROM drawn_first a, drawn_second b"
    )


@pytest.mark.long
@pytest.mark.checklist(21)
def test_data_too_large_to_keep_give_the_same_bits(
    bench: Workbench, rotated: dict[str, dict[int, bytes]]
) -> None:
    with setting(bench, "cache_mb", "0"):
        assert rotation(bench, "streamed", 1, 2) == rotated["once"]
