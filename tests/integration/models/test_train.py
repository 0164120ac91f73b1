"""From a raw table to a model by name, in one statement."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from statistics import fmean
from typing import Any, NamedTuple

import psycopg2
import pytest
from processes import eventually
from recipes import Session
from roles import another_role
from workbench import Row, Workbench

from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.source_rows import SourceRows
from cerebro_plpy.preprocessing.learning.recorded_table import read_with_recipe

PASSENGERS = """
    CREATE TABLE passengers AS
    SELECT n AS id, CASE WHEN n % 7 > 0 THEN 20 + n * 7919 % 50 END AS age, (ARRAY['a', 'b',
        NULL])[n % 3 + 1] AS deck,
           CASE WHEN n % 5 > 0 THEN date '2020-01-01' + n % 400 END AS booked,
               n * 31 % 97 / 10.0 AS fare,
           CASE WHEN n % 50 > 0 THEN n % 3 = 0 OR n * 31 % 97 > 80 END AS survived
    FROM generate_series(1, 600) AS n"""
QUICK = "models => '{linear}', configs => 1, epochs => 2, workers => 1, refit => 'none'"
ODD = 'odd "%s'
NAMES = [
    "label",
    "numbers",
    "codes",
    "id",
    'a"b',
    "%s",
    "$1",
    "a.b",
    "😀",
    "a\nb",
    "prediction",
    "buffer_id",
]
STATES = (
    "SELECT relname::text FROM pg_class WHERE relnamespace = 'cerebro_state'::regnamespace AND "
    "relkind = 'r'"
)


@pytest.fixture(scope="module")
def passengers(bench: Workbench) -> str:
    bench.rows(PASSENGERS)
    return "passengers"


@pytest.fixture
def spare(bench: Workbench, passengers: str) -> Iterator[str]:
    """The name of a model that is removed afterwards."""
    yield "spare"
    if bench.rows("SELECT FROM cerebro.model WHERE model = 'spare'"):
        bench.rows("SELECT cerebro.drop_model('spare')")


def bits(bench: Workbench, model: str, version: int = 1) -> str:
    """A digest of the state of a version."""
    query = "SELECT run_id, mst_key FROM cerebro.model_version WHERE model = %s AND version = %s"
    run_id, mst_key = bench.row(query, model, version)
    return str(
        bench.value(
            "SELECT md5(string_agg(chunk, '' ORDER BY part)) FROM "
            f"cerebro_state.r{run_id}_m{mst_key}"
        )
    )


class FirstCall(NamedTuple):
    """A bare call, and the plan that was asked for before it."""

    planned: dict[tuple[str, str], Any]
    """The data of each line of the plan by its section and name."""
    rows: list[Row]
    said: str


@pytest.fixture(scope="module")
def first_call(bench: Workbench, passengers: str) -> FirstCall:
    arguments = (
        "'passengers', 'survived', configs => 3, epochs => 3, ensemble => 1, seed => 1, workers "
        "=> 1"
    )
    before = bench.value("SELECT count(*) FROM pg_class"), bench.last_run_id()
    planned = bench.rows(f"SELECT section, name, data FROM cerebro.plan({arguments})")
    assert (bench.value("SELECT count(*) FROM pg_class"), bench.last_run_id()) == before
    bench.messages()
    rows = bench.rows(f"SELECT * FROM cerebro.train({arguments})")
    return FirstCall(
        {(section, name): data for section, name, data in planned}, rows, "".join(bench.messages())
    )


def test_a_raw_table_becomes_a_model_and_says_what_it_did(
    bench: Workbench, first_call: FirstCall
) -> None:
    found = first_call.rows
    (
        run_id,
        rank,
        mst_key,
        template,
        metric,
        validation,
        epochs,
        status,
        training,
        seconds,
        group,
        params,
    ) = found[0]
    assert (rank, epochs, status, metric) == (1, 3, "completed", "accuracy") and len(found) == 3
    assert group is None and 0 < validation <= 1 and seconds > 0
    best = bench.value(
        "SELECT best_epoch FROM cerebro.config WHERE run_id = %s AND mst_key = %s", run_id, mst_key
    )
    if best in (
        None,
        epochs,
    ):  # of three epochs, the last one alone is evaluated over the rows that were trained on
        assert 0 < training <= 1
    else:
        assert training is None
    assert {row[3] for row in found} == {"boosting", "realmlp", "realmlp_simple"}
    assert params == {}, "the first configurations are the usual ones"
    all_params = bench.value(
        "SELECT params FROM cerebro.config WHERE run_id = %s AND mst_key = %s", run_id, mst_key
    )
    rate = all_params["learning_rate" if template == "boosting" else "lr"]
    assert rate == 0.04
    columns = (
        "version, task, target, source, metric, value, training_rows + validation_rows, versions"
    )
    model = bench.row(f"SELECT {columns} FROM cerebro.model WHERE model = 'passengers_survived'")
    rows = bench.value("SELECT count(*) FROM passengers WHERE survived IS NOT NULL")
    assert model == (
        1,
        "classification",
        "survived",
        '"public"."passengers"',
        "accuracy",
        validation,
        rows,
        1,
    )
    assert bench.row("SELECT run_id, mst_key, deployed FROM cerebro.model_version") == (
        run_id,
        mst_key,
        True,
    )
    software = bench.value("SELECT software FROM cerebro.model_version")
    assert software == bench.value("SELECT software FROM cerebro.run WHERE run_id = %s", run_id)
    assert software.keys() == {"cerebro_db", "tensorflow", "keras", "python"} and all(
        software.values()
    )
    kinds: dict[str, str] = dict(
        bench.rows(
            "SELECT column_name, kind FROM cerebro.feature WHERE model = 'passengers_survived'"
        )
    )
    numbers = {"age": "number", "deck": "category", "booked": "moment", "fare": "number"}
    assert kinds == {"id": "left out", **numbers}
    board = (
        "SELECT mst_key, template, validation FROM cerebro.leaderboard WHERE run_id = %s ORDER BY "
        "rank, mst_key"
    )
    assert bench.rows(board, run_id) == [(row[2], row[3], row[5]) for row in found]
    assert first_call.said.startswith("NOTICE:  0 s of 300 s: looking at the table\n")
    log = "SELECT phase, deadline - started_at FROM cerebro.run_log WHERE run_id = %s"
    phase, budget = bench.row(log, run_id)
    assert phase == "explaining" and 250 < budget.total_seconds() < 300
    assert (
        "no survived, and are left out" in first_call.said
        and "column id is left out" in first_call.said
    )
    assert (
        f"model 'passengers_survived': version 1, which is mst_key {mst_key} of run {run_id}"
        in first_call.said
    )


def test_a_plan_says_what_train_then_does(bench: Workbench, first_call: FirstCall) -> None:
    planned = first_call.planned
    made = bench.row(
        "SELECT training_rows, validation_rows FROM cerebro.model WHERE model = "
        "'passengers_survived'"
    )
    assert made == (planned["rows", "training"]["rows"], planned["rows", "validation"]["rows"])
    features = bench.rows(
        "SELECT column_name, kind, constants FROM cerebro.feature WHERE model = "
        "'passengers_survived'"
    )
    assert features
    for column, kind, constants in features:
        told = planned["column", column]
        assert told["kind"] == kind and (kind == "category" or {**told, **constants} == told)
    assert planned["effort", "configurations"] == {"configs": 3, "epochs": 3}
    execution = planned["internals", "execution"]["Plan"]
    assert (execution["Configs"], execution["Epochs"]) == (3, 3)
    assert execution["At most"] >= execution["Lower Bound"] > 0
    assert sum(part.get("Configs", 0) for part in execution["Plans"]) == 3
    assert planned["effort", "time"]["seconds"] == pytest.approx(execution["At most"], rel=1e-2)
    logged = bench.rows(
        "SELECT mst_key::text, params FROM cerebro.config WHERE run_id = %s", first_call.rows[0][0]
    )
    assert len(logged) == 3
    assert dict(logged) == {key: planned["configuration", key] for key, _ in logged}


@pytest.mark.long
def test_a_class_is_predicted_by_its_own_name(bench: Workbench, spare: str) -> None:
    """In whatever order the type of the target has its values."""
    bench.rows(
        "CREATE TYPE size AS ENUM ('small', 'medium', 'large');"
        " CREATE TABLE sizes AS SELECT n AS id, (ARRAY['a', 'b', 'c'])[n % 3 + 1] AS letter,"
        " (enum_range(NULL::size))[n % 3 + 1] AS size FROM generate_series(1, 300) n"
    )
    quick = (
        "models => '{linear}', configs => 1, epochs => 10, workers => 1, space => '{\"lr\": "
        '0.1, "batch_size": 16}\''
    )
    bench.rows(f"SELECT * FROM cerebro.train('sizes', 'size', 'spare', {quick}, seed => 1)")
    told = (
        "SELECT count(*) FROM cerebro.predict('spare', 'sizes', 'id') p JOIN sizes t ON p.id = "
        "t.id::text"
    )
    assert bench.value(f"{told} WHERE p.prediction <> t.size::text") == 0


@pytest.mark.long
def test_two_calls_with_a_seed_have_the_same_bits(bench: Workbench, passengers: str) -> None:
    """However the rows lie in the table, and whichever session trains."""
    call = f"SELECT * FROM cerebro.train('passengers', 'survived', %s, {QUICK}, seed => 5)"
    bench.rows(call, "first")
    bench.rows("CREATE TABLE again AS SELECT * FROM passengers ORDER BY md5(id::text)")
    bench.rows("BEGIN; DROP TABLE passengers; ALTER TABLE again RENAME TO passengers; COMMIT")
    other = bench.another()
    other.rows(call, "second")
    other.close()
    bench.rows(
        f"SELECT * FROM cerebro.train('passengers', 'survived', 'third', {QUICK}, seed => 6)"
    )
    assert bits(bench, "first") == bits(bench, "second") != bits(bench, "third")
    prints = (
        "SELECT fingerprint FROM cerebro.model_version WHERE model IN ('first', 'second') GROUP "
        "BY 1"
    )
    assert len(bench.rows(prints)) == 1
    bench.rows("SELECT cerebro.drop_model(m) FROM unnest(ARRAY['first', 'second', 'third']) m")


@pytest.mark.long
def test_rows_count_as_much_as_their_weight_says(bench: Workbench, spare: str) -> None:
    """All of one weight are as none; a class whose rows count nothing is predicted more seldom."""
    bench.rows(
        "CREATE TABLE weighing AS SELECT t.*, 3 AS alike, CASE WHEN survived THEN 0 ELSE 0.5 END "
        "AS w FROM passengers t"
    )
    found = {}
    for weight in ("NULL", "'alike'", "'w'"):
        options = (
            "models => '{linear}', configs => 1, epochs => 5, workers => 1, columns => 'age, "
            f"fare', seed => 3, refit => 'none', weight => {weight}"
        )
        bench.rows(f"SELECT * FROM cerebro.train('weighing', 'survived', 'spare', {options})")
        version = bench.value(
            "SELECT max(version) FROM cerebro.model_version WHERE model = 'spare'"
        )
        bench.rows("SELECT cerebro.deploy('spare', %s)", str(version))
        told = bench.rows(
            "SELECT prediction FROM cerebro.predict('spare', 'weighing', 'id') ORDER BY id"
        )
        found[weight] = [prediction for (prediction,) in told]
    assert found["NULL"] == found["'alike'"] != found["'w'"]
    assert found["'w'"].count("true") < found["NULL"].count("true")
    assert {
        column
        for (column,) in bench.rows("SELECT column_name FROM cerebro.feature WHERE model = 'spare'")
    } == {
        "age",
        "fare",
    }


@pytest.mark.long
def test_classes_count_alike_where_it_is_asked(bench: Workbench, spare: str) -> None:
    options = f'{QUICK}, space => \'{{"class_weight": "auto"}}\', seed => 1'
    ((run_id, params),) = bench.rows(
        f"SELECT run_id, params FROM cerebro.train('passengers', 'survived', 'spare', {options})"
    )
    assert params["class_weight"] == "auto"
    fitted = bench.value("SELECT fit_params FROM cerebro.config WHERE run_id = %s", run_id)
    (found,) = re.findall(r"class_weight=\{0: ([0-9.]+), 1: ([0-9.]+)\}", fitted)
    held, rows = (
        _held(bench, run_id),
        "SELECT id, survived FROM passengers WHERE survived IS NOT NULL",
    )
    counts = Counter(survived for number, survived in bench.rows(rows) if number not in held)
    total = sum(counts.values())
    assert [float(weight) for weight in found] == [
        pytest.approx(total / 2 / counts[of], rel=1e-4) for of in (False, True)
    ]


@pytest.mark.parametrize(
    ("weight", "code"), [("deck", "42804"), ("gone", "42703"), ("bad", "22023")]
)
def test_a_column_that_cannot_weigh_rows_is_refused(
    bench: Workbench, passengers: str, weight: str, code: str
) -> None:
    bench.rows(
        "CREATE OR REPLACE VIEW badly AS SELECT t.*, CASE WHEN id > 9 THEN 1 END AS bad FROM "
        "passengers t"
    )
    with pytest.raises(psycopg2.Error) as error:
        bench.rows("SELECT * FROM cerebro.plan('badly', 'survived', weight => %s)", weight)
    assert error.value.pgcode == code


@pytest.mark.long
def test_what_did_well_before_is_tried_early(bench: Workbench, spare: str) -> None:
    """What a call names, and of its own accord the caller's newest versions over such columns; a
    seed repeats.

    What did well here was trained in the background, and is awaited like any run.
    """
    options = (
        "models => '{linear}', configs => 1, epochs => 1, workers => 1, columns => 'age, fare'"
    )
    tuned = f"{options}, space => '{{\"lr\": 0.125}}'"
    trained = f"cerebro.train('passengers', 'survived', 'spare', {tuned}, background => true)"
    run_id, status = bench.row(f"SELECT run_id, status FROM {trained}")
    assert status == "running" and bench.value("SELECT cerebro.wait(%s)", run_id) == "completed"
    assert bench.value("SELECT run_id FROM cerebro.model_version WHERE model = 'spare'") == run_id
    plan = "cerebro.plan('passengers', 'survived', {})"
    query = f"SELECT what, why, (data ->> 'lr')::float8 FROM {plan} WHERE section = 'configuration'"
    more = options.replace("configs => 1", "configs => 3")
    usual, like, drawn = bench.rows(query.format(more))
    assert usual[:2] == ("linear: usual values", "usual values") and drawn[1] == "drawn at random"
    assert like == ("linear: lr 0.125", "of model spare, version 1", 0.125)
    for unlike in (
        "search => 'random'",
        "seed => 1",
        "types => '{\"age\": \"category\"}', columns => 'age'",
    ):
        other = more.replace(", columns => 'age, fare'", "") if "columns" in unlike else more
        assert "of model" not in str(bench.rows(query.format(f"{other}, {unlike}")))
    for name in (f"run:{run_id}", "spare"):
        first = bench.rows(query.format(f"{more}, start_from => '{{{name}}}'"))[0]
        assert first == (
            "linear: lr 0.125",
            f"best of run {run_id}" if ":" in name else "of model spare",
            0.125,
        )
    for wrong, code in {"{spar}": "42704", "{run:0}": "42704", "{NULL}": "22004"}.items():
        with pytest.raises(psycopg2.Error) as error:
            bench.rows(
                "SELECT * FROM cerebro.plan('passengers', 'survived', start_from => %s)", wrong
            )
        assert error.value.pgcode == code and error.value.diag.message_hint


@pytest.mark.long
@pytest.mark.parametrize(
    ("target", "metric", "seed"), [("survived", "auc", 7), ("fare", "rmse", 1)]
)
def test_several_configurations_become_one_model(
    bench: Workbench, spare: str, target: str, metric: str, seed: int
) -> None:
    """It is as good as it is said to be, better than each of them, and predicts whatever they do.

    By these seeds several predict better together; by others, one alone is the best.
    """
    bench.rows(
        "CREATE TABLE IF NOT EXISTS sided AS SELECT t.*, id % 4 = 0 AS side FROM passengers t"
    )
    options = (
        f"models => '{{realmlp_simple}}', configs => 4, epochs => 8, ensemble => 6, metric => "
        f"'{metric}', refit => 'none'"
    )
    columns_named = "age, booked, " + ("fare" if target == "survived" else "deck")
    more = f"columns => '{columns_named}', seed => {seed}, split => 'column side'"
    call = f"cerebro.train('sided', '{target}', 'spare', {options}, {more})"
    rows = bench.rows(f"SELECT run_id, validation FROM {call}")
    query = "SELECT template, value FROM cerebro.model_version WHERE model = 'spare'"
    template, value = bench.row(query)
    members = bench.rows("SELECT share FROM cerebro.model_member WHERE model = 'spare'")
    shares = [share for (share,) in members]
    assert template == "ensemble" and len(shares) > 1 and sum(shares) == pytest.approx(1)
    told = bench.rows(
        f"SELECT t.id, p.prediction, p.probability, t.{target}::text, p.upper - p.lower"
        " FROM cerebro.predict('spare', 'sided', 'id') p JOIN sided t ON p.id = t.id::text"
    )
    held = [row for row in told if row[0] % 4 == 0 and row[3] is not None]
    assert len(told) == 600
    if target == "survived":
        yes, no = (
            [
                sure if said == "true" else 1 - sure
                for _, said, sure, label, _ in held
                if label == of
            ]
            for of in ("true", "false")
        )
        wins = [(a > b) + (a == b) / 2 for a in yes for b in no]
        assert value == pytest.approx(fmean(wins), rel=1e-3)
    else:
        squares = [(float(said) - float(label)) ** 2 for _, said, _, label, _ in held]
        assert value == pytest.approx(math.sqrt(fmean(squares)), rel=1e-3) and held[0][4] > 0
        assert value < min(each for _, each in rows)
    (one,) = (row for row in told if row[0] == 5)
    row = bench.value(
        "SELECT cerebro.predict_row('spare', (SELECT to_jsonb(t) FROM sided t WHERE id = 5))"
    )
    assert row["prediction"] == one[1] or float(row["prediction"]) == pytest.approx(float(one[1]))
    assert not [name for (name,) in bench.rows(STATES) if name.startswith(f"r{rows[0][0]}_c")]
    findings = (
        "SELECT string_agg(detail, '; ' ORDER BY what) FILTER (WHERE NOT ok) FROM "
        "cerebro.verify('spare')"
    )
    assert bench.value(findings) is None
    columns = {
        name
        for (name,) in bench.rows("SELECT column_name FROM cerebro.importance('spare', 'sided')")
    }
    assert columns == set(columns_named.split(", "))


@pytest.fixture(scope="module")
def rolled_back(bench: Workbench, passengers: str) -> Iterator[int]:
    """The run of a model that was trained in a transaction that did not commit."""
    bench.rows("BEGIN")
    ((run_id,),) = bench.rows(
        f"SELECT run_id FROM cerebro.train('passengers', 'survived', 'rolled back', {QUICK})"
    )
    bench.rows("ROLLBACK")
    yield int(run_id)
    bench.rows("SELECT cerebro.drop_model('rolled back')")


def test_the_version_stays_where_the_caller_rolls_back(bench: Workbench, rolled_back: int) -> None:
    query = "SELECT version, versions FROM cerebro.model WHERE model = 'rolled back'"
    assert bench.row(query) == (1, 1)


@pytest.mark.long
def test_a_cancelled_call_is_resumed_and_makes_its_version(bench: Workbench, spare: str) -> None:
    text = (
        "SELECT * FROM cerebro.train('passengers', 'survived', 'spare', "
        f"{QUICK.replace('2', '120', 1)}, seed => 1)"
    )
    text = text.replace("epochs => 2", "epochs => 120")
    before, watcher = bench.last_run_id(), bench.another()
    visits = "SELECT count(*) > 3 FROM cerebro.visit WHERE run_id > %s AND status = 'completed'"
    with bench.calling(lambda: bench.rows(text)) as called:
        eventually(lambda: watcher.value(visits, before))
        run_id = watcher.newest_run()
        watcher.rows("SELECT cerebro.cancel(%s)", run_id)
        with pytest.raises(psycopg2.errors.QueryCanceled):
            called.result()
    assert watcher.value("SELECT status FROM cerebro.run WHERE run_id = %s", run_id) == "cancelled"
    assert not watcher.rows("SELECT FROM cerebro.model WHERE model = 'spare'")
    watcher.close()
    bench.rows("SELECT cerebro.resume(%s)", run_id)
    assert bench.row("SELECT run_id, version FROM cerebro.model_version WHERE model = 'spare'") == (
        run_id,
        1,
    )
    assert bench.value("SELECT status FROM cerebro.run WHERE run_id = %s", run_id) == "completed"


@pytest.mark.long
@pytest.mark.parametrize("split", ["random 0.2", "last 0.3 by id"])
def test_rows_that_are_held_back_once_are_so_in_every_version(
    bench: Workbench, spare: str, split: str
) -> None:
    """Also when there are more of them."""
    call = (
        f"SELECT run_id FROM cerebro.train('more', 'survived', 'spare', {QUICK}, split => "
        f"'{split}')"
    )
    bench.rows(
        "DROP TABLE IF EXISTS more CASCADE; CREATE TABLE more AS SELECT * FROM passengers WHERE "
        "id <= 300"
    )
    bench.rows("ALTER TABLE more ADD PRIMARY KEY (id)")
    first = _held(bench, bench.row(call)[0])
    bench.rows("INSERT INTO more SELECT * FROM passengers WHERE id > 300")
    second = _held(bench, bench.row(call)[0])
    assert (
        first
        and first == {number for number in second if number <= 300}
        and len(second) > len(first)
    )
    with pytest.raises(
        psycopg2.errors.InvalidParameterValue, match="compared on rows that none of them"
    ):
        bench.rows(
            f"SELECT * FROM cerebro.train('more', 'survived', 'spare', {QUICK}, split => 'random "
            "0.5')"
        )


@pytest.mark.long
def test_copies_of_rows_are_on_both_sides_in_every_version(bench: Workbench, spare: str) -> None:
    """And a table whose rows are equal is refreshed, verified and explained as any other."""
    bench.rows("DROP TABLE IF EXISTS more CASCADE")
    row = (
        "SELECT (ARRAY['1st', '2nd', '3rd'])[n % 3 + 1] AS class, n % 2 AS sex, n % 6 > 2 AS "
        "survived"
    )
    bench.rows(f"CREATE TABLE more AS {row} FROM generate_series(1, 300) n")
    plan = (
        "SELECT why FROM cerebro.plan('more', 'survived', split => 'random 0.3') WHERE name = "
        "'training'"
    )
    assert bench.value(plan) == "random 0.3 of copies, as split says"
    options = (
        "models => '{{realmlp_simple}}', configs => 1, epochs => 20, workers => 1, refit => "
        "'none', space => '{{\"batch_size\": 16}}'"
    )
    call = (
        "SELECT validation FROM cerebro.train('more', 'survived', 'spare', seed => 1, "
        f"{options}{{}})"
    )
    assert bench.value(call.format(", split => 'random 0.3'")) == 1, (
        "no combination of values is held back as a whole"
    )
    newest = """
        SELECT training_rows, validation_rows FROM cerebro.model_version WHERE model = 'spare'
        ORDER BY version DESC LIMIT 1"""
    trained_on, held = bench.row(newest)
    assert trained_on + held == 300 and 60 < held < 120
    bench.rows("CREATE OR REPLACE VIEW many AS SELECT m.* FROM more m, generate_series(1, 10)")
    for source in ("more", "many"):
        assert (
            bench.value(f"SELECT min(importance) FROM cerebro.importance('spare', '{source}')")
            > 0.1
        )
    assert all(ok for (ok,) in bench.rows("SELECT ok FROM cerebro.verify('spare')"))
    for again in (
        call.format(", split => 'random 0.3'"),
        "SELECT version FROM cerebro.refresh('spare')",
    ):
        bench.rows(f"INSERT INTO more {row} FROM generate_series(1, 60) n")
        before = bench.row(newest)
        assert bench.rows(again)
        after = bench.row(newest)
        assert (
            after[0] > before[0]
            and after[1] > before[1]
            and sum(after) == bench.value("SELECT count(*) FROM more")
        )


@pytest.mark.long
def test_the_rows_of_another_table_are_held_back(bench: Workbench, spare: str) -> None:
    """Whatever the order and the types of its columns; and those of the table are all trained
    on.
    """
    bench.rows(
        "CREATE TABLE later AS SELECT fare::real, survived::text, id::numeric, booked::timestamp, "
        "deck, age::text FROM passengers WHERE id % 3 = 0"
    )
    call = (
        f"SELECT run_id FROM cerebro.train('passengers', 'survived', 'spare', {QUICK}, split => "
        "'table later')"
    )
    with pytest.raises(
        psycopg2.errors.DatatypeMismatch,
        match="'age' of later has type text; the model expects a num",
    ):
        bench.rows(call)
    bench.rows("ALTER TABLE later ALTER age TYPE numeric USING age::numeric")
    for again in (call, call.replace(", split => 'table later'", "")):
        bench.rows(again)
    rows = bench.row(
        "SELECT (SELECT count(survived) FROM passengers), (SELECT count(survived) FROM later)"
    )
    found = bench.rows(
        "SELECT training_rows, validation_rows FROM cerebro.model_version WHERE model = 'spare'"
    )
    assert found == [rows, rows]
    assert (
        bench.value("SELECT split FROM cerebro.model WHERE model = 'spare'")
        == 'table "public"."later"'
    )
    bench.rows("ALTER TABLE later RENAME survived TO lived")
    with pytest.raises(
        psycopg2.errors.UndefinedColumn, match=r"'survived' in .*later.*, whose rows are held back"
    ):
        bench.rows(call)


def _held(bench: Workbench, run_id: int) -> set[int]:
    """The rows that a run holds back, by its spec."""
    spec = TrainSpec.from_json(
        bench.value("SELECT spec -> 'train' FROM cerebro.run WHERE run_id = %s", run_id)
    )
    session = Session(bench)
    oid = bench.value("SELECT %s::regclass::oid::integer", spec.relation)
    rows = SourceRows(session, session.run)
    held = read_with_recipe(
        rows, "train", Relation("", "", "", oid, spec.relation), spec, None
    ).parts[1]
    return {
        number
        for (number,) in session.run(
            f"SELECT t.id FROM {held.table} t WHERE {held.side.text}", held.side.values
        )
    }


@pytest.mark.long
def test_versions_are_deployed_and_dropped(bench: Workbench, spare: str) -> None:
    for epochs in (1, 3):
        text = QUICK.replace("epochs => 2", f"epochs => {epochs}")
        bench.rows(f"SELECT * FROM cerebro.train('passengers', 'fare', 'spare', {text}, seed => 3)")
    (first, _, _), (second, deployed, margin) = bench.rows(
        "SELECT value, deployed, margin > 0 FROM cerebro.model_version WHERE model = 'spare' "
        "ORDER BY version"
    )
    assert margin and deployed == (second < first)
    assert bench.value("SELECT cerebro.deploy('spare', '1')") == 1
    assert bench.value("SELECT cerebro.deploy('spare', 'newest')") == 2
    assert bench.value("SELECT cerebro.deploy('spare', 'previous')") == 1
    assert bench.value("SELECT cerebro.deploy('spare')") == (2 if second <= first else 1)
    for wrong in ("3", "oldest", ""):
        with pytest.raises(
            psycopg2.errors.InvalidParameterValue, match="expected one of best, newest, previous"
        ):
            bench.rows("SELECT cerebro.deploy('spare', %s)", wrong)
    runs = [
        run
        for (run,) in bench.rows("SELECT run_id FROM cerebro.model_version WHERE model = 'spare'")
    ]
    own, patterns = (
        f"{STATES} AND relname ~ ANY (%s) AND relname !~ '_c[0-9]'",
        [f"^r{run}_" for run in runs],
    )
    assert len(bench.rows(own, patterns)) == 5 * len(runs)
    bench.rows("SELECT cerebro.drop_model('spare')")
    assert not bench.rows(own, patterns) and not bench.rows(
        "SELECT FROM cerebro.model_version WHERE model = 'spare'"
    )
    with pytest.raises(psycopg2.errors.UndefinedObject, match="no model 'spare'"):
        bench.rows("SELECT cerebro.drop_model('spare')")


@pytest.mark.long
def test_a_version_that_predicts_something_else_waits(bench: Workbench, spare: str) -> None:
    """Another target, or numbers where classes were predicted: there is nothing that both could be
    compared by.
    """
    quick = "models => '{linear}', configs => 1, epochs => 1, workers => 1"
    classes, numbers = (f", task => '{task}'" for task in ("classification", "regression"))
    aims = [("age", classes), ("deck", ""), ("age", numbers), ("age", classes)]
    predicting = "SELECT version, target, task FROM cerebro.model WHERE model = 'spare'"
    for number, (target, task) in enumerate(aims, 1):
        if number == 4:
            assert bench.value("SELECT cerebro.deploy('spare', '3')") == 3
        before = bench.row(predicting) if number > 1 else None
        bench.rows(f"SELECT * FROM cerebro.train('passengers', '{target}', 'spare', {quick}{task})")
        waits = f"it predicts another target or task. SELECT cerebro.deploy('spare', '{number}');"
        assert (waits in "".join(bench.messages())) == (number > 1)
        assert before in (None, bench.row(predicting))
    assert bench.row(predicting) == (3, "age", "regression")
    assert bench.value("SELECT cerebro.deploy('spare', 'best')") in (1, 4), (
        "as far as the same is predicted"
    )


@pytest.mark.long
def test_a_new_version_predicts_where_it_is_better_on_the_rows_of_now(
    bench: Workbench, spare: str
) -> None:
    """Whatever the one before was worth on those of then; one that cannot predict them any more is
    worth nothing.
    """
    linear = "models => '{linear}', configs => 1, workers => 1"
    good = f'{linear}, epochs => 10, seed => 1, space => \'{{"lr": 0.1, "batch_size": 16}}\''
    bench.rows(
        "CREATE TABLE moving AS SELECT n AS id, n % 10 AS x, n % 3 AS z, n % 10 > 4 AS y FROM "
        "generate_series(1, 400) n"
    )
    for text, deployed in ((good, 1), (f"{linear}, epochs => 1", 1)):
        bench.rows(f"SELECT * FROM cerebro.train('moving', 'y', 'spare', {text})")
        assert bench.value("SELECT version FROM cerebro.model WHERE model = 'spare'") == deployed
    bench.rows("UPDATE moving SET y = NOT y")
    for change, deployed in (("SELECT 1", 3), ("ALTER TABLE moving RENAME COLUMN x TO w", 4)):
        bench.rows(change)
        bench.rows(f"SELECT * FROM cerebro.train('moving', 'y', 'spare', {good})")
        assert bench.value("SELECT version FROM cerebro.model WHERE model = 'spare'") == deployed
    assert "can no longer predict" in "".join(bench.messages())


def test_any_names_will_do(bench: Workbench, spare: str) -> None:
    columns = ", ".join(
        f"sin(n * {place})::real AS {quoted(name)}" for place, name in enumerate(NAMES, 1)
    )
    table = f"CREATE TABLE {quoted(ODD)} AS SELECT {columns}, n % 2 = 0 AS {quoted(ODD)}"
    bench.rows(f"{table} FROM generate_series(1, 80) n")
    bench.rows(f"SELECT * FROM cerebro.train(%s, %s, 'spare', {QUICK})", quoted(ODD), ODD)
    known = "SELECT column_name FROM cerebro.feature WHERE model = 'spare' ORDER BY place"
    assert [name for (name,) in bench.rows(known)] == NAMES


def quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


WRONG = {
    "train(NULL, 'survived')": "22004",
    "train('passengers', NULL)": "22004",
    "train('nobody', 'survived')": "42P01",
    "train('passengers', 'survivd')": "42703",
    "train('passengers', 'survived', columns => 'aeg')": "42703",
    "train('passengers', 'survived', columns => 'survived')": "22023",
    "train('passengers', 'survived', types => '{\"age\": \"text\"}')": "22023",
    "train('passengers', 'survived', types => '[]')": "22023",
    "train('passengers', 'survived', types => '{\"age\": 1}')": "22023",
    "train('passengers', 'survived', task => 'clustering')": "22023",
    "train('passengers', 'survived', task => 'regression')": "22023",
    "train('passengers', 'booked')": "42804",
    "train('passengers', 'survived', split => 'half', model => 'new')": "22023",
    "train('passengers', 'survived', split => 'group clan', model => 'new')": "42703",
    "train('passengers', 'survived', split => 'column age', model => 'new')": "22023",
    "train('passengers', 'survived', split => 'table nobody', model => 'new')": "42P01",
    "train('passengers', 'survived', models => '{deep}')": "42704",
    "train('passengers', 'survived', models => '{}')": "22004",
    "train('passengers', 'survived', space => '{\"rate\": 1}')": "22023",
    "train('passengers', 'survived', space => '{\"lr\": -1}')": "22023",
    "train('passengers', 'survived', metric => 'rmse')": "22023",
    "train('passengers', 'survived', configs => 0)": "22023",
    "train('passengers', 'survived', epochs => -1)": "22023",
    "train('passengers', 'survived', budget => '0')": "22023",
    "train('passengers', 'survived', budget => '-1 minute')": "22023",
    "train('passengers', 'survived', backend => 'theano')": "22023",
    "train('(SELECT 1)', 'survived')": "42602",
    "train('nothing', 'y')": "22023",
    "train('one_class', 'y')": "22023",
    "train('all_differ', 'y')": "22023",
    "train('no_column', 'y')": "22023",
}
POOR = """
    CREATE TABLE nothing (x integer, y boolean);
    CREATE TABLE one_class AS SELECT n AS x, true AS y FROM generate_series(1, 50) n;
    CREATE TABLE all_differ AS SELECT n AS x, md5(n::text) AS y FROM generate_series(1, 50) n;
    CREATE TABLE no_column AS SELECT 1 AS x, n % 2 = 0 AS y FROM generate_series(1, 50) n"""


def test_wrong_calls_are_refused_before_anything_is_left_behind(
    bench: Workbench, passengers: str
) -> None:
    bench.rows(POOR)
    before = bench.rows(f"{STATES} ORDER BY 1"), bench.last_run_id()
    for number, (call, sqlstate) in enumerate(WRONG.items()):
        for name in ("train", "plan")[
            : 1 + (number % 5 == 0)
        ]:  # a plan is asked for by the same arguments
            with pytest.raises(psycopg2.Error) as refused:
                bench.rows(f"SELECT * FROM cerebro.{call.replace('train', name, 1)}")
            assert refused.value.pgcode == sqlstate, (call, name, str(refused.value))
            assert f"{name} error" in str(refused.value) or sqlstate in ("42704", "42602"), call
    assert (bench.rows(f"{STATES} ORDER BY 1"), bench.last_run_id()) == before


def test_what_only_the_caller_sees_is_planned_but_not_trained_on(bench: Workbench) -> None:
    bench.rows(
        "CREATE TEMP TABLE own AS SELECT n AS x, n % 2 = 0 AS y FROM generate_series(1, 50) n"
    )
    assert ("rows", "training") in bench.rows("SELECT section, name FROM cerebro.plan('own', 'y')")
    with pytest.raises(psycopg2.errors.ActiveSqlTransaction, match="COMMIT first"):
        bench.rows("SELECT * FROM cerebro.train('own', 'y')")


@pytest.mark.parametrize(
    ("options", "rows", "words"),
    [
        ("'survived', split => 'column side'", 144, "column side has them on neither side"),
        ("'odd', split => 'random 0.2'", 150, "their target is no finite number"),
    ],
)
def test_rows_that_are_not_used_are_told(
    bench: Workbench, spare: str, options: str, rows: int, words: str
) -> None:
    bench.rows(
        "CREATE OR REPLACE VIEW folded AS"
        " SELECT t.*, (ARRAY['training', 'validation', 'test', 'training'])[id % 4 + 1] AS side,"
        " CASE WHEN id % 4 = 2 THEN 'infinity' ELSE fare::float8 END AS odd FROM passengers t"
    )
    arguments = (
        f"'folded', {options}, model => 'spare', models => '{{linear}}', configs => 1, epochs => "
        "1, workers => 1"
    )
    query = (
        f"SELECT name, (data -> 'rows')::integer, why FROM cerebro.plan({arguments}) WHERE section "
        "= 'rows'"
    )
    planned = {name: (count, why) for name, count, why in bench.rows(query)}
    assert planned["left out, too"][0] == rows and words in planned["left out, too"][1]
    assert sum(count for count, _ in planned.values()) == 600


@pytest.mark.long
def test_train_tells_of_rows_that_are_not_used_as_a_plan_does(bench: Workbench, spare: str) -> None:
    """For whatever reason, beside those that have no target."""
    bench.rows(
        "CREATE VIEW quarters AS SELECT t.*, (ARRAY['training', 'validation', 'test', "
        "'training'])[id % 4 + 1] AS side FROM passengers t"
    )
    rows = bench.value("SELECT count(survived) FROM quarters WHERE side = 'test'")
    bench.messages()
    bench.rows(
        "SELECT * FROM cerebro.train('quarters', 'survived', split => 'column side', model => "
        f"'spare', {QUICK})"
    )
    said = "".join(bench.messages())
    assert (
        f"{rows} more rows are left out" in said and "column side has them on neither side" in said
    )


@pytest.mark.long
def test_a_plan_knows_what_earlier_runs_over_the_table_have_measured(
    bench: Workbench, spare: str
) -> None:
    def sources(target: str, more: str = "") -> set[str]:
        made = (
            f"'travellers', '{target}', 'spare', configs => 4, epochs => 2, models => '{{linear, "
            f"realmlp}}' {more}"
        )
        told = bench.rows(f"SELECT data FROM cerebro.plan({made}) WHERE section = 'internals'")
        parts = [part for part in told[0][0]["Plan"]["Plans"] if part["Node Type"] == "Program"]
        return {part["Known"].split(" by ")[0].split(" of ")[0] for part in parts}

    bench.rows("CREATE TABLE travellers AS TABLE passengers")
    assert sources("survived") == {"guessed"}
    few = "configs => 2, epochs => 2, models => '{linear}'"
    bench.rows(f"SELECT * FROM cerebro.train('travellers', 'survived', 'spare', {few})")
    assert sources("survived") == {"measured in an earlier run", "guessed"}
    assert sources("fare") == sources("survived", ", backend => 'torch'") == {"guessed"}
    bench.rows("DROP TABLE travellers")


def test_what_was_packed_goes_with_the_states(bench: Workbench, rolled_back: int) -> None:
    """The version stays."""
    own = f"{STATES} AND relname ~ '^r{rolled_back}_' ORDER BY 1"
    names = [name for (name,) in bench.rows(own)]
    assert {
        f"r{rolled_back}_training",
        f"r{rolled_back}_validation_summary",
        f"r{rolled_back}_m1",
    } <= set(names)
    assert bench.value("SELECT cerebro.vacuum_runs('0')") > 0
    assert bench.rows(own) == [(f"r{rolled_back}_m1",)]


def test_others_see_nothing_of_a_model(
    bench: Workbench, rolled_back: int, shared_superuser: Workbench
) -> None:
    with another_role(bench, shared_superuser, "newcomer") as newcomer:
        for view in (
            "model",
            "model_grant",
            "model_version",
            "feature",
            "model_log",
            "version_log",
        ):
            assert not newcomer.rows(f"SELECT * FROM cerebro.{view}"), view
        for call in ("deploy('rolled back')", "drop_model('rolled back')"):
            with pytest.raises(psycopg2.errors.UndefinedObject):
                newcomer.rows(f"SELECT cerebro.{call}")
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            newcomer.rows("DELETE FROM cerebro.version_log")
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            newcomer.rows("BEGIN; LOCK TABLE cerebro.model_log")
    assert bench.value("SELECT versions FROM cerebro.model WHERE model = 'rolled back'") == 1


@pytest.mark.long
def test_who_was_granted_a_model_has_its_later_versions(
    bench: Workbench, spare: str, shared_superuser: Workbench
) -> None:
    bench.rows(f"SELECT * FROM cerebro.train('passengers', 'survived', 'spare', {QUICK})")
    with another_role(bench, shared_superuser, "newcomer") as newcomer:
        bench.rows(
            "GRANT SELECT ON passengers TO newcomer; SELECT cerebro.grant_predict('spare', "
            "'newcomer')"
        )
        predicted = (
            "SELECT * FROM cerebro.predict('spare', 'public.passengers', owner => 'cerebro') "
            "ORDER BY id"
        )
        before = newcomer.rows(predicted)
        assert before == bench.rows(predicted)
        bench.rows("UPDATE cerebro.model_log SET deployed = NULL WHERE model = 'spare'")
        bench.rows(
            f"SELECT * FROM cerebro.train('passengers', 'survived', 'spare', {QUICK}, seed => 77)"
        )
        assert newcomer.rows("SELECT version, versions FROM cerebro.model") == [(2, None)]
        assert newcomer.rows(predicted) == bench.rows(predicted) != before
        bench.rows("REVOKE SELECT ON passengers FROM newcomer")


@pytest.mark.long
@pytest.mark.parametrize(("target", "configs"), [("known", 2), ("worth", 1)])
def test_columns_that_the_caller_may_not_read_are_not_read(
    bench: Workbench, shared_superuser: Workbench, target: str, configs: int
) -> None:
    """Of a table with a primary key: its other columns are asked of nobody, whatever is done with
    the model.
    """
    with another_role(bench, shared_superuser, "newcomer") as newcomer:
        bench.rows(
            "CREATE TABLE partly AS SELECT n AS id, n % 10 AS x, md5(n::text) AS secret, n % 10 > "
            "4 AS known, (n % 10)::float8 / 3 AS worth FROM generate_series(1, 300) n; ALTER "
            "TABLE partly ADD PRIMARY KEY (id); GRANT SELECT (id, x, known, worth) ON partly TO "
            "newcomer"
        )
        options = (
            f"columns => 'x', models => '{{linear}}', configs => {configs}, epochs => 2, ensemble "
            "=> 3, workers => 1"
        )
        newcomer.rows(
            f"SELECT * FROM cerebro.train('public.partly', '{target}', 'mine', {options})"
        )
        worth = (
            "SELECT count(importance) FROM cerebro.feature WHERE model = 'mine' AND column_name = "
            "'x'"
        )
        assert newcomer.value(worth) == 1
        for call in ("importance", "evaluate", "drift", "predict", "attribution"):
            assert newcomer.rows(f"SELECT * FROM cerebro.{call}('mine', 'public.partly')"), call
        assert all(ok for (ok,) in newcomer.rows("SELECT ok FROM cerebro.verify('mine')"))
        newcomer.rows("SELECT cerebro.drop_model('mine')")
        bench.rows("DROP TABLE partly")


def test_templates_are_listed_with_what_space_takes(bench: Workbench) -> None:
    usual: dict[str, object] = dict(
        bench.rows("SELECT field, usual FROM cerebro.template WHERE template = 'linear'")
    )
    assert usual == {
        "lr": 0.01,
        "link": "identity",
        "batch_size": "auto",
        "class_weight": "none",
        "weight_decay": 0.0,
    }
    space: dict[str, object] = dict(
        bench.rows("SELECT field, range FROM cerebro.template WHERE template = 'realmlp'")
    )
    bench.rows(
        "CREATE TABLE IF NOT EXISTS small AS SELECT n AS x, n % 2 = 0 AS y FROM "
        "generate_series(1, 50) n"
    )
    assert bench.rows("SELECT * FROM cerebro.plan('small', 'y', space => %s)", json.dumps(space))


@pytest.mark.long
def test_a_search_tries_more_and_trains_the_best_to_the_end(
    bench: Workbench, passengers: str, spare: str
) -> None:
    found = bench.rows(
        "SELECT mst_key, epochs, status, run_id FROM cerebro.train('passengers', 'survived', "
        "'spare', models => '{linear}', search => 'asha', configs => 9, epochs => 9, ensemble => "
        "1, seed => 3, workers => 1, space => '{\"batch_size\": 32}', budget => '10 minutes')"
    )
    run_id = found[0][3]
    assert len(found) == 9 and max(epochs for _, epochs, _, _ in found) == 9
    assert sum(epochs for _, epochs, _, _ in found) < 60
    assert {status for _, epochs, status, _ in found if epochs < 9} == {"stopped"}
    assert bench.row("SELECT status, error FROM cerebro.run WHERE run_id = %s", run_id) == (
        "completed",
        None,
    )
    rules = "SELECT DISTINCT rule FROM cerebro.decision WHERE run_id = %s"
    assert bench.rows(rules, run_id) == [("asha",)]
    assert bench.value("SELECT bool_and(ok) FROM cerebro.verify('spare')")
