"""Evaluate and predict on Greenplum: on the segments where rows lie, and with what PostgreSQL says
of the same weights.

The models are trained on PostgreSQL and carried over with their tables. Needs a Greenplum on this
machine: skipped unless CEREBRO_TEST_GREENPLUM_URL is the URL of one of its databases, as a
superuser.
"""

from __future__ import annotations

import io
import itertools
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import greenplum
import numpy as np
import psycopg2
import pytest
from models import PICTURES
from PIL import Image
from processes import backend_of, command_line, eventually, processes
from roles import refused
from sqlalchemy.engine import make_url
from workbench import POINTS, Workbench, compile_text

from cerebro_db.server import provision

ROLE = provision.ROLE
MEGABYTE = 1 << 20
# float32 sums of a small model, in an order that depends on how many threads a trainer has.
TOLERANCE = 1e-5
COLUMNS = (
    "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute"
    " WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum"
)
numbers = itertools.count(1)


@pytest.fixture(scope="module")
def platform() -> str:
    """Where the models are trained."""
    return "postgresql"


@pytest.fixture(scope="module")
def superuser() -> Iterator[Workbench]:
    """A superuser in a new database of Greenplum."""
    with greenplum.database(f"test_scoring_{os.getpid()}") as database:
        made = Workbench(database.superuser_url)
        yield made
        made.close()


@pytest.fixture(scope="module")
def there(superuser: Workbench, bench: Workbench, trained: str) -> Iterator[Workbench]:
    """A session on Greenplum with the points, the packed table and the models that PostgreSQL
    has.
    """
    made = user(superuser)
    made.rows(f"{POINTS} DISTRIBUTED BY (id)")
    for suffix in ("", "_info", "_summary"):
        carry(bench, made, f"{trained}{suffix}", "RANDOMLY")
    carry(bench, made, "packed", "BY (__dist_key__)")
    carry(bench, made, "packed_summary", "REPLICATED")
    yield made
    made.close()


@pytest.fixture
def session(there: Workbench) -> Iterator[Workbench]:
    """A session of the same role that has made no call yet."""
    made = there.another()
    yield made
    made.close()


@pytest.fixture(scope="module")
def trained(bench: Workbench) -> str:
    """A model on PostgreSQL, over a table whose segments have keys of three segments of
    Greenplum.
    """
    bench.pack("packed", 3)
    bench.configure("configs", [compile_text("Adam(lr=0.05)")])
    bench.fit("packed", "model", "configs", 3, seed=1)
    return "model"


def user(superuser: Workbench) -> Workbench:
    """A session of the ordinary role."""
    return Workbench(
        make_url(superuser.url).set(username=ROLE).render_as_string(hide_password=False)
    )


def carry(source: Workbench, to: Workbench, table: str, distributed: str) -> None:
    """Copy a table from PostgreSQL to Greenplum; segments of a packed one get keys that lie
    apart.
    """
    columns = ", ".join(f'"{name}" {kind}' for name, kind in source.rows(COLUMNS, table))
    to.rows(f"CREATE TABLE {table} ({columns}) DISTRIBUTED {distributed}")
    text = io.StringIO()
    keyed = (
        source.value(f"SELECT array_agg(DISTINCT __dist_key__) FROM {table}")
        if "BY" in distributed
        else []
    )
    names = ", ".join(f'"{name}"' for name, _ in source.rows(COLUMNS, table))
    cases = " ".join(f"WHEN {key} THEN {own}" for key, own in zip(keyed, keys(to), strict=False))
    chosen = names.replace('"__dist_key__"', f"CASE __dist_key__ {cases} END") if keyed else names
    with source.connection.cursor() as cursor:
        cursor.copy_expert(f"COPY (SELECT {chosen} FROM {table}) TO STDOUT", text)
    text.seek(0)
    with to.connection.cursor() as cursor:
        cursor.copy_expert(f"COPY {table} ({names}) FROM STDIN", text)


def keys(there: Workbench) -> list[int]:
    """A key of each segment."""
    query = "SELECT min(key) FROM cerebro.segment_key GROUP BY gp_segment_id ORDER BY gp_segment_id"
    return [key for (key,) in there.rows(query)]


def predict(
    session: Workbench,
    table: str = "points",
    pred_type: str = "'prob'",
    *,
    identifier: str = "id",
    inputs: str = "x",
    model: str = "model",
) -> str:
    """Predict into a new table; its name."""
    output = f"predicted_{next(numbers)}"
    session.rows(
        f"SELECT madlib_predict(%s, %s, %s, %s, %s, {pred_type}, FALSE, 1)",
        model,
        table,
        identifier,
        inputs,
        output,
    )
    return output


def segment_trainers(database: str) -> dict[tuple[int, int], str]:
    """Return the titles of processes that serve this database, by their trainers and themselves.

    A trainer that is kept may serve another process later.
    """
    titles = {}
    for pid in processes():
        backend = backend_of(command_line(pid))
        title = next(iter(command_line(backend)), "") if backend else ""
        if backend and f" {database} " in title:
            titles[pid, backend] = title
    return titles


def database_of(session: Workbench) -> str:
    return str(session.value("SELECT current_database()"))


TYPES = {
    "prob": "'prob'", "nothing given": "NULL", "response": "'response'", "the two best": "2",
    "above a third": "0.3333",
}  # fmt: skip


@pytest.mark.parametrize("pred_type", TYPES.values(), ids=TYPES)
def test_predictions_are_those_of_postgresql(
    bench: Workbench, there: Workbench, pred_type: str
) -> None:
    rank = "0" if "response" in pred_type else "rank"
    both = []
    for session in (bench, there):
        table = predict(session, pred_type=pred_type)
        both.append(
            session.rows(
                f"SELECT id, class_name, class_value, {rank}, prob FROM {table} ORDER BY 1, 3"
            )
        )
    assert [row[:4] for row in both[0]] == [row[:4] for row in both[1]]
    assert [row[4] for row in both[0]] == pytest.approx([row[4] for row in both[1]], abs=TOLERANCE)


def test_evaluating_gives_the_numbers_of_postgresql(bench: Workbench, there: Workbench) -> None:
    both = []
    for session in (bench, there):
        output = f"evaluated_{next(numbers)}"
        session.rows(f"SELECT madlib_evaluate('model', 'packed', '{output}', mst_key => 1)")
        both.append(session.row(f"SELECT * FROM {output}"))
    assert both[0][:2] == pytest.approx(both[1][:2], abs=TOLERANCE)
    assert both[0][2:] == both[1][2:]


@pytest.mark.parametrize("call", ["evaluate", "predict"])
def test_each_segment_has_its_own_trainer(
    superuser: Workbench, there: Workbench, session: Workbench, call: str
) -> None:
    if call == "evaluate":
        session.rows("SELECT madlib_evaluate('model', 'packed', 'evaluated_apart', mst_key => 1)")
    else:
        predict(session)
    titles = segment_trainers(database_of(session)).values()
    assert {match[1] for title in titles if (match := re.search(r" seg(\d+) ", title))} == {
        "0",
        "1",
        "2",
    }


def test_a_call_uses_the_trainers_of_the_one_before(there: Workbench) -> None:
    predict(there)
    before = segment_trainers(database_of(there)).keys()
    there.rows("SELECT madlib_evaluate('model', 'packed', 'evaluated_again', mst_key => 1)")
    predict(there)
    assert before >= segment_trainers(database_of(there)).keys() != set()


def test_a_segment_without_rows_needs_no_trainer(there: Workbench, session: Workbench) -> None:
    there.rows("CREATE TABLE together AS SELECT id, x, 1 AS k FROM points DISTRIBUTED BY (k)")
    there.rows("CREATE TABLE nowhere AS SELECT * FROM points LIMIT 0 DISTRIBUTED BY (id)")
    before = segment_trainers(database_of(session)).keys()
    assert session.value(f"SELECT count(*) FROM {predict(session, 'nowhere')}") == 0
    assert segment_trainers(database_of(session)).keys() <= before
    assert session.value(f"SELECT count(DISTINCT id) FROM {predict(session, 'together')}") == 96
    assert len(segment_trainers(database_of(session)).keys() - before) == 1


MANY = "SELECT n AS id, p.x FROM generate_series(1, 30000) n JOIN points p ON p.id = n % 96 + 1"
RELATIONS = {
    "heap": f"CREATE TABLE {{}} AS {MANY} DISTRIBUTED BY (id)",
    "at random": f"CREATE TABLE {{}} AS {MANY} DISTRIBUTED RANDOMLY",
    "append-optimized": f"CREATE TABLE {{}} WITH (appendonly=true, orientation=column) AS {MANY} "
    "DISTRIBUTED BY (id)",
    "replicated": f"CREATE TABLE {{}} AS {MANY} DISTRIBUTED REPLICATED",
    "partitioned": "CREATE TABLE {} (id integer, x real[]) DISTRIBUTED BY (id)"
    " PARTITION BY RANGE (id) (START (1) END (20000) EVERY (7000), DEFAULT PARTITION others);"
    f" INSERT INTO {{}} {MANY}",
    "a view": f"CREATE VIEW {{}} AS {MANY}",
    "a materialized view": f"CREATE MATERIALIZED VIEW {{}} AS {MANY} DISTRIBUTED BY (id)",
    "an external table": "CREATE EXTERNAL WEB TABLE {} (id integer, x real[])"
    """ EXECUTE 'seq 1 30000 | sed "s/$/|{{1,0,0.5,0}}/"' ON COORDINATOR"""
    " FORMAT 'text' (DELIMITER '|')",
    "inheriting": "CREATE TABLE {0} (id integer, x real[]) DISTRIBUTED BY (id); CREATE TABLE "
    f"{{0}}_more () INHERITS ({{0}}); INSERT INTO {{0}} {MANY}; INSERT INTO "
    "{0}_more SELECT id, x FROM {0} WHERE id > 20000; DELETE FROM ONLY {0} WHERE id > 20000",
}


@pytest.mark.parametrize("statement", RELATIONS.values(), ids=RELATIONS)
def test_each_row_is_predicted_once(superuser: Workbench, there: Workbench, statement: str) -> None:
    table = f"source_{next(numbers)}"
    outside = "EXTERNAL" in statement  # only a superuser may make one that runs a command
    (superuser if outside else there).rows(statement.format(table, table))
    if outside:
        superuser.rows(f"GRANT SELECT ON {table} TO {ROLE}")
    output = predict(there, table, "'response'")
    assert there.row(f"SELECT count(*), count(DISTINCT id), min(id), max(id) FROM {output}") == (
        30000,
        30000,
        1,
        30000,
    )
    if not outside:
        points = there.rows(f"SELECT id, class_value FROM {predict(there, pred_type='1')}")
        apart = f"SELECT DISTINCT (id % 96) + 1, class_value FROM {output} ORDER BY 1"
        assert there.rows(apart) == sorted(points)


IDS = {
    "text": "'row %s ' || id || '\"''\\'", "uuid": "md5(id::text)::uuid", "char(n)": "id::char(9)",
    "interval": "id * interval '-1 mon 3 days 04:05:06.7'", "an array": "ARRAY[id, -id]",
    "bytea": "id::text::bytea",
    "repeated": "id / 10", "NULL among them": "nullif(id, 5)",
}  # fmt: skip


@pytest.mark.parametrize("expression", IDS.values(), ids=IDS)
def test_identifiers_of_any_type(there: Workbench, expression: str) -> None:
    source = f"source_{next(numbers)}"
    there.rows(
        f'CREATE TABLE {source} AS SELECT {expression} AS "The Id", x FROM points DISTRIBUTED '
        "RANDOMLY"
    )
    table = predict(there, source, "'response'", identifier='"The Id"')
    missing = (
        f'SELECT count(*) FROM (SELECT "The Id" FROM {source} EXCEPT ALL SELECT "The Id" '
        f"FROM {table}) d"
    )
    assert there.row(f"SELECT ({missing}), count(*) FROM {table}") == (0, 96)


def test_images(bench: Workbench, there: Workbench) -> None:
    bench.rows("CREATE TABLE pictures (id integer, picture bytea, label text)")
    for number in range(24):
        file = io.BytesIO()
        Image.fromarray(np.full((8, 8), 10 * number, np.uint8)).save(file, "PNG")
        bench.rows(
            "INSERT INTO pictures VALUES (%s, %s, %s)", number, file.getvalue(), "abc"[number % 3]
        )
    bench.pack("pictures_packed", 2, source="pictures", inputs="picture")
    bench.configure("of_pictures", [compile_text()], model=bench.model(PICTURES))
    bench.fit("pictures_packed", "seeing", "of_pictures", 1)
    for table in ("pictures", "seeing", "seeing_info", "seeing_summary"):
        carry(bench, there, table, "RANDOMLY")
    both = []
    for session in (bench, there):
        table = predict(session, "pictures", inputs="picture", model="seeing")
        both.append(session.rows(f"SELECT id, class_value, prob FROM {table} ORDER BY 1, 2"))
    assert len(both[0]) == 72
    assert [row[:2] for row in both[0]] == [row[:2] for row in both[1]]
    assert [row[2] for row in both[0]] == pytest.approx([row[2] for row in both[1]], abs=TOLERANCE)


def test_tables_that_other_sessions_cannot_see_are_refused(
    there: Workbench, session: Workbench
) -> None:
    session.rows("CREATE TEMPORARY TABLE passing AS TABLE points DISTRIBUTED BY (id)")
    error = refused(
        session,
        "SELECT madlib_predict('model', 'passing', 'id', 'x', 'none', 1, FALSE, 1)",
        code="25001",
    )
    assert "passing" in str(error) and "workers is" not in str(error)


def test_an_output_that_exists_is_refused(there: Workbench) -> None:
    refused(
        there,
        "SELECT madlib_predict('model', 'points', 'id', 'x', 'points', 'prob', FALSE, 1)",
        code="42P07",
    )


def test_policies_of_rows_hold(superuser: Workbench, there: Workbench) -> None:
    superuser.rows(
        "CREATE TABLE listed (id integer) DISTRIBUTED BY (id); INSERT INTO listed VALUES (3), "
        "(4), (5)"
    )
    superuser.rows(
        "CREATE TABLE guarded AS TABLE points DISTRIBUTED BY (id); ALTER TABLE guarded ENABLE ROW "
        "LEVEL SECURITY"
    )
    superuser.rows(
        "CREATE POLICY listed_only ON guarded USING (EXISTS (SELECT FROM listed l WHERE l.id = "
        "guarded.id))"
    )
    superuser.rows(f"GRANT SELECT ON guarded, listed TO {ROLE}")
    assert there.rows(f"SELECT id FROM {predict(there, 'guarded', '1')} ORDER BY id") == [
        (3,),
        (4,),
        (5,),
    ]


def test_the_privilege_for_two_columns_is_enough(superuser: Workbench, there: Workbench) -> None:
    superuser.rows(
        "CREATE TABLE partly AS TABLE points DISTRIBUTED BY (id); GRANT SELECT (id, x) ON partly "
        f"TO {ROLE}"
    )
    assert there.value(f"SELECT count(*) FROM {predict(there, 'partly', '1')}") == 96
    refused(there, "SELECT madlib_predict('model', 'partly', 'label', 'x', 'none', 1, FALSE, 1)")


BAD = {
    "NULL": ("NULL", "22004", "input of the row whose id is 17 is NULL"),
    "another shape": (
        "ARRAY[1, 2]::real[]",
        "22023",
        "row \\d+ has shape 2.*(?s:.)*whose id is 17",
    ),
}


@pytest.mark.parametrize(("value", "code", "said"), BAD.values(), ids=BAD)
def test_nothing_stays_of_a_call_that_fails(
    superuser: Workbench, there: Workbench, session: Workbench, value: str, code: str, said: str
) -> None:
    source = f"source_{next(numbers)}"
    there.rows(
        f"CREATE TABLE {source} AS SELECT id, CASE id WHEN 17 THEN {value} ELSE x END AS x FROM "
        "points DISTRIBUTED BY (id)"
    )
    before = segment_trainers(database_of(there)).keys(), superuser.workers()
    with pytest.raises(psycopg2.Error, match=said) as error:
        predict(session, source)
    assert error.value.pgcode == code
    gone(superuser, there, before)
    assert session.value(f"SELECT count(*) FROM {predict(session)}") == 288


def gone(superuser: Workbench, there: Workbench, before: tuple[Any, set[int]]) -> None:
    """Wait until no session and no trainer is left but those from before."""
    eventually(lambda: superuser.workers() <= before[1])
    eventually(lambda: segment_trainers(database_of(there)).keys() <= before[0])


@pytest.fixture(scope="module")
def long(there: Workbench) -> str:
    """A table that takes its time."""
    there.rows(
        "CREATE TABLE long AS SELECT n AS id, ARRAY[n, 1, 2, 3]::real[] AS x FROM "
        "generate_series(1, 600000) n DISTRIBUTED BY (id)"
    )
    return "long"


@pytest.mark.parametrize(
    "statements", ["trainer_start|predict_add", "predict_add"], ids=["as early as seen", "at work"]
)
@pytest.mark.parametrize("end", ["cancel", "a killed caller"])
def test_nothing_stays_of_a_call_that_is_ended(
    superuser: Workbench, there: Workbench, long: str, statements: str, end: str
) -> None:
    before = segment_trainers(database_of(there)).keys(), superuser.workers()
    query = (
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query ~ %s AND pid = "
        "ANY (%s)"
    )
    with (
        closing(there.another()) as session,
        session.calling(lambda: predict(session, long)) as called,
    ):
        mine = eventually(lambda: segment_trainers(database_of(there)).keys() - before[0])
        eventually(
            lambda: superuser.value(query, statements, list(superuser.workers() - before[1]))
        )
        owners = {backend for _, backend in mine}
        if end == "cancel":
            session.connection.cancel()
        else:
            superuser.rows("SELECT pg_terminate_backend(%s)", session.pid())
        with pytest.raises(psycopg2.Error):
            called.result()
    gone(superuser, there, before)
    with closing(there.another()) as session:
        assert session.value(f"SELECT count(*) FROM {predict(session)}") == 288
    # The folder of a trainer that ended with its process is removed when another trainer starts.
    assert not [
        file
        for file in Path("/tmp").glob("cerebro_trainer-*-*")
        if int(file.name.split("-")[1]) in owners
    ]


def test_a_trainer_that_is_killed_is_replaced(there: Workbench, long: str) -> None:
    before = segment_trainers(database_of(there)).keys()
    with (
        closing(there.another()) as session,
        session.calling(lambda: predict(session, long)) as called,
    ):
        killed, _ = min(eventually(lambda: segment_trainers(database_of(there)).keys() - before))
        os.kill(killed, signal.SIGKILL)
        assert there.value(f"SELECT count(DISTINCT id) FROM {called.result()}") == 600_000


def test_the_memory_of_the_caller_does_not_grow_with_the_table(
    there: Workbench, session: Workbench
) -> None:
    for rows in (30_000, 300_000):
        session.rows(
            f"CREATE TABLE rows_{rows} AS SELECT n AS id, ARRAY[n, 1, 2, 3]::real[] AS x"
            f" FROM generate_series(1, {rows}) n DISTRIBUTED BY (id)"
        )
    peaks = []
    for table in ("rows_30000", "rows_300000"):
        with session.calling(partial(predict, session, table, "'response'")) as called:
            seen = [memory(session.pid())]
            while not called.done():
                seen.append(memory(session.pid()))
                time.sleep(0.005)
            assert session.value(f"SELECT count(*) FROM {called.result()}") == int(
                table.partition("_")[2]
            )
        peaks.append(max(seen))
    assert peaks[1] - peaks[0] < 8 * MEGABYTE


def memory(pid: int) -> int:
    """Bytes of memory of the process' own."""
    found = re.search(
        r"^RssAnon:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE
    )
    assert found
    return int(found[1]) * 1024


@pytest.mark.parametrize("function", ["grant_predict", "revoke_predict"])
def test_predictions_cannot_be_granted_apart(there: Workbench, function: str) -> None:
    error = refused(there, f"SELECT cerebro.{function}('model', '{ROLE}')", code="0A000")
    assert "GRANT" in str(error.diag.message_hint).upper() and "_summary" in str(
        error.diag.message_hint
    )


def test_a_model_that_may_not_be_read_does_not_predict(
    superuser: Workbench, there: Workbench
) -> None:
    superuser.rows("CREATE TABLE kept AS TABLE model; CREATE TABLE kept_info AS TABLE model_info")
    superuser.rows("CREATE TABLE kept_summary AS TABLE model_summary")
    superuser.rows(
        f"GRANT SELECT ON kept_info, kept_summary TO {ROLE}; GRANT SELECT (mst_key, model_arch) ON "
        f"kept TO {ROLE}"
    )
    error = refused(
        there, "SELECT madlib_predict('kept', 'points', 'id', 'x', 'none', 'prob', FALSE, 1)"
    )
    assert "grant_predict" not in str(error.diag.message_hint)
