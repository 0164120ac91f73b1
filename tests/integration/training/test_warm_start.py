"""Going on from an earlier call: by mst_key, from weights of the architecture table, with frozen
layers.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator

import psycopg2
import pytest
from models import dense, sequential
from workbench import Workbench, compile_text

ADAM, SGD = (
    compile_text("Adam(learning_rate=0.01)"),
    compile_text("SGD(learning_rate=0.05,momentum=0.9)"),
)

FIT_WORKERS = 1


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.pack("packed", 2)
    bench.configure("both", [ADAM, SGD], ["batch_size=8,shuffle=False"])


@pytest.fixture(scope="module")
def straight(bench: Workbench, tables: None) -> str:
    """The output of a run of three iterations."""
    bench.fit("packed", "straight", "both", 3, schedule="rotation", seed=1)
    return "straight"


@pytest.fixture(scope="module")
def begun(bench: Workbench, tables: None) -> int:
    """A run of two of three iterations."""
    return bench.fit("packed", "begun", "both", 2, schedule="rotation", seed=1)


@pytest.fixture
def half(bench: Workbench, begun: int) -> Iterator[str]:
    """A model table after two of three iterations."""
    bench.rows("SELECT cerebro.write_outputs(%s, 'half')", begun)
    yield "half"
    bench.rows("DROP TABLE half, half_info, half_summary")


@pytest.mark.checklist(22)
def test_known_keys_go_on_with_all_of_their_state(
    bench: Workbench, half: str, straight: str
) -> None:
    """Two iterations and another without shuffling are three: to the bit, momentum and Adam's slots
    included.
    """
    bench.fit("packed", half, "both", 1, schedule="rotation", seed=1, warm_start=True)
    assert bench.weights(half) == bench.weights(straight)
    assert bench.value(f"SELECT warm_start FROM {half}_summary") is True


def test_states_follow_a_model_that_is_renamed(bench: Workbench, half: str) -> None:
    """And are not dropped by mistake, nor for those of a new model of the old name."""
    with pytest.raises(psycopg2.errors.DependentObjectsStillExist):
        bench.rows(f"DROP TABLE {bench.states(half)}")
    before = bench.weights(half)
    for suffix in ("", "_info", "_summary"):
        bench.rows(f"ALTER TABLE half{suffix} RENAME TO renamed{suffix}")
    bench.fit("packed", half, "both", 1)
    bench.configure(
        "still",
        [compile_text("Adam(learning_rate=1e-30)"), compile_text("SGD(learning_rate=1e-30)")],
    )
    bench.fit("packed", "renamed", "still", 1, warm_start=True)
    assert bench.weights("renamed")[2] == before[2]
    bench.rows("DROP TABLE renamed, renamed_info, renamed_summary")


@pytest.mark.checklist(22)
def test_new_keys_start_fresh_and_removed_ones_vanish(bench: Workbench, half: str) -> None:
    before = bench.weights(half)
    bench.configure("changed", [ADAM, SGD, compile_text("RMSprop()")])
    bench.rows("DELETE FROM changed WHERE mst_key = 1")
    bench.fit("packed", half, "changed", 1, schedule="rotation", seed=1, warm_start=True)
    assert bench.weights(half).keys() == {2, 3}
    assert bench.rows(f"SELECT mst_key FROM {half}_info ORDER BY 1") == [(2,), (3,)]
    assert {key for (key,) in bench.rows(f"SELECT DISTINCT mst_key FROM {bench.states(half)}")} == {
        2,
        3,
    }
    assert bench.weights(half)[2] != before[2]
    bench.fit("packed", "fresh", "changed", 1, seed=1, schedule="rotation")
    assert bench.weights(half)[3] == bench.weights("fresh")[3]


def test_another_optimizer_takes_the_weights_alone(bench: Workbench, half: str) -> None:
    bench.configure("other_optimizer", [compile_text("SGD(learning_rate=1e-30)"), SGD])
    before = bench.weights(half)
    bench.fit("packed", half, "other_optimizer", 1, warm_start=True)
    assert bench.weights(half)[1] == before[1]  # a step of this size changes no float32


def test_epochs_are_counted_on(bench: Workbench) -> None:
    """One and one are two, to the bit: no order of rows, and no batch of a part of them, comes
    twice.
    """
    for name, fit in (("shuffled", "batch_size=8"), ("in_parts", "batch_size=8,steps_per_epoch=2")):
        bench.configure(name, [ADAM, SGD], [fit])
        settings = {"schedule": "rotation", "seed": 3}
        bench.fit("packed", f"{name}_two", name, 2, **settings)
        bench.fit("packed", f"{name}_one", name, 1, **settings)
        run = bench.fit("packed", f"{name}_one", name, 1, **settings, warm_start=True)
        assert bench.weights(f"{name}_one") == bench.weights(f"{name}_two")
        assert bench.value(
            "SELECT spec -> 'epochs_before' FROM cerebro.run WHERE run_id = %s", run
        ) == {"1": 1, "2": 1}
    assert bench.value("SELECT metrics_iters FROM in_parts_one_summary") == [1]


def test_a_replay_counts_as_the_run_did(bench: Workbench, shared_superuser: Workbench) -> None:
    """A run of a version that counted from one in each call is repeated so."""
    bench.configure("counted", [SGD], ["batch_size=8"])
    first = bench.fit("packed", "counting", "counted", 1, seed=4)
    warm = bench.fit("packed", "counting", "counted", 1, seed=4, warm_start=True)

    def replayed(name: str) -> dict[int, bytes]:
        bench.rows("SELECT cerebro.write_outputs(%s, %s)", first, name)
        bench.fit("packed", name, "counted", 1, warm_start=True, schedule="replay", replay_run=warm)
        return bench.weights(name)

    assert replayed("as_counted") == bench.weights("counting")
    shared_superuser.rows(
        "UPDATE cerebro.run_log SET spec = spec - 'epochs_before' WHERE run_id = %s", warm
    )
    assert replayed("from_one") != bench.weights("counting")


def with_architecture(bench: Workbench, name: str, architecture: str, *compiles: str) -> str:
    """A model selection table of the same keys and compile parameters, but for another
    architecture.
    """
    return bench.configure(
        name, compiles or [ADAM, SGD], ["batch_size=8,shuffle=False"], bench.model(architecture)
    )


def test_another_architecture_of_equal_weights_goes_on_to_the_bit(
    bench: Workbench, half: str, straight: str
) -> None:
    """Names of layers are none of what is learned."""
    with_architecture(
        bench, "renamed_layers", sequential([4], dense(8, "a"), dense(3, "b", "softmax"))
    )
    bench.messages()
    bench.fit("packed", half, "renamed_layers", 1, schedule="rotation", seed=1, warm_start=True)
    assert bench.weights(half) == bench.weights(straight)
    assert not [text for text in bench.messages() if "anew" in text]


def test_the_optimizer_begins_anew_where_other_weights_are_trained(
    bench: Workbench, half: str
) -> None:
    frozen = sequential([4], dense(8, "hidden", trainable=False), dense(3, "output", "softmax"))
    with_architecture(bench, "frozen", frozen)
    before = bench.weights(half)
    bench.messages()
    bench.fit("packed", half, "frozen", 1, warm_start=True)
    kept = 5 * 8 * 4
    for key, weights in bench.weights(half).items():
        assert weights[:kept] == before[key][:kept] and weights[kept:] != before[key][kept:]
    assert len([text for text in bench.messages() if "optimizer begins anew" in text]) == 2


def test_weights_of_other_shapes_are_refused_before_a_visit(bench: Workbench, half: str) -> None:
    with_architecture(
        bench, "wider", sequential([4], dense(9, "hidden"), dense(3, "output", "softmax"))
    )
    before = bench.last_run_id()
    with pytest.raises(
        psycopg2.errors.DatatypeMismatch, match=r"hidden/kernel \[4, 9\], received \[4, 8\]"
    ) as refusal:
        bench.fit("packed", half, "wider", 1, warm_start=True)
    run = bench.newest_run()
    assert run > before
    assert bench.value("SELECT count(*) FROM cerebro.visit WHERE run_id = %s", run) == 0
    error, hint = bench.row("SELECT error, hint FROM cerebro.run WHERE run_id = %s", run)
    assert "hidden/kernel" in error
    assert hint and hint == refusal.value.diag.message_hint


@pytest.mark.checklist(22)
def test_a_warm_start_needs_what_it_goes_on_from(bench: Workbench, half: str) -> None:
    with pytest.raises(psycopg2.errors.UndefinedTable) as caught:
        bench.fit("packed", "nothing", "both", 1, warm_start=True)
    assert caught.value.diag.message_primary
    bench.rows(f"ALTER TABLE {half}_summary DROP CONSTRAINT cerebro_states")
    with pytest.raises(psycopg2.errors.UndefinedTable) as caught:
        bench.fit("packed", half, "both", 1, warm_start=True)
    assert "states" in str(caught.value) and caught.value.diag.message_hint


@pytest.mark.checklist(23)
def test_weights_of_the_architecture_table_are_the_start(bench: Workbench) -> None:
    """With a learning rate that changes nothing, what comes out is what was loaded."""
    loaded = array("f", [number / 100 for number in range(1, 5 * 8 + 9 * 3 + 1)]).tobytes()
    architecture = bench.value("SELECT model_arch::text FROM models WHERE model_id = 1")
    bench.rows(
        "SELECT load_keras_model('models', %s::json, %s)", architecture, psycopg2.Binary(loaded)
    )
    model = int(bench.value("SELECT max(model_id) FROM models"))
    bench.configure("transferred_configs", [compile_text("SGD(learning_rate=1e-30)")], model=model)
    bench.fit("packed", "transferred", "transferred_configs", 2)
    assert bench.weights("transferred") == {1: loaded}


def test_frozen_layers_do_not_change_by_a_bit(bench: Workbench) -> None:
    frozen = json.loads(sequential([4], dense(8, "hidden"), dense(3, "output", "softmax")))
    frozen["config"]["layers"][1]["config"]["trainable"] = False
    bench.configure("frozen_configs", [ADAM], model=bench.model(json.dumps(frozen)))
    for iterations in (1, 2):
        bench.fit("packed", f"frozen_{iterations}", "frozen_configs", iterations, seed=3)
    one, two = (array("f", bench.weights(f"frozen_{n}")[1]) for n in (1, 2))
    assert one[:40] == two[:40]
    assert one[40:] != two[40:]
