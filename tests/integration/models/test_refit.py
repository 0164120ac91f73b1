"""Members of a version that are trained again on all rows: they predict, and the states before it
measure.
"""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import psycopg2
import pytest
from processes import eventually
from roles import refused
from workbench import Workbench

import cerebro_db
from cerebro_db.export.recipe.rows import RawRows

BOATS = """
    CREATE TABLE boats AS
    SELECT n AS id, n * 7919 % 101 AS length, (ARRAY['sail', 'motor', NULL])[n % 3 + 1] AS kind,
           (ARRAY['north', 'south'])[n % 2 + 1] AS harbour,
           (n * 7919 % 101 + n * 31 % 89) * 10.5 AS price
    FROM generate_series(1, 400) n;
    ALTER TABLE boats ADD PRIMARY KEY (id)"""
OPTIONS = (
    "columns => '* except id', configs => 3, epochs => 8, ensemble => 4, seed => 2, "
    "models => '{linear, realmlp_simple}', search => NULL"
)
LAST = "split => 'last 0.2 by id'"
MEMBERS = """
    SELECT mst_key, run_id, refit_run_id FROM cerebro.model_member
    WHERE model = %s AND version = %s ORDER BY position"""
STATE = "SELECT md5(string_agg(chunk, '' ORDER BY part)) FROM cerebro_state.r{}_m{}"
PREDICTIONS = "SELECT id, prediction FROM cerebro.predict(%s, 'boats') ORDER BY id::integer"


def train(bench: Workbench, model: str, more: str = "") -> None:
    bench.rows(f"SELECT * FROM cerebro.train('boats', 'price', '{model}', {OPTIONS}{more})")


def read_state(bench: Workbench, run_id: int, mst_key: int) -> str:
    return str(bench.value(STATE.format(run_id, mst_key)))


@pytest.fixture(scope="module")
def boats(bench: Workbench) -> Workbench:
    """The session of the owner of a model that is trained again."""
    bench.rows(BOATS)
    bench.rows("CREATE TABLE later AS SELECT * FROM boats WHERE id % 5 = 0")
    train(bench, "again")
    return bench


@pytest.fixture(scope="module")
def unfolded(boats: Workbench) -> Workbench:
    """The session of the owner of two more models with one seed: trained again, and not.

    Folds, which might choose other members, are not made of such a split.
    """
    train(boats, "whole", f", {LAST}")
    train(boats, "once", f", {LAST}, refit => 'none'")
    return boats


def test_all_members_are_trained_on_all_rows(boats: Workbench) -> None:
    members = boats.rows(MEMBERS, "again", 1)
    (run_id,) = {refit_run for *_, refit_run in members}
    rows = "SELECT rows FROM cerebro.visit WHERE run_id = %s AND mst_key = %s AND epoch = 1"
    for mst_key, first_run, _ in members:
        assert sum(count for (count,) in boats.rows(rows, run_id, mst_key)) == 400
        assert sum(count for (count,) in boats.rows(rows, first_run, mst_key)) < 400
    assert boats.row("SELECT name, status FROM cerebro.run WHERE run_id = %s", run_id) == (
        "again on all rows",
        "completed",
    )
    assert boats.value("SELECT count(*) FROM cerebro.metric WHERE run_id = %s", run_id) == 0


def test_each_takes_as_many_epochs_as_its_best_state(boats: Workbench) -> None:
    """One of the members had its best state before the last epoch."""
    train(boats, "early", ", split => 'table later', refit => 'all'")
    epochs = """
        SELECT coalesce(c.best_epoch, max(v.epoch)) FROM cerebro.config_log c
        JOIN cerebro.visit v USING (run_id, mst_key)
        WHERE run_id = %s AND mst_key = %s GROUP BY c.best_epoch"""
    counts = {
        boats.value(epochs, first_run, mst_key): boats.value(epochs, refit_run, mst_key)
        for mst_key, first_run, refit_run in boats.rows(MEMBERS, "early", 1)
    }
    assert len(counts) > 1 and counts == {count: count for count in counts}
    assert all(ok for (ok,) in boats.rows("SELECT ok FROM cerebro.verify('early')"))


def test_the_states_before_it_are_those_of_a_model_without_it(unfolded: Workbench) -> None:
    """Metric and calibration are therefore the same; predictions differ."""
    properties = (
        "SELECT value, coalesce(holdout_calibration, calibration), training_rows "
        "FROM cerebro.version_log WHERE model = %s"
    )
    boats = unfolded
    assert boats.row(properties, "whole") == boats.row(properties, "once")
    pairs = zip(boats.rows(MEMBERS, "whole", 1), boats.rows(MEMBERS, "once", 1), strict=True)
    for (mst_key, run, refit_run), (other_key, other_run, no_run) in pairs:
        assert mst_key == other_key and no_run is None
        assert read_state(boats, run, mst_key) == read_state(boats, other_run, mst_key)
        assert read_state(boats, refit_run, mst_key) != read_state(boats, run, mst_key)
    assert boats.rows(PREDICTIONS, "whole") != boats.rows(PREDICTIONS, "once")


def test_importances_come_from_rows_that_no_state_has_seen(unfolded: Workbench) -> None:
    importances = "SELECT importance, importance_error FROM cerebro.version_log WHERE model = %s"
    whole = unfolded.row(importances, "whole")
    assert whole == unfolded.row(importances, "once") and whole != (None, None)


def test_both_states_come_out_once_more(boats: Workbench) -> None:
    findings: dict[str, bool] = dict(boats.rows("SELECT what, ok FROM cerebro.verify('again')"))
    count = len(boats.rows(MEMBERS, "again", 1))
    names = ["state"] if count == 1 else [f"state of member {n}" for n in range(1, count + 1)]
    states = [*names, *(f"{name} of all rows" for name in names)]
    names = ["source", "packed rows", "software", "calibration", *states, "calibration of all rows"]
    assert findings == dict.fromkeys(names, True)
    runs = "SELECT count(*) FROM cerebro.run WHERE name = 'verify again'"
    assert boats.value(runs) == 0


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_files_have_the_states_that_predict(boats: Workbench, tmp_path: Path) -> None:
    data = boats.value("SELECT cerebro.export_model('again')")
    boats.rows("SELECT cerebro.import_model(%s, 'copied')", data)
    predictions = boats.rows(PREDICTIONS, "again")
    assert boats.rows(PREDICTIONS, "copied") == predictions
    with cerebro_db.connect(boats.url) as session:
        network, description = session.export_keras("again", tmp_path / "again.keras")
    rows = RawRows.of(description.read_text())
    columns = ("length", "kind", "harbour")
    cells = zip(*boats.rows(f"SELECT {', '.join(columns)} FROM boats ORDER BY id"), strict=True)
    inputs = rows.inputs(dict(zip(columns, cells, strict=True)))
    outputs = keras.saving.load_model(network).predict([*inputs.values()], verbose=0)
    expected = [float(prediction) for _, prediction in predictions]
    np.testing.assert_allclose(rows.answers(outputs).prediction, expected, rtol=1e-5)


def test_versions_are_compared_by_the_states_before_it(unfolded: Workbench) -> None:
    """The same configurations are no better, however many rows the deployed ones have seen."""
    unfolded.messages()
    train(unfolded, "whole", f", {LAST}")
    assert any("is not better than version 1" in message for message in unfolded.messages())
    assert {refit_run for *_, refit_run in unfolded.rows(MEMBERS, "whole", 2)} == {None}
    assert unfolded.value("SELECT version FROM cerebro.model WHERE model = 'whole'") == 1


def test_a_refresh_continues_from_both_states(boats: Workbench) -> None:
    train(boats, "refreshed")
    boats.rows("SELECT * FROM cerebro.refresh('refreshed', epochs => 1)")
    query = "SELECT version FROM cerebro.model_version WHERE model = 'refreshed' ORDER BY 1 DESC"
    members = boats.rows(MEMBERS, "refreshed", boats.rows(query)[0][0])
    assert all(ok for (ok,) in boats.rows("SELECT ok FROM cerebro.verify('refreshed', 'newest')"))
    for mst_key, run, refit_run in members:
        if refit_run is not None:
            assert read_state(boats, refit_run, mst_key) != read_state(boats, run, mst_key)


SEARCHES = {
    "drawn": "'tpe', configs => 6, epochs => 1, space => '{\"lr\": [1e-3, 1e-1, \"log\"]}'",
    "perturbed": "'pbt', configs => 4, epochs => 4, search_params => '{\"interval\": 1}'",
}


@pytest.mark.parametrize("model", SEARCHES)
def test_configurations_that_were_added_are_trained_again_too(boats: Workbench, model: str) -> None:
    """Those that began with the state of another one are not: they have no beginning."""
    boats.rows(
        f"SELECT * FROM cerebro.train('boats', 'price', '{model}', models => '{{linear}}', "
        f"columns => '* except id', ensemble => 4, seed => 2, search => {SEARCHES[model]})"
    )
    run = boats.value("SELECT run_id FROM cerebro.model_version WHERE model = %s", model)
    sources = "SELECT source, warm_started_from FROM cerebro.config WHERE run_id = %s"
    assert {source for source, _ in boats.rows(sources, run)} > {"call"}
    members = boats.rows(
        "SELECT m.refit_run_id IS NULL, c.warm_started_from IS NULL FROM cerebro.model_member m "
        "JOIN cerebro.config c USING (run_id, mst_key) WHERE m.model = %s",
        model,
    )
    assert members and all(stays != is_cold for stays, is_cold in members)


def test_rows_of_another_table_measure_the_model(boats: Workbench) -> None:
    train(boats, "held", ", split => 'table later'")
    assert {refit_run for *_, refit_run in boats.rows(MEMBERS, "held", 1)} == {None}


@pytest.mark.postgresql("there are no groups on Greenplum")
def test_a_notice_names_what_forbids_it(boats: Workbench) -> None:
    boats.messages()
    train(boats, "grouped", ", group_by => 'harbour'")
    boats.rows("ALTER TABLE boats ADD w float DEFAULT 1")
    train(boats, "weighted", ", weight => 'w'")
    train(boats, "cheap", ", max_cpu => '1 hour'")
    reasons = [
        message.split(": ", 2)[-1].strip()
        for message in boats.messages()
        if "not trained again" in message
    ]
    assert reasons == [
        "its rows are packed for models of groups",
        "the rows held back are packed without weights",
        "the cost of the run is limited",
    ]


def test_a_run_of_it_is_not_resumed_alone(boats: Workbench) -> None:
    (_, first_run, refit_run), *_ = boats.rows(MEMBERS, "again", 1)
    words = f"run {refit_run} has trained the best configurations of run {first_run} again"
    refused(boats, "SELECT cerebro.resume(%s)", refit_run, code="55000", words=words)


def test_another_value_is_refused(boats: Workbench) -> None:
    call = "SELECT * FROM cerebro.train('boats', 'price', refit => 'maybe')"
    words = "refit is 'maybe'; expected one of 'auto', 'all', 'none'"
    refused(boats, call, code="22023", words=words)


@pytest.mark.long
@pytest.mark.parametrize("end", ["pg_cancel_backend", "pg_terminate_backend"])
def test_an_interrupted_one_leaves_nothing(boats: Workbench, end: str) -> None:
    """The run before it is resumed, and its best configuration is trained on all rows again."""
    caller = boats.another()
    call = (
        f"SELECT * FROM cerebro.train('boats', 'price', '{end}', models => '{{linear}}', "
        "configs => 1, epochs => 2000, seed => 2, search => NULL, columns => '* except id', "
        f"{LAST})"
    )
    running = f"""
        SELECT run_id FROM cerebro.run WHERE name = '{end} on all rows' AND EXISTS (
            SELECT FROM cerebro.visit v WHERE v.run_id = run.run_id)"""
    with caller.calling(lambda: caller.rows(call)) as called:
        eventually(lambda: boats.rows(running) or called.done())
        refit_run = boats.value(running)
        boats.rows(f"SELECT {end}(%s)", caller.pid())
        with pytest.raises(psycopg2.Error):
            called.result(60)
    caller.close()
    boats.rows("SELECT cerebro.resume(%s)", boats.newest_run())
    ((_, _, second_run),) = boats.rows(MEMBERS, end, 1)
    assert second_run > refit_run
    assert not boats.rows("SELECT FROM cerebro.run WHERE run_id = %s", refit_run)
    tables = "SELECT relname FROM pg_class WHERE starts_with(relname, %s)"
    assert not boats.rows(tables, f"r{refit_run}_")


def test_nothing_remains_of_a_dropped_model(boats: Workbench) -> None:
    members = boats.rows(MEMBERS, "once", 1) + boats.rows(MEMBERS, "again", 1)
    tables = (
        "SELECT count(*) FROM pg_class WHERE relnamespace = 'cerebro_state'::regnamespace AND "
        "relname ~ %s"
    )
    pattern = "|".join(f"^r{run}_" for _, *runs in members for run in runs if run is not None)
    assert boats.value(tables, pattern) > len(members)
    boats.rows("SELECT cerebro.drop_model('again'), cerebro.drop_model('once')")
    assert boats.value(tables, pattern) == 0
