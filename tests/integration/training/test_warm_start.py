"""Going on from an earlier call: by mst_key, from weights of the architecture table, with frozen layers."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator

import psycopg2
import pytest
from models import dense, sequential
from workbench import Workbench, compile_text

ADAM, SGD = compile_text("Adam(learning_rate=0.01)"), compile_text("SGD(learning_rate=0.05,momentum=0.9)")


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.pack("packed", 2)
    bench.configure("both", [ADAM, SGD], ["batch_size=8,shuffle=False"])


@pytest.fixture
def half(bench: Workbench) -> Iterator[str]:
    """A model table after two of four iterations."""
    bench.fit("packed", "half", "both", 2, schedule="rotation", seed=1)
    yield "half"
    bench.rows("DROP TABLE half, half_info, half_summary, half_state")


@pytest.mark.checklist(22)
def test_known_keys_go_on_with_all_of_their_state(bench: Workbench, half: str) -> None:
    """Two and two iterations without shuffling are four: to the bit, momentum and Adam's slots included."""
    bench.fit("packed", "whole", "both", 4, schedule="rotation", seed=1)
    bench.fit("packed", half, "both", 2, schedule="rotation", seed=1, warm_start=True)
    assert bench.weights(half) == bench.weights("whole")
    assert bench.value(f"SELECT warm_start FROM {half}_summary") is True


@pytest.mark.checklist(22)
def test_new_keys_start_fresh_and_removed_ones_vanish(bench: Workbench, half: str) -> None:
    before = bench.weights(half)
    bench.configure("changed", [ADAM, SGD, compile_text("RMSprop()")])
    bench.rows("DELETE FROM changed WHERE mst_key = 1")
    bench.fit("packed", half, "changed", 1, schedule="rotation", seed=1, warm_start=True)
    assert bench.weights(half).keys() == {2, 3}
    assert bench.rows(f"SELECT mst_key FROM {half}_info ORDER BY 1") == [(2,), (3,)]
    assert {key for (key,) in bench.rows(f"SELECT DISTINCT mst_key FROM {half}_state")} == {2, 3}
    assert bench.weights(half)[2] != before[2]
    bench.fit("packed", "fresh", "changed", 1, seed=1, schedule="rotation")
    assert bench.weights(half)[3] == bench.weights("fresh")[3]


def test_another_optimizer_takes_the_weights_alone(bench: Workbench, half: str) -> None:
    bench.configure("other_optimizer", [compile_text("SGD(learning_rate=1e-30)"), SGD])
    before = bench.weights(half)
    bench.fit("packed", half, "other_optimizer", 1, warm_start=True)
    assert bench.weights(half)[1] == before[1]  # a step of this size changes no float32


@pytest.mark.checklist(22)
def test_a_warm_start_needs_what_it_goes_on_from(bench: Workbench, half: str) -> None:
    with pytest.raises(psycopg2.errors.UndefinedTable) as caught:
        bench.fit("packed", "nothing", "both", 1, warm_start=True)
    assert caught.value.diag.message_primary
    bench.rows(f"ALTER TABLE {half}_state RENAME TO hidden")
    try:
        with pytest.raises(psycopg2.errors.UndefinedTable) as caught:
            bench.fit("packed", half, "both", 1, warm_start=True)
        assert "_state" in str(caught.value) and caught.value.diag.message_hint
    finally:
        bench.rows(f"ALTER TABLE hidden RENAME TO {half}_state")


@pytest.mark.checklist(23)
def test_weights_of_the_architecture_table_are_the_start(bench: Workbench) -> None:
    """With a learning rate that changes nothing, what comes out is what was loaded."""
    loaded = array("f", [number / 100 for number in range(1, 5 * 8 + 9 * 3 + 1)]).tobytes()
    architecture = bench.value("SELECT model_arch::text FROM models WHERE model_id = 1")
    bench.rows("SELECT load_keras_model('models', %s::json, %s)", architecture, psycopg2.Binary(loaded))
    model = int(bench.value("SELECT max(model_id) FROM models"))
    bench.configure("transferred_configs", [compile_text("SGD(learning_rate=1e-30)")], model=model)
    bench.fit("packed", "transferred", "transferred_configs", 2)
    assert bench.weights("transferred") == {1: loaded}


def test_frozen_layers_do_not_change_by_a_bit(bench: Workbench) -> None:
    frozen = json.loads(sequential([4], dense(8, "hidden"), dense(3, "output", "softmax")))
    frozen["config"]["layers"][1]["config"]["trainable"] = False
    bench.configure("frozen_configs", [ADAM], model=bench.model(json.dumps(frozen)))
    for iterations in (1, 5):
        bench.fit("packed", f"frozen_{iterations}", "frozen_configs", iterations, seed=3)
    one, five = (array("f", bench.weights(f"frozen_{n}")[1]) for n in (1, 5))
    assert one[:40] == five[:40]
    assert one[40:] != five[40:]
