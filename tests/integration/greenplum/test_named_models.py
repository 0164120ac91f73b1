"""Predictions by the name of a model where segments work for the statement that wants them.

A function that asks the database for anything while segments are at work does not come back, and
the next one may end the coordinator: so each refusal is followed by a statement of the same
session.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import psycopg2
import pytest
from processes import eventually, trainers
from roles import refused
from versions import BatchResult, trained
from workbench import Workbench

MEGABYTE = 1 << 20
ROWS = 5000
"""More than a block."""
COPIES = 200
"""Of each row, in a table that takes its time."""
HOMES = f"""
    CREATE TABLE homes AS
    SELECT n AS id, (n * 7919 % 97)::double precision AS area, (ARRAY['a', 'b',
        NULL])[n % 3 + 1] AS place,
           CASE WHEN n % 4 < 2 THEN 'yes' ELSE 'no' END AS sold
    FROM generate_series(1, {ROWS}) n DISTRIBUTED BY (id);
    CREATE TABLE everywhere AS TABLE homes DISTRIBUTED REPLICATED;
    CREATE TABLE scattered AS TABLE homes DISTRIBUTED RANDOMLY;
    CREATE VIEW listed AS SELECT area, place, sold, id FROM homes"""
PREDICTED = "cerebro.predict('sold', 'homes', 'id')"
SEGMENT_FILES = (
    "SELECT count(*) FROM gp_dist_random('pg_class') WHERE relnamespace = "
    "'cerebro_state'::regnamespace"
)


@pytest.fixture(scope="module")
def platform() -> str:
    return "greenplum"


@pytest.fixture(scope="module")
def model(bench: Workbench) -> BatchResult:
    bench.rows(HOMES)
    made = trained(bench, "sold", "homes", "sold", template="linear", epochs=1)
    bench.rows(f"CREATE TABLE expected AS SELECT * FROM {PREDICTED} DISTRIBUTED BY (id)")
    return made


@pytest.fixture
def session(bench: Workbench, model: BatchResult) -> Iterator[Workbench]:
    """The shared session; what went wrong has not ended it."""
    yield bench
    assert not bench.connection.closed
    bench.rows("ROLLBACK")


ON_ID = "p.id = h.id::text"
# Of each row the id and what is predicted. The plans differ in where the predictions are wanted: on
# the coordinator, beside segments that are at work or not, and in a process of its own that sends
# them to the segments.
PLACES = {
    "alone": f"SELECT id, probability FROM {PREDICTED}",
    "a join": f"SELECT p.id, p.probability FROM homes h JOIN {PREDICTED} p ON {ON_ID}",
    "a join with what is everywhere": "SELECT p.id, p.probability FROM everywhere h JOIN "
    f"{PREDICTED} p ON {ON_ID}",
    "a join with what was gathered": "SELECT p.id, p.probability FROM (SELECT id FROM homes ORDER "
    f"BY id OFFSET 0) h JOIN {PREDICTED} p ON {ON_ID}",
    "a join with a catalog": f"SELECT p.id, p.probability FROM {PREDICTED} p"
    " LEFT JOIN pg_class c ON c.oid::text = p.id",
    "two of them": f"SELECT p.id, q.probability FROM {PREDICTED} p JOIN {PREDICTED} q USING (id)",
    "a CTE": f"WITH p AS (SELECT * FROM {PREDICTED}) SELECT a.id, b.probability FROM p a JOIN p b "
    "USING (id) JOIN homes h ON h.id::text = a.id",
    "one of several": f"SELECT id, probability FROM {PREDICTED}"
    " UNION ALL SELECT h.id::text, 0 FROM homes h WHERE id < 0",
    "a filter": "SELECT e.id, e.probability FROM expected e"
    f" WHERE e.id IN (SELECT id FROM {PREDICTED} WHERE probability > 0)",
    "a correlated filter": "SELECT e.id, e.probability FROM expected e WHERE EXISTS (SELECT FROM "
    f"{PREDICTED} p WHERE p.id = e.id AND p.probability > e.probability - 0.1)",
    "a list": f"SELECT h.id::text, (SELECT p.probability FROM {PREDICTED} p WHERE p.id = "
    "h.id::text) FROM homes h",
    "a window": f"SELECT p.id, max(p.probability) OVER (PARTITION BY p.id) FROM {PREDICTED} p JOIN "
    f"homes h ON {ON_ID}",
}


def matches(session: Workbench, table: str) -> tuple[int, int]:
    """Rows of a table or query, and those of them that are as they were when nothing else was
    asked.
    """
    query = f"""
        SELECT count(*), count(e.id)
        FROM ({table}) s (id, p) LEFT JOIN expected e ON e.id = s.id
            AND abs(e.probability - s.p) < 1e-5"""
    count, same = session.row(query)
    return count, same


@pytest.mark.parametrize("place", PLACES)
def test_it_may_stand_wherever_a_table_may(session: Workbench, place: str) -> None:
    assert matches(session, PLACES[place]) == (ROWS, ROWS)


@pytest.mark.parametrize("place", PLACES)
def test_it_may_stand_in_what_makes_a_table_or_view(session: Workbench, place: str) -> None:
    session.rows(f"BEGIN; CREATE TABLE made AS {PLACES[place]} DISTRIBUTED RANDOMLY")
    session.rows(f"INSERT INTO made {PLACES[place]}")
    session.rows(f"CREATE VIEW seen AS {PLACES[place]}")
    assert matches(session, "TABLE made") == (2 * ROWS, 2 * ROWS)
    assert matches(session, "TABLE seen") == (ROWS, ROWS)


def test_nothing_is_predicted_for_a_plan(session: Workbench) -> None:
    query = f"SELECT count(*) FROM homes h JOIN {PREDICTED} p ON {ON_ID}"
    with closing(session.another()) as other:
        other.rows(f"EXPLAIN {query}")
        assert not predictions(other)
        other.rows(query)
        assert len(predictions(other)) == 1


@pytest.mark.parametrize("source", ["homes", "everywhere", "scattered", "listed"])
def test_wherever_rows_lie(session: Workbench, source: str) -> None:
    assert matches(
        session, f"SELECT id, probability FROM cerebro.predict('sold', '{source}', 'id')"
    ) == (ROWS, ROWS)


def predictions(session: Workbench) -> dict[str, int]:
    """The files that a session has of them, by their numbers in it, with their bytes."""
    process = Path(f"/proc/{session.pid()}")
    nameless = re.compile(re.escape(os.readlink(process / "cwd")) + r"/#\d+ \(deleted\)")
    files = [file for file in (process / "fd").iterdir() if nameless.fullmatch(os.readlink(file))]
    return {file.name: file.stat().st_size for file in files}


def test_predictions_of_a_transaction_go_with_it(session: Workbench) -> None:
    with closing(session.another()) as other:
        other.rows("BEGIN")
        for _ in range(3):
            other.rows(f"SELECT * FROM {PREDICTED}")
        assert len(predictions(other)) >= 3
        other.rows(f"COMMIT; SELECT * FROM {PREDICTED}")
        assert len(predictions(other)) == 1


def test_what_another_session_predicted_cannot_be_read_without_its_word(session: Workbench) -> None:
    with closing(session.another()) as other:
        other.rows(f"BEGIN; SELECT * FROM {PREDICTED}")
        for name in predictions(other):
            told = f"{other.pid()} {name} {'0' * 32}"
            refused(
                session,
                "SELECT * FROM cerebro_internal.predicted(%s, '', '', '', 0, '', '', 0.9)",
                told,
                code="55000",
            )


OTHERS = {
    "a column": "SELECT * FROM (VALUES ('homes'), ('x')) v (t), LATERAL cerebro.predict('sold', "
    "v.t) p",
    "a column of a table": "SELECT count(*) FROM homes h, LATERAL cerebro.predict('sold', "
    "h.place) p",
    "a column from outside": "SELECT (SELECT count(*) FROM cerebro.predict('sold', v.t))"
    " FROM (VALUES ('homes'), ('x')) v (t)",
}


@pytest.mark.parametrize("arguments", OTHERS)
def test_arguments_that_are_known_too_late_are_refused(session: Workbench, arguments: str) -> None:
    refused(session, OTHERS[arguments], code=None, words="arguments from outer query")
    assert session.value("SELECT count(*) FROM cerebro.predict('sold', 'homes')") == ROWS


def test_names_may_come_from_variables(session: Workbench) -> None:
    session.rows("""
        CREATE OR REPLACE FUNCTION rows_of(name text) RETURNS bigint LANGUAGE plpgsql AS
        $$ BEGIN
             RETURN (SELECT count(*) FROM cerebro.predict('sold', name, 'id') p JOIN homes h
                 ON h.id::text = p.id);
        END $$""")
    assert [session.value(f"SELECT rows_of('{name}')") for name in ("homes", "everywhere")] == [
        ROWS,
        ROWS,
    ]


ROW_CALLS = {
    "on segments": "SELECT cerebro.predict_row('sold', to_jsonb(h)) FROM homes h",
    "for rows that were gathered": "SELECT cerebro.predict_row('sold', h.r)"
    " FROM (SELECT to_jsonb(h) AS r FROM homes h ORDER BY id LIMIT 3) h",
    "for a sum": "SELECT cerebro.predict_row('sold', jsonb_build_object('area', sum(area))) FROM "
    "homes h",
    "a condition": "SELECT count(*) FROM homes h WHERE cerebro.predict_row('sold', to_jsonb(h)) "
    "IS NOT NULL",
    "a constant beside": "SELECT id, cerebro.predict_row('sold', '{}') FROM homes",
}


@pytest.mark.parametrize("call", ROW_CALLS)
def test_rows_of_tables_are_not_predicted_one_by_one(session: Workbench, call: str) -> None:
    for _ in range(3):
        error = refused(session, ROW_CALLS[call], code="0A000", words="for the rows of one")
        assert "cerebro.predict()" in str(error.diag.message_hint) and "unnest(ARRAY(" in str(
            error.diag.message_hint
        )
        assert session.value(
            "SELECT cerebro.predict_row('sold', '{\"area\": 3, \"place\": \"a\"}') ->> 'prediction'"
        )


def test_a_row_that_was_found_before_is_predicted(session: Workbench) -> None:
    one = (
        "SELECT cerebro.predict_row('sold', (SELECT to_jsonb(h) FROM homes h WHERE id = 7)) -> "
        "'probability'"
    )
    expected = session.value("SELECT probability FROM expected WHERE id = '7'")
    assert session.value(one) == pytest.approx(expected, abs=1e-5)
    few = """
        SELECT count(*) FROM unnest(ARRAY(SELECT to_jsonb(h) FROM homes h WHERE id < 9)) AS r
        WHERE cerebro.predict_row('sold', r) ->> 'prediction' IN ('yes', 'no')"""
    assert session.value(few) == 8


def test_other_functions_are_refused_beside_segments_at_work(session: Workbench) -> None:
    call = "SELECT cerebro.drop_run(h.id) FROM (SELECT id FROM homes ORDER BY id LIMIT 2) h"
    refused(session, call, code="0A000", words="for the rows of one")
    assert session.value("SELECT count(*) FROM cerebro.predict('sold', 'homes')") == ROWS


ANSWERS = {
    "evaluate": ("'sold', 'homes'", "metric text, value float8"),
    "importance": ("'sold', 'homes'", "column_name text, importance float8"),
    "attribution": ("'sold', 'few', 'id'", "id text, column_name text, attribution float8"),
}


@pytest.mark.parametrize("function", ANSWERS)
def test_what_else_is_asked_of_a_model_comes_before_the_rest(
    session: Workbench, function: str
) -> None:
    """Beside segments at work it is refused, and the session goes on."""
    arguments, columns = ANSWERS[function]
    session.rows(
        "BEGIN; CREATE TABLE few AS SELECT * FROM homes WHERE id < 30 DISTRIBUTED BY (id); "
        "SAVEPOINT s"
    )
    call = f"cerebro.{function}({arguments})"
    answer = session.value(f"SELECT count(*) FROM {call}")
    for beside in (
        f"SELECT * FROM {call} a, homes h WHERE h.id = 3",
        f"CREATE TABLE made AS SELECT * FROM {call}",
    ):
        error = refused(session, beside, code="0A000", words="for the rows of one")
        assert "jsonb_to_recordset" in str(error.diag.message_hint)
        session.rows("ROLLBACK TO s")
    before = f"jsonb_to_recordset((SELECT jsonb_agg(r) FROM {call} r)) AS r ({columns})"
    session.rows(f"CREATE TABLE made AS SELECT * FROM {before} DISTRIBUTED RANDOMLY")
    assert session.value("SELECT count(*) FROM made") == answer > 0
    assert session.value(f"SELECT count(*) FROM {before} JOIN homes h ON h.id = 3") == answer


def test_policies_of_rows_hold(session: Workbench, shared_superuser: Workbench) -> None:
    shared_superuser.rows("""
        CREATE TABLE shown (id integer) DISTRIBUTED BY (id); INSERT INTO shown VALUES (3), (4), (5);
        CREATE TABLE guarded AS TABLE homes DISTRIBUTED BY (id); ALTER TABLE guarded ENABLE ROW
            LEVEL SECURITY;
        CREATE POLICY few ON guarded USING (EXISTS (SELECT FROM shown s WHERE s.id = guarded.id));
        GRANT SELECT ON guarded, shown TO cerebro""")
    query = (
        "SELECT p.id FROM cerebro.predict('sold', 'guarded', 'id') p JOIN homes h ON h.id::text = "
        "p.id ORDER BY 1"
    )
    assert session.rows(query) == [("3",), ("4",), ("5",)]


@pytest.fixture(scope="module")
def many(bench: Workbench, model: BatchResult) -> str:
    """A table that takes its time."""
    bench.rows(
        f"CREATE TABLE many AS SELECT h.* FROM homes h, generate_series(1, {COPIES}) n DISTRIBUTED "
        "BY (id)"
    )
    return "many"


@pytest.mark.parametrize("end", ["cancel", "a killed trainer"])
def test_a_prediction_may_end_in_the_middle(session: Workbench, many: str, end: str) -> None:
    query = (
        f"SELECT count(*) FROM homes h JOIN cerebro.predict('sold', '{many}', 'id') p ON p.id = "
        "h.id::text"
    )
    with closing(session.another()) as other:
        other.rows(f"SELECT * FROM {PREDICTED}")
        mine = trainers({other.pid()})
        with other.calling(lambda: other.rows(query)) as called:
            eventually(lambda: max(predictions(other).values(), default=0) > 5 * MEGABYTE)
            if end == "cancel":
                other.connection.cancel()
            else:
                os.kill(min(mine), signal.SIGKILL)
            if end == "cancel":
                with pytest.raises(psycopg2.Error):
                    called.result()
            else:
                assert called.result() == [(ROWS * COPIES,)], "another trainer has taken its place"
        with suppress(psycopg2.Error):  # a cancel may be noticed once more
            other.rows(PLACES["a join"])
        assert matches(other, PLACES["a join"]) == (ROWS, ROWS)
        assert len(predictions(other)) == 1


@pytest.mark.long
@pytest.mark.parametrize("source", ["homes", "everywhere", "scattered", "listed"])
def test_a_model_goes_from_every_segment(session: Workbench, source: str) -> None:
    before = session.value(SEGMENT_FILES)
    quick = "models => '{linear}', configs => 2, epochs => 1"
    ((run_id,), _) = session.rows(
        f"SELECT run_id FROM cerebro.train('{source}', 'sold', 'gone', {quick})"
    )
    assert session.value(SEGMENT_FILES) > before
    assert session.value("SELECT count(*) FROM cerebro.predict('gone', 'homes')") == ROWS
    session.rows("SELECT cerebro.drop_model('gone')")
    assert session.value(SEGMENT_FILES) == before
    left = "SELECT count(*) FROM gp_dist_random('cerebro.version_log') WHERE run_id = %s"
    assert session.value(left, run_id) == 0
