"""cerebro.predict_row: what a model by name says of one row, which comes as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from roles import refused
from versions import BatchResult, deploy, trained
from workbench import Workbench

from cerebro_plpy.configs.templates.layers.model_io import Measure

ROWS = 400
TYPED = f"""
    CREATE DOMAIN code AS char(6);
    CREATE TYPE mood AS ENUM ('glad', 'sad');
    CREATE TABLE typed AS
    SELECT n AS id, n::bigint * 3037000499 AS large, (n * 7919 % 97 / 7.0)::real AS small,
        sin(n) AS real8,
           CASE WHEN n % 7 > 0 THEN (n * 1.10)::numeric END AS cost,
               (n * 1.5)::numeric::money AS paid,
           n % 3 = 0 AS flag, (ARRAY['ab', 'c d', 'é'])[n % 3 + 1]::code AS code,
           (ARRAY['glad', 'sad'])[n % 2 + 1]::mood AS mood, ('10.0.0.' || n % 4)::inet AS host,
           date '2020-02-28' + n % 900 AS day, timestamp '2020-01-01 00:00:00.25' + n * interval
               '7 hours' AS at,
           timestamptz '2020-01-01 00:00:00+05' + n * interval '7 hours' AS atz,
               (n % 24) * interval '1 hour' AS span,
           timestamp '2020-01-01' + n % 3 * interval '1 hour' AS turn, n % 3 / 3.0::float8 AS third,
           timestamptz '2020-01-01 00:00+00' + n % 3 * interval '1 hour' AS watch,
               (n % 5 / 2.0)::numeric(4,2) AS step,
           CASE WHEN n % 6 > 0 THEN to_json(n % 11 / 4.0) END AS score,
           to_jsonb((ARRAY['a "', '7'])[n % 2 + 1]) AS mark,
           CASE WHEN n % 2 = 0 THEN 'even "%s"' ELSE 'odd' END AS parity
    FROM generate_series(1, {ROWS}) n"""
MODEL = "parity"


@pytest.fixture(scope="module")
def typed(bench: Workbench) -> BatchResult:
    """A model of classes over columns of many types, some of which only texts tell apart."""
    bench.rows(TYPED)
    types = {"turn": "category", "step": "category", "third": "category", "watch": "category"}
    return trained(bench, MODEL, "typed", "parity", epochs=1, types=types, template="linear")


@pytest.fixture
def session(bench: Workbench, typed: BatchResult) -> Iterator[Workbench]:
    bench.messages()
    yield bench
    bench.rows("ROLLBACK; RESET ALL")


def predicted(session: Workbench, record: object, model: str = MODEL) -> dict[str, Any]:
    found: dict[str, Any] = session.value(
        "SELECT cerebro.predict_row(%s, %s)", model, json.dumps(record)
    )
    return found


@pytest.mark.parametrize("style", ["ISO, MDY", "German", "SQL, DMY"])
def test_a_row_is_predicted_as_its_table_is(session: Workbench, style: str) -> None:
    """Within what the size of a batch changes; all that goes into the network is the same, however
    values look.
    """
    same = "SELECT count(*), sum(probability::numeric) FROM cerebro.predict(%s, 'typed', 'id')"
    before = session.row(same, MODEL)
    session.rows(
        "SET DateStyle = %s; SET IntervalStyle = iso_8601; SET extra_float_digits = 0", style
    )
    session.rows("SET TimeZone = 'Asia/Tokyo'")
    assert session.row(same, MODEL) == (before[0], pytest.approx(before[1]))
    session.rows("RESET extra_float_digits")  # to_jsonb would leave digits out
    query = """
        SELECT p.prediction, p.probability, p.probabilities, to_jsonb(t)::text
        FROM typed t JOIN cerebro.predict(%s, 'typed', 'id') p ON p.id = t.id::text
            ORDER BY t.id LIMIT 30"""
    for prediction, probability, probabilities, record in session.rows(query, MODEL):
        row = session.value("SELECT cerebro.predict_row(%s, %s)", MODEL, record)
        assert row["prediction"] == prediction and row["lower"] is row["upper"] is None
        assert row["probability"] == pytest.approx(probability, abs=1e-6)
        assert row["probabilities"] == pytest.approx(probabilities, abs=1e-6)
    assert not session.messages()


@pytest.mark.long
def test_of_a_number_it_says_a_range(session: Workbench) -> None:
    session.rows(
        "CREATE TABLE sums AS SELECT id, real8, small, (id % 9)::integer AS rest FROM typed"
    )
    floats = Measure(4.0, 2.6, 0.0, 8.0)
    trained(session, "sums", "sums", "rest", epochs=1, margin=0.5, floats=floats, template="linear")
    query = """
        SELECT p.prediction, p.lower, p.upper, to_jsonb(t)::text
        FROM sums t JOIN cerebro.predict('sums', 'sums', 'id') p ON p.id = t.id::text LIMIT 20"""
    for prediction, lower, upper, record in session.rows(query):
        assert session.value("SELECT cerebro.predict_row('sums', %s)", record) == {
            "prediction": prediction, "probability": None, "probabilities": None,
            "lower": pytest.approx(lower, abs=1e-4), "upper": pytest.approx(upper, abs=1e-4),
        }  # fmt: skip


def test_missing_columns_are_null_and_told_once(session: Workbench) -> None:
    full = session.value(
        'SELECT to_jsonb(t) || \'{"cost": null, "large": null}\' FROM typed t WHERE id = 1'
    )
    some = {name: value for name, value in full.items() if name not in ("cost", "large")}
    assert (
        predicted(session, full) == predicted(session, {**full, "more": [1, {}], "parity": 7})
        and not session.messages()
    )
    assert predicted(session, some) == predicted(session, full)
    assert session.messages() == [
        "NOTICE:  predict_row: record has no 'large', 'cost': taken for NULL\n"
    ]
    assert predicted(session, {})["prediction"] in ("odd", 'even "%s"')


def test_numbers_may_be_texts_and_of_any_size(session: Workbench) -> None:
    full = session.value("SELECT to_jsonb(t) FROM typed t WHERE id = 1")
    assert predicted(
        session, {**full, "large": str(full["large"]), "real8": str(full["real8"])}
    ) == predicted(session, full)
    infinite = (
        () if session.greenplum else ("Infinity", "-Infinity")
    )  # no numeric is, in PostgreSQL 12
    for number in (1e300, -1e300, 1e-300, "NaN", *infinite, None):
        assert predicted(session, {**full, "large": number, "real8": number, "cost": number})[
            "prediction"
        ]
    huge = json.dumps(full).replace(json.dumps(full["large"]), "1" + "0" * 400, 1)
    assert session.value("SELECT cerebro.predict_row(%s, %s) ->> 'prediction'", MODEL, huge)


WRONG = {
    "a text": (
        {"real8": "tall"},
        "22P02",
        "column 'real8' of record is \"tall\"; expected a number",
    ),
    "a flag": ({"cost": True}, "22P02", "'cost' of record is true"),
    "a list": ({"large": [1]}, "22P02", "'large' of record is [1]"),
    "no day": ({"day": "soon"}, None, "'day' of record is \"soon\"; expected a date or timestamp"),
    "a far day": ({"day": "2020-02-31"}, None, "'day' of record is"),
    "no object": ([1], "22023", "JSON of type array; expected an object"),
    "a number": (1, "22023", "JSON of type number"),
    "null": (None, "22023", "JSON of type null"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_cannot_be_read_is_named(session: Workbench, wrong: str) -> None:
    record, code, words = WRONG[wrong]
    given = json.dumps(record)
    refused(
        session,
        "SELECT cerebro.predict_row(%s, %s)",
        MODEL,
        given,
        code=code or "22P02",
        words=words,
    )


def test_no_record_and_no_model_are_refused(session: Workbench) -> None:
    refused(session, "SELECT cerebro.predict_row(%s, NULL)", MODEL, code="22004", words="record")
    refused(session, "SELECT cerebro.predict_row(NULL, '{}')", code="22004", words="model")
    refused(session, "SELECT cerebro.predict_row('Parity', '{}')", code="42704", words="parity")


def test_another_version_predicts_as_soon_as_it_is_deployed(
    session: Workbench, typed: BatchResult
) -> None:
    """Also where the transaction that deployed it is undone."""
    record = session.value("SELECT to_jsonb(t) FROM typed t WHERE id = 1")
    before = predicted(session, record)
    run_id, architecture, compiled = session.row(
        "SELECT run_id, architecture::text, compile_params FROM cerebro.member_log WHERE model = "
        "%s",
        MODEL,
    )
    session.rows("BEGIN")
    deploy(
        session, MODEL, 2, run_id=run_id, source="typed", target="parity", recipe=typed.recipe,
        margin=None,
        classes=["one", "other"], architecture=architecture, compiled=compiled, template="realmlp",
    )  # fmt: skip
    assert predicted(session, record)["probabilities"].keys() == {"one", "other"}
    session.rows("ROLLBACK")
    assert predicted(session, record) == before


def test_calls_do_not_wait_for_a_framework(session: Workbench) -> None:
    """The trainer of the first call serves those that follow, and other calls may have it in
    between.
    """
    record = session.value("SELECT to_jsonb(t) FROM typed t WHERE id = 1")
    expected, trainer = (
        predicted(session, record),
        session.value("SELECT cerebro.trainer_report() ->> 'pid'"),
    )
    assert predicted(session, record) == expected
    assert session.value("SELECT count(*) FROM cerebro.predict(%s, 'typed')", MODEL) == ROWS
    assert predicted(session, record) == expected
    assert session.value("SELECT cerebro.trainer_report() ->> 'pid'") == trainer
    session.rows("SELECT cerebro_internal.trainer_stop()")
    assert predicted(session, record) == expected


@pytest.mark.postgresql("on Greenplum a trigger is called on segments")
def test_a_trigger_predicts(session: Workbench) -> None:
    session.rows("""
        CREATE TABLE arriving (LIKE typed, guess text);
        CREATE FUNCTION guess() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN NEW.guess := cerebro.predict_row('parity', to_jsonb(NEW)) ->> 'prediction'; RETURN
            NEW; END $$;
        CREATE TRIGGER guess BEFORE INSERT ON arriving FOR EACH ROW EXECUTE FUNCTION guess();
        INSERT INTO arriving SELECT * FROM typed WHERE id <= 5""")
    query = """
        SELECT p.prediction = a.guess
        FROM arriving a JOIN cerebro.predict('parity', 'typed', 'id') p ON p.id = a.id::text"""
    assert session.rows(query) == [(True,)] * 5
