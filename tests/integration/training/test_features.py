"""What frozen layers give is computed once: the same models come out, and nothing else that a user
sees changes.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import psycopg2
import pytest
from models import dense, layer, sequential
from processes import eventually
from roles import another_role, own_schema
from workbench import Workbench, setting, several

pytestmark = pytest.mark.postgresql("on Greenplum nothing is stored")
FIT_WORKERS = 1
FROZEN = {"trainable": False}
WIDTH = 256
FRONT = (
    dense(WIDTH, "first", **FROZEN),
    layer("BatchNormalization", "normal", **FROZEN),
    dense(6, "second", "tanh", **FROZEN),
)
HEADS = (
    sequential([4], *FRONT, dense(3, "output", "softmax")),
    sequential(
        [4],
        *FRONT,
        layer("Dropout", "drop", rate=0.3),
        dense(5, "hidden"),
        dense(3, "output", "softmax"),
    ),
)
FRONT_FLOATS = 5 * WIDTH + 4 * WIDTH + (WIDTH + 1) * 6
HEAD_FLOATS = (7 * 3, 7 * 5 + 6 * 3)
BUDGET = 1
PLAIN = 0
ITERATIONS = 3
LEFT = (
    "SELECT count(*) FROM pg_class WHERE relnamespace = 'cerebro_state'::regnamespace AND relname "
    "~ '_f[0-9]+_'"
)
LEFT_TABLES = (
    LEFT.replace("count(*)", "string_agg(oid::regclass::text, ', ' ORDER BY oid)")
    + " AND relkind = 'r'"
)


@pytest.fixture(scope="module", autouse=True)
def heads(bench: Workbench) -> None:
    """Points in three segments, half of them for validation too, and two heads on a frozen front
    with weights.
    """
    draw = np.random.default_rng(1)
    front = draw.normal(size=FRONT_FLOATS).astype("<f4") / 3
    front[8 * WIDTH : 9 * WIDTH] = 1  # the variances
    for head, floats in zip(HEADS, HEAD_FLOATS, strict=True):
        weights = np.concatenate([front, draw.normal(size=floats).astype("<f4")]).tobytes()
        bench.rows("SELECT load_keras_model('models', %s::json, %s)", head, weights)
    bench.pack("packed", 3)
    bench.rows("CREATE TABLE half AS SELECT * FROM points WHERE id % 2 = 0")
    bench.rows("SELECT validation_preprocessor_dl('half', 'packed_val', 'label', 'x', 'packed', 8)")
    bench.rows(
        "SELECT load_model_selection_table('models', 'mst', ARRAY[2, 3], %s, "
        "ARRAY['batch_size=8'])",
        several(2),
    )
    bench.configure("alike", several(2), model=2)


def fit(bench: Workbench, output: str, **named: object) -> int:
    options = {"seed": 3, "validation_table": "packed_val", "metrics_compute_frequency": 1, **named}
    return bench.fit("packed", output, "mst", ITERATIONS, **options)


def cuts(bench: Workbench, run_id: int) -> list[str | None]:
    """On what each configuration of a run was trained."""
    rows = bench.rows(
        "SELECT cut FROM cerebro.config_log WHERE run_id = %s ORDER BY mst_key", run_id
    )
    return [cut for (cut,) in rows]


def metrics(bench: Workbench, run_id: int) -> np.ndarray:
    """All metrics of a run."""
    query = (
        "SELECT value FROM cerebro.metric WHERE run_id = %s ORDER BY mst_key, epoch, dataset, name"
    )
    return np.array([value for (value,) in bench.rows(query, run_id)])


def weights(bench: Workbench, table: str) -> dict[int, np.ndarray]:
    return {key: np.frombuffer(value, "<f4") for key, value in bench.weights(table).items()}


@pytest.fixture(scope="module")
def plain(bench: Workbench) -> int:
    """A run that stores nothing; its output is `plain`."""
    return fit(bench, "plain", feature_budget=PLAIN)


@pytest.fixture(scope="module")
def stored(bench: Workbench) -> int:
    """A run that stores what the frozen layers give; its output is `stored`."""
    return fit(bench, "stored", feature_budget=BUDGET)


def test_the_same_models_come_out(bench: Workbench, plain: int, stored: int) -> None:
    assert cuts(bench, plain) == [None] * 4 and cuts(bench, stored) == ["second"] * 4
    one, other = weights(bench, "plain"), weights(bench, "stored")
    for key in one:
        assert (one[key][:FRONT_FLOATS] == other[key][:FRONT_FLOATS]).all()
        np.testing.assert_allclose(one[key], other[key], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(metrics(bench, plain), metrics(bench, stored), rtol=1e-5, atol=1e-6)
    orders = (
        "SELECT mst_key, epoch, segment_id, rows FROM cerebro.visit WHERE run_id = %s ORDER BY 1, "
        "2, 3"
    )
    assert bench.rows(orders, plain) == bench.rows(orders, stored)
    assert bench.value(LEFT) == 0


def planned(bench: Workbench, table: str = "mst", **named: object) -> dict[str, Any]:
    """The plan of such a fit."""
    options = {
        "seed": 3,
        "workers": 1,
        "validation_table": "packed_val",
        "metrics_compute_frequency": 1,
        **named,
    }
    arguments = "".join(f", {name} => %s" for name in options)
    call = f"SELECT cerebro.plan_fit('packed', %s, %s{arguments}, format => 'json')"
    ((root,),) = [
        node.values()
        for node in json.loads(bench.value(call, table, ITERATIONS, *options.values()))
    ]
    return dict(root)


def layers(root: dict[str, Any]) -> list[dict[str, Any]]:
    """What a plan says of frozen layers."""
    return [each for each in root["Plans"] if each["Node Type"] == "Features"]


def test_a_plan_says_what_would_be_stored(bench: Workbench) -> None:
    bench.rows("SELECT cerebro.drop_features()")
    bench.rows(
        "SELECT load_model_selection_table('models', 'others', ARRAY[2, 3], %s, "
        "ARRAY['batch_size=7'])",
        several(2),
    )
    alone = {"schedule": "rotation"}  # what several took in one job is not what one takes
    named = {"seed": 3, "validation_table": "packed_val", "metrics_compute_frequency": 1, **alone}
    with setting(bench, "price_per_core_hour", "3600"):
        assert layers(planned(bench, "others", feature_budget=PLAIN, **alone)) == []
        before = planned(bench, "others", feature_budget=BUDGET, **alone)
        run = bench.fit(
            "packed", "as_planned", "others", ITERATIONS, feature_budget=BUDGET, **named
        )
        after = json.loads(bench.value("SELECT cerebro.plan_of(%s, 'json')", run))[0]["Plan"]
        again = planned(bench, "others", feature_budget=BUDGET, **alone)
        spent = bench.value("SELECT sum(money) FROM cerebro.cost WHERE run_id = %s", run)
    (found,) = layers(before)
    assert (found["Layer"], found["Configs"]) == ("second", 4)
    assert cuts(bench, run) == [found["Layer"]] * 4
    rows = bench.value("SELECT (SELECT count(*) FROM points) + (SELECT count(*) FROM half)")
    assert (found["Rows"], found["Stored"]) == (rows, rows * 6 * 4), "six numbers of four bytes"
    assert layers(after) == [found] and found["Time"] > 0
    assert before["At most"] > 0 and before["Most Cost"] > 0, "what lies behind was not timed yet"
    assert after["Actual Cost"] == pytest.approx(spent) and spent > 0
    assert {each["Known"] for each in again["Plans"] if each["Node Type"] == "Program"} == {
        "measured in an earlier run"
    }
    assert again["Expected"] > 0 and again["Expected Cost"] > 0
    assert bench.value(LEFT) == 0


@pytest.mark.long
def test_a_replay_gives_the_same_bits(bench: Workbench, plain: int, stored: int) -> None:
    """It stores what the run had stored, whatever it is told to store."""
    bench.rows("SELECT cerebro.drop_features()")
    again = fit(
        bench, "again", schedule="replay", replay_run=stored, feature_budget=PLAIN, seed=None
    )
    assert cuts(bench, again) == cuts(bench, stored) == ["second"] * 4
    assert bench.weights("again") == bench.weights("stored")
    without = fit(
        bench,
        "without_again",
        schedule="replay",
        replay_run=plain,
        feature_budget=BUDGET,
        seed=None,
    )
    assert cuts(bench, without) == [None] * 4
    assert bench.weights("without_again") == bench.weights("plain")


@pytest.mark.long
def test_a_run_that_was_cancelled_goes_on_to_the_same_bits(bench: Workbench) -> None:
    """Also while a backup reads what its first attempt has stored."""
    named = {"schedule": "rotation", "seed": 5, "feature_budget": BUDGET}
    bench.configure("long", several(2), ["batch_size=1,epochs=24"], 3)
    before, other = bench.last_run_id(), bench.another()
    with bench.fitting("packed", "halted", "long", ITERATIONS, **named) as fitted:
        done = "SELECT count(*) FROM cerebro.visit WHERE run_id > %s AND status = 'completed'"
        eventually(lambda: other.value(done, before) >= 3)
        other.rows("SELECT pg_cancel_backend(%s)", bench.pid())
        with pytest.raises(psycopg2.Error):
            fitted.result()
    run = bench.newest_run()
    assert cuts(bench, run) == ["second"] * 2
    read = other.value(LEFT_TABLES)
    reader = bench.another()
    reader.rows(f"BEGIN; LOCK TABLE {read} IN ACCESS SHARE MODE")
    bench.rows("SELECT cerebro.resume(%s)", run)
    assert other.value(LEFT_TABLES) == read, "what somebody reads stays, and nothing else"
    reader.rows("COMMIT")
    whole = {
        "schedule": "replay",
        "replay_run": run,
    }  # in the same forms, which measured times decide
    bench.fit("packed", "whole", "long", ITERATIONS, **whole)
    assert bench.weights("halted") == bench.weights("whole")
    bench.rows("SELECT cerebro.drop_run(%s)", run)
    assert other.value(LEFT) == 0
    for session in (other, reader):
        session.close()


@pytest.mark.long
def test_a_run_in_the_background_leaves_nothing_either(bench: Workbench) -> None:
    """Its two workers fill the tables side by side."""
    run = bench.value(
        "SELECT cerebro.submit('packed', 'behind', 'mst', %s, seed => 3, workers => 2, "
        "feature_budget => %s)",
        ITERATIONS,
        BUDGET,
    )
    assert bench.value("SELECT cerebro.wait(%s)", run) == "completed"
    assert cuts(bench, run) == ["second"] * 4 and set(bench.weights("behind")) == {1, 2, 3, 4}
    eventually(lambda: bench.value(LEFT) == 0)


@pytest.mark.long
def test_another_framework_stores_it_too(bench: Workbench) -> None:
    plain, stored = (
        fit(bench, f"jax_{budget}", backend="jax", feature_budget=budget, validation_table=None)
        for budget in (PLAIN, BUDGET)
    )
    assert cuts(bench, plain) == [None] * 4 and cuts(bench, stored) == ["second"] * 4
    one, other = weights(bench, "jax_0"), weights(bench, f"jax_{BUDGET}")
    for key in one:
        np.testing.assert_allclose(one[key], other[key], rtol=1e-4, atol=1e-5)


@pytest.mark.long
def test_models_are_used_as_others(bench: Workbench, stored: int) -> None:
    """They evaluate, predict, and are trained on, with and without what is stored."""
    bench.rows("SELECT cerebro.write_outputs(%s, 'used')", stored)
    bench.rows("SELECT madlib_evaluate('used', 'packed_val', 'score', mst_key => 3)")
    (loss,) = bench.row("SELECT loss FROM score")
    final = bench.value("SELECT validation_loss_final FROM used_info WHERE mst_key = 3")
    assert loss == pytest.approx(final, rel=1e-5)
    bench.rows("SELECT madlib_predict('used', 'points', 'id', 'x', 'told', mst_key => 3)")
    assert bench.value("SELECT count(DISTINCT id) FROM told") == 96
    bench.rows("CREATE TABLE plain_used AS TABLE used")
    run = fit(bench, "used", feature_budget=BUDGET, warm_start=True)
    assert cuts(bench, run) == ["second"] * 4
    before, after = bench.weights("plain_used"), weights(bench, "used")
    for key, value in before.items():
        assert (
            after[key][:FRONT_FLOATS].tobytes() == value[: 4 * FRONT_FLOATS]
            and after[key].tobytes() != value
        )


@pytest.mark.long
def test_different_fronts_are_told_apart(bench: Workbench) -> None:
    """Fresh weights differ from one configuration to the next, and so does what their layers
    give.
    """
    model = bench.model(HEADS[0])
    bench.configure("fresh", several(2), ["batch_size=8,epochs=9"], model)
    run = bench.fit("packed", "drawn", "fresh", 1, seed=3, feature_budget=BUDGET)
    plain = bench.fit("packed", "drawn_plain", "fresh", 1, seed=3, feature_budget=PLAIN)
    assert cuts(bench, run) == ["second"] * 2 and cuts(bench, plain) == [None] * 2
    one, other = weights(bench, "drawn"), weights(bench, "drawn_plain")
    assert (one[1][:FRONT_FLOATS] != one[2][:FRONT_FLOATS]).any()
    for key in one:
        np.testing.assert_allclose(one[key], other[key], rtol=1e-4, atol=1e-5)


def test_what_cannot_be_computed_fails_its_configuration_alone(bench: Workbench) -> None:
    """These rows hold no tokens; what others would have stored they compute again."""
    tokens = layer("Embedding", "tokens", input_dim=9, output_dim=300, **FROZEN)
    wide = dense(3, "wide", **FROZEN)
    model = bench.model(
        sequential([4], tokens, layer("Flatten", "flat"), wide, dense(3, "output", "softmax"))
    )
    compiled = several(1)
    bench.rows(
        "SELECT load_model_selection_table('models', 'mixed', %s, %s, "
        "ARRAY['batch_size=8,epochs=9'])",
        [2, model],
        compiled,
    )
    run = bench.fit("packed", "mixed_model", "mixed", 2, feature_budget=BUDGET)
    reasons = [
        reason
        for (reason,) in bench.rows(
            "SELECT reason FROM cerebro.config WHERE run_id = %s ORDER BY 1", run
        )
    ]
    assert "stands for a token" in reasons[0] and reasons[1] is None
    assert cuts(bench, run) == [None, None]
    assert any("computed again" in message for message in bench.messages())


def test_a_small_run_stores_nothing_by_itself(bench: Workbench) -> None:
    """It uses what it finds, so nothing of an earlier run may be there."""
    bench.rows("SELECT cerebro.drop_features()")
    bench.messages()
    assert cuts(bench, fit(bench, "small")) == [None] * 4
    assert not any("NOTICE" in message for message in bench.messages())


def test_who_gives_a_budget_in_vain_is_told(bench: Workbench) -> None:
    bench.configure("trained", several(1))
    assert cuts(bench, bench.fit("packed", "all_trained", "trained", 1, feature_budget=BUDGET)) == [
        None
    ]
    assert any(
        "feature_budget is not used: no configuration" in message for message in bench.messages()
    )


def test_uncommitted_rows_are_trained_on_themselves(bench: Workbench) -> None:
    """In the caller's own session nothing is stored."""
    bench.rows("BEGIN")
    try:
        bench.pack("uncommitted", 1)
        run = bench.fit("uncommitted", "local", "mst", 1, feature_budget=BUDGET, workers=None)
    finally:
        bench.rows("ROLLBACK")
    assert cuts(bench, run) == [None] * 4
    assert any(
        "feature_budget is not used: the tables are seen only" in message
        for message in bench.messages()
    )


def test_a_budget_is_not_negative(bench: Workbench) -> None:
    with pytest.raises(
        psycopg2.errors.InvalidParameterValue, match="feature_budget is -1"
    ) as caught:
        fit(bench, "refused", feature_budget=-1)
    assert caught.value.diag.message_hint


@pytest.mark.postgresql(None)
def test_layers_are_explored_as_one_run(bench: Workbench) -> None:
    """Each has the network's weights, under the same head; nothing in front of that is trained."""
    rows = bench.rows(
        "SELECT * FROM cerebro.explore_layers('models', 3, ARRAY['first', 'second', 'hidden'], "
        "'explored', 3, hidden => ARRAY[4])"
    )
    assert rows == [(1, "first", WIDTH), (2, "second", 6), (3, "hidden", 5)]
    whole = np.frombuffer(bench.value("SELECT model_weights FROM models WHERE model_id = 3"), "<f4")
    made = {
        key: np.frombuffer(w, "<f4")
        for key, w in bench.rows("SELECT model_id, model_weights FROM explored")
    }
    fronts = {1: 5 * WIDTH, 2: FRONT_FLOATS, 3: FRONT_FLOATS + 7 * 5}
    for (key, _, width), front in zip(rows, fronts.values(), strict=True):
        assert made[key][:front].tobytes() == whole[:front].tobytes()
        assert len(made[key]) == front + (width + 1) * 4 + 5 * 3
    bench.rows(
        "SELECT load_model_selection_table('explored', 'heads', ARRAY[1, 2, 3], %s, "
        "ARRAY['batch_size=8,epochs=9'])",
        several(1),
    )
    run = bench.fit("packed", "best_layer", "heads", ITERATIONS, feature_budget=BUDGET)
    stored = [
        None,
        "until_second",
        "until_hidden",
    ]  # the first layer gives more than it takes to compute
    assert cuts(bench, run) == ([None] * 3 if bench.greenplum else stored)
    for key, value in weights(bench, "best_layer").items():
        assert value[: fronts[key]].tobytes() == whole[: fronts[key]].tobytes()


@pytest.mark.postgresql(None)
@pytest.mark.parametrize(
    ("arguments", "sqlstate", "words"),
    [
        (
            "'models', 3, ARRAY['drop', 'none'], 'refused', 3",
            "22023",
            "nothing can be put on layers none",
        ),
        ("'models', 3, ARRAY['first', NULL], 'refused', 3", "22004", "layers is NULL"),
        ("'models', 3, ARRAY['first', 'first'], 'refused', 3", "22023", "twice"),
        ("'models', 3, ARRAY['first'], 'refused', 0", "22023", "outputs"),
        ("'models', 1, ARRAY['hidden'], 'refused', 3", "22004", "should not be NULL"),
        ("'models', 99, ARRAY['hidden'], 'refused', 3", "42704", "no model arch found"),
        ("'models', 3, ARRAY['first'], 'models', 3", "42P07", "models"),
    ],
)
def test_layers_that_cannot_be_explored(
    bench: Workbench, arguments: str, sqlstate: str, words: str
) -> None:
    with pytest.raises(psycopg2.Error, match=words) as caught:
        bench.rows(f"SELECT cerebro.explore_layers({arguments})")
    assert caught.value.pgcode == sqlstate
    assert not bench.exists("refused")


KEPT = """
SELECT relname FROM pg_class WHERE relnamespace = 'cerebro_state'::regnamespace
    AND relname ~ '^kept_' AND relkind = 'r'
ORDER BY 1"""
AGAIN = "an earlier run has computed"


def reuses(bench: Workbench, output: str, **named: object) -> bool:
    """Whether a run uses what another one has left; it has stored something in any case."""
    bench.messages()
    bench.rows(f"DROP TABLE IF EXISTS {output}, {output}_info, {output}_summary")
    options = {
        "seed": 3,
        "workers": 1,
        "validation_table": "packed_val",
        "schedule": "rotation",
        **named,
    }
    run = bench.fit("packed", output, "alike", 1, feature_budget=BUDGET, **options)
    assert cuts(bench, run) == ["second"] * 2
    return any(AGAIN in message for message in bench.messages())


def test_a_later_run_uses_what_an_earlier_one_has_kept(bench: Workbench) -> None:
    """The same tables, for both sides, and the same bits come out of it; a replay uses them too."""
    bench.rows("SELECT cerebro.drop_features()")
    assert not reuses(bench, "kept_first")
    kept = bench.rows(KEPT)
    assert len(kept) == 2
    (told,) = layers(planned(bench, "alike", feature_budget=BUDGET))
    assert (told["From"], told["Time"]) == ("an earlier run", 0)
    assert reuses(bench, "kept_second") and bench.rows(KEPT) == kept
    assert bench.weights("kept_second") == bench.weights("kept_first")
    replayed = {
        "schedule": "replay",
        "replay_run": bench.newest_run(),
        "validation_table": "packed_val",
    }
    again = bench.fit("packed", "kept_again", "alike", 1, **replayed)
    assert cuts(bench, again) == ["second"] * 2 and bench.weights("kept_again") == bench.weights(
        "kept_first"
    )
    assert bench.rows(KEPT) == kept and bench.value(LEFT) == 0
    assert not reuses(bench, "kept_elsewhere", validation_table="packed"), (
        "of one side it is not there"
    )
    assert not reuses(bench, "rounded", dtype_policy="mixed_bfloat16")
    assert bench.value("SELECT cerebro.drop_features('packed')") > 0
    assert not set(bench.rows(KEPT)) & {kept[0]} or not set(bench.rows(KEPT)) & {kept[1]}
    assert bench.value("SELECT cerebro.drop_features()") > 0
    assert bench.rows(KEPT) == []


CHANGES = {
    "a version of a row": """
UPDATE changed SET buffer_id = buffer_id WHERE buffer_id = (SELECT min(buffer_id) FROM changed)""",
    "one row less": "DELETE FROM changed WHERE buffer_id = (SELECT max(buffer_id) FROM changed)",
    "one row more": "INSERT INTO changed SELECT * FROM packed ORDER BY buffer_id DESC LIMIT 1",
    "another column of that name": """
ALTER TABLE changed RENAME x TO was; ALTER TABLE changed ADD x bytea; UPDATE changed SET x = was;
ALTER TABLE changed DROP was""",
    "another table of that name": """
ALTER TABLE changed RENAME TO was; CREATE TABLE changed AS TABLE was; DROP TABLE was""",
    "a weight": "UPDATE models SET model_weights = set_byte(model_weights, 0, "
    "get_byte(model_weights, 0) # 1)",
}


ALONE = {"seed": 3, "workers": 1, "schedule": "rotation", "feature_budget": BUDGET}


def used(bench: Workbench, output: str) -> bool:
    """Whether a fit of the table that changes uses what an earlier one has left."""
    bench.messages()
    bench.rows(f"DROP TABLE IF EXISTS {output}, {output}_info, {output}_summary")
    bench.fit("changed", output, "alike", 1, **ALONE)
    return any(AGAIN in message for message in bench.messages())


def would_be_used(bench: Workbench) -> bool:
    """Whether such a fit is planned to."""
    arguments = "".join(f", {name} => %s" for name in ALONE)
    call = f"SELECT cerebro.plan_fit('changed', 'alike', 1{arguments}, format => 'json')"
    (found,) = layers(json.loads(bench.value(call, *ALONE.values()))[0]["Plan"])
    return bool(found["From"] == "an earlier run")


@pytest.fixture(scope="module")
def changing(bench: Workbench) -> None:
    """A packed table that nothing else uses, of which something is kept."""
    bench.rows(
        "CREATE TABLE changed AS TABLE packed; CREATE TABLE changed_summary AS TABLE packed_summary"
    )
    assert not used(bench, "before") and used(bench, "unchanged")


def test_nothing_stale_is_used(bench: Workbench, changing: None) -> None:
    """What comes out after changes is what comes out where nothing was kept."""
    for what, change in CHANGES.items():
        assert would_be_used(bench), what
        bench.rows(change)
        assert not would_be_used(bench) and not used(bench, "changed_one"), what
    bench.rows("SELECT cerebro.drop_features()")
    assert not used(bench, "changed_two")
    assert bench.weights("changed_one") == bench.weights("changed_two")


def test_what_is_kept_is_its_owners_and_bounded(
    bench: Workbench, shared_superuser: Workbench
) -> None:
    reuses(bench, "mine")
    kept = bench.rows(KEPT)
    with another_role(bench, shared_superuser, "feature_eve") as eve:
        own_schema(shared_superuser, "feature_eve")
        tables = (
            "packed, packed_summary, packed_val, packed_val_summary, models, alike, alike_summary"
        )
        shared_superuser.rows(f"GRANT SELECT ON {tables} TO feature_eve")
        eve.rows("SET search_path = feature_eve, public, madlib")
        assert not reuses(eve, "hers", validation_table="public.packed_val")
        assert eve.value("SELECT cerebro.drop_features()") > 0
    assert bench.rows(KEPT) == kept
    with setting(bench, "kept_features_mb", "0"):
        assert not reuses(bench, "not_kept") and bench.rows(KEPT) == kept
        assert bench.value("SELECT cerebro.vacuum_runs()") > 0
        assert bench.rows(KEPT) == []


def test_it_goes_with_its_packed_table(bench: Workbench) -> None:
    bench.rows("SELECT cerebro.drop_features()")
    bench.pack("passing", 2)
    bench.fit("passing", "passed", "mst", 1, seed=3, feature_budget=BUDGET)
    assert len(bench.rows(KEPT)) == 1
    bench.rows("DROP TABLE passing, passing_summary")
    assert bench.value("SELECT cerebro.vacuum_runs()") > 0 and bench.rows(KEPT) == []
