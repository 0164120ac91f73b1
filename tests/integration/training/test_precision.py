"""Mixed precision and GPUs as a run chooses them; on a machine without GPUs only what can be told
there.
"""

from __future__ import annotations

import json

import psycopg2
import pytest
from models import CLASSES
from workbench import Workbench, compile_text, setting

FIT_WORKERS = 1
ADAM = "Adam(learning_rate=0.02)"
ALONE = {"seed": 1, "schedule": "rotation"}


@pytest.fixture(scope="module")
def prepared(bench: Workbench) -> Workbench:
    """A packed table and a configuration."""
    bench.pack("packed", 2)
    bench.configure("configs", [compile_text(ADAM)], ["batch_size=8,epochs=3"])
    return bench


@pytest.fixture(scope="module")
def plain(prepared: Workbench) -> str:
    """A model that was trained without a policy; its name."""
    prepared.fit("packed", "plain", "configs", 3, **ALONE)
    return "plain"


def loss(bench: Workbench, name: str) -> float:
    return float(bench.value(f"SELECT training_loss_final FROM {name}_info"))


def weights(bench: Workbench, name: str) -> bytes:
    return bytes(bench.value(f"SELECT model_weights FROM {name}"))


@pytest.mark.long
@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_a_run_has_its_policy_to_the_end(prepared: Workbench, plain: str, policy: str) -> None:
    run = prepared.fit("packed", policy, "configs", 3, dtype_policy=policy, **ALONE)
    assert (
        prepared.value("SELECT spec ->> 'dtype_policy' FROM cerebro.run WHERE run_id = %s", run)
        == policy
    )
    assert prepared.value(f"SELECT dtype_policy FROM {policy}_summary") == policy
    prepared.rows(f"SELECT madlib_evaluate('{policy}', 'packed', '{policy}_again', mst_key => 1)")
    assert prepared.value(f"SELECT loss FROM {policy}_again") == loss(prepared, policy)
    prepared.rows(
        f"SELECT madlib_predict('{policy}', 'points', 'id', 'x', '{policy}_guesses', mst_key => 1)"
    )
    assert prepared.value(
        f"SELECT abs(sum(prob) - count(DISTINCT id)) < 1e-3 FROM {policy}_guesses"
    )
    again = prepared.fit(
        "packed", f"{policy}_replayed", "configs", 3, schedule="replay", replay_run=run
    )
    assert (
        prepared.value("SELECT spec ->> 'dtype_policy' FROM cerebro.run WHERE run_id = %s", again)
        == policy
    )
    assert weights(prepared, f"{policy}_replayed") == weights(prepared, policy)
    same = weights(prepared, plain) == weights(prepared, policy)
    assert same == (policy == "float32")
    assert loss(prepared, policy) == pytest.approx(loss(prepared, plain), rel=0.05)


@pytest.mark.long
def test_a_replay_has_no_other_policy(prepared: Workbench) -> None:
    run = prepared.fit("packed", "short", "configs", 1, dtype_policy="mixed_bfloat16")
    with pytest.raises(psycopg2.Error, match="dtype_policy is 'float32', but run") as error:
        prepared.fit(
            "packed", "o", "configs", 1, schedule="replay", replay_run=run, dtype_policy="float32"
        )
    assert error.value.pgcode == "22023"


@pytest.mark.long
def test_a_warm_start_may_change_the_policy(prepared: Workbench) -> None:
    """Scaled losses are a part of the optimizer's state: between those and others the weights go on
    alone.
    """
    prepared.fit("packed", "warm", "configs", 2, seed=1, dtype_policy="mixed_float16")
    for policy in ("mixed_float16", "mixed_bfloat16", None):
        before = loss(prepared, "warm")
        prepared.fit("packed", "warm", "configs", 2, seed=1, warm_start=True, dtype_policy=policy)
        assert prepared.value("SELECT dtype_policy FROM warm_summary") == policy
        assert loss(prepared, "warm") < before


@pytest.mark.long
def test_an_architecture_with_policies_of_its_own(prepared: Workbench) -> None:
    written = json.loads(CLASSES)
    for entry in written["config"]["layers"][1:-1]:
        entry["config"]["dtype"] = "mixed_bfloat16"
    prepared.configure(
        "own_configs", [compile_text(ADAM)], ["batch_size=8"], prepared.model(json.dumps(written))
    )
    found = {}
    for policy in (None, "mixed_bfloat16", "float32"):
        prepared.fit(
            "packed", f"own_{policy}", "own_configs", 1, seed=1, workers=1, dtype_policy=policy
        )
        found[policy] = weights(prepared, f"own_{policy}")
    assert found[None] == found["mixed_bfloat16"] != found["float32"]


CALLS = {
    "fit": "madlib_fit_multiple_model('packed', 'o', 'configs', 1, TRUE)",
    "evaluate": "madlib_evaluate('plain', 'packed', 'o', TRUE, 1)",
    "predict": "madlib_predict('plain', 'points', 'id', 'x', 'o', 'prob', TRUE, 1)",
}
DEVICES = {
    "none named": ("", "55000", "No GPUs configured on hosts."),
    "one that is not there": ("7", "55000", "the trainer finds no GPU 7"),
}


REFUSALS = [
    pytest.param(CALLS[call], *refusal, id=f"{call}-{name}")
    for call in CALLS
    for name, refusal in DEVICES.items()
    if (call, name) != ("evaluate", "one that is not there")  # that is the call of predict again
]


@pytest.mark.long_for(devices="7", call=CALLS["fit"])
@pytest.mark.parametrize(("call", "devices", "sqlstate", "words"), REFUSALS)
def test_a_gpu_that_is_not_there(
    prepared: Workbench, plain: str, call: str, devices: str, sqlstate: str, words: str
) -> None:
    with setting(prepared, "gpus", devices), pytest.raises(psycopg2.Error) as error:
        prepared.rows(f"SELECT {call}")
    assert (words in str(error.value.diag.message_primary), error.value.pgcode) == (
        True,
        sqlstate,
    ), str(error.value)
    assert not prepared.exists("o")


@pytest.mark.long
def test_named_gpus_change_nothing_for_who_wants_none(prepared: Workbench) -> None:
    with setting(prepared, "gpus", "0,1"):
        prepared.fit("packed", "on_processors", "configs", 1)
