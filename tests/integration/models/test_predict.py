"""cerebro.predict: what a model by name says of raw rows, wherever a query may stand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import psycopg2
import pytest
from roles import another_role, refused
from versions import BatchResult, encoded_table, trained
from workbench import Workbench

from cerebro_plpy.configs.templates.layers.model_io import Measure

ROWS = 5000
"""More than a block."""
FEW = 100
"""Rows of a table for what does not depend on their number."""
SAMPLE = "WHERE id % 17 = 0"
"""Rows of both blocks, for what is computed otherwise as well."""
MODEL = """a"b '%s' 😀"""
HOMES = f"""
    CREATE TABLE homes AS
    SELECT n AS id, CASE WHEN n % 10 > 0 THEN (1e6 + 1000 * (n * 7919 % 97))::numeric END
               AS "Area ""%s",
           (ARRAY['a', 'b"', NULL, '😀'])[n % 4 + 1] AS place, sin(n) AS slope, n % 5 = 0 AS flag,
           timestamp '2020-01-01' + n * interval '7 hours' AS built,
           CASE WHEN n % 4 < 2 THEN 'it''s' ELSE E'no "%s" \\\\ {{,}}' END AS sold,
               (n % 50)::smallint AS rooms
    FROM generate_series(1, {ROWS}) n;
    ALTER TABLE homes ADD PRIMARY KEY (id);
    CREATE VIEW sold_homes AS SELECT id, "Area ""%s", place, slope, flag, built, sold FROM homes;
    CREATE VIEW roomy AS SELECT id, place, slope, rooms FROM homes;
    CREATE TABLE street AS SELECT * FROM homes WHERE id <= {FEW};
    ALTER TABLE street ADD PRIMARY KEY (id);
    CREATE VIEW sold_street AS SELECT id, "Area ""%s", place, slope, flag, built, sold
        FROM street"""
ALL = "SELECT * FROM cerebro.predict(%s, 'homes') ORDER BY id::integer"


@pytest.fixture(scope="module")
def homes(bench: Workbench) -> BatchResult:
    """A model of classes."""
    bench.rows(HOMES)
    return trained(bench, MODEL, "sold_homes", "sold", epochs=1, template="linear")


@pytest.fixture(scope="module")
def rooms(bench: Workbench, homes: BatchResult) -> BatchResult:
    """A model of a whole number."""
    floats = Measure(25.0, 15.0, 0.0, 49.0)
    return trained(
        bench, "rooms", "roomy", "rooms", epochs=1, margin=2.5, floats=floats, template="linear"
    )


@pytest.fixture
def session(bench: Workbench, homes: BatchResult) -> Iterator[Workbench]:
    """The shared session, in whatever state a test leaves it: a transaction that is open is
    undone.
    """
    yield bench
    bench.rows("ROLLBACK; RESET ALL")


def told(bench: Workbench, trained: BatchResult, source: str) -> dict[str, dict[str | None, float]]:
    """What madlib_predict says of each row of a table, once the recipe was applied to it."""
    bench.rows("DROP TABLE IF EXISTS encoded, told")
    names = encoded_table(bench, "encoded", trained.recipe, source, "id")
    bench.rows(
        "SELECT madlib_predict(%s, 'encoded', 'id', %s, 'told', mst_key => 1)",
        trained.output,
        names,
    )
    found: dict[str, dict[str | None, float]] = {}
    for name, value, p in bench.rows("SELECT id::text, class_value, prob FROM told"):
        found.setdefault(name, {})[value] = p
    return found


def test_it_says_what_the_network_says_of_what_the_recipe_makes(
    session: Workbench, homes: BatchResult
) -> None:
    rows, expected = (
        session.rows(ALL, MODEL),
        told(session, homes, f"(SELECT * FROM sold_homes {SAMPLE})"),
    )
    assert [row[0] for row in rows] == [str(n) for n in range(1, ROWS + 1)]
    assert len(expected) == ROWS // 17
    for name, prediction, probability, probabilities, lower, upper in rows:
        assert all(
            abs(p - probabilities[value]) < 1e-6 for value, p in expected.get(name, {}).items()
        )
        assert (
            probability == probabilities[prediction] == max(probabilities.values())
            and lower is upper is None
        )
    assert {row[1] for row in rows} == {"it's", 'no "%s" \\ {,}'}


def test_of_a_whole_number_it_says_a_whole_number_and_a_range(
    session: Workbench, rooms: BatchResult
) -> None:
    values = "id, prediction::smallint, probability, probabilities, lower, upper"
    rows, expected = (
        session.rows(f"SELECT {values} FROM cerebro.predict('rooms', 'homes')"),
        told(session, rooms, f"(SELECT * FROM roomy {SAMPLE})"),
    )
    assert len(expected) == ROWS // 17
    assert len(rows) == ROWS
    for name, prediction, probability, probabilities, lower, upper in rows:
        assert probability is probabilities is None
        assert name not in expected or (lower + upper) / 2 == pytest.approx(
            expected[name][None], abs=1e-4
        )
        assert upper - lower == pytest.approx(5.0) and abs(prediction - (lower + upper) / 2) <= 0.5
    assert len({row[1] for row in rows}) > 1


@pytest.mark.parametrize(
    "row",
    [
        (None, None, None, None, None),
        ("NaN", "never seen", "NaN", "true", "infinity"),
        ("1e300", "", "Infinity", None, "-infinity"),
        pytest.param(
            ("Infinity", "\n", "-Infinity", "false", "4000-01-01 BC"),
            marks=pytest.mark.postgresql(
                "PostgreSQL 12, of which Greenplum is made, has no infinite numeric"
            ),
        ),
    ],
)
def test_any_row_is_predicted(session: Workbench, row: tuple[str | None, ...]) -> None:
    session.rows("CREATE TEMP TABLE odd (LIKE sold_homes)")
    try:
        session.rows(
            'INSERT INTO odd ("Area ""%%s", place, slope, flag, built) VALUES (%s, %s, %s, %s, %s)',
            *row,
        )
        ((_, prediction, probability, *_),) = session.rows(
            "SELECT * FROM cerebro.predict(%s, 'odd')", MODEL
        )
        assert prediction is not None and 0.5 <= probability <= 1
    finally:
        session.rows("DROP TABLE odd")


PLACES = {
    "view": "SELECT count(*), sum(probability) FROM cerebro.predict(%s, 'sold_street', 'id')",
    "CTE": "WITH p AS (SELECT * FROM cerebro.predict(%s, 'street')) SELECT count(*), "
    "sum(probability) FROM p",
    "join": "SELECT count(*), sum(p.probability) FROM street h"
    " JOIN cerebro.predict(%s, 'street') p ON p.id = h.id::text",
    "subquery": "SELECT count(*), sum(f) FROM (SELECT (SELECT p.probability FROM "
    "cerebro.predict(%s, 'street') p WHERE p.id = h.id::text) AS f FROM street h WHERE h.id <= 3) "
    "s",
    "list": "SELECT count(*), sum((s.p).probability) FROM (SELECT cerebro.predict(%s, 'street') "
    "AS p OFFSET 0) s",
    "limit": "SELECT count(*), sum(probability) FROM (SELECT * FROM cerebro.predict(%s, 'street') "
    "LIMIT 3) s",
    "lateral": "SELECT count(*), sum(p.probability) FROM (VALUES ('street'), ('sold_homes')) v (t),"
    " LATERAL cerebro.predict(%s, v.t, 'id') p WHERE v.t = 'street'",
}


LATERAL = pytest.mark.postgresql(
    "on Greenplum the arguments of a prediction are no columns of other tables"
)


@pytest.mark.parametrize(
    "where", [pytest.param(w, marks=LATERAL if w == "lateral" else ()) for w in PLACES]
)
def test_it_may_stand_wherever_a_table_may(session: Workbench, where: str) -> None:
    few = 3 if where in ("subquery", "limit") else FEW
    query = (
        "SELECT count(*), sum(probability) FROM cerebro.predict(%s, 'street') WHERE id::integer "
        "<= %s"
    )
    count, total = session.row(query, MODEL, few)
    assert session.row(PLACES[where], MODEL) == (count, pytest.approx(total))


def test_two_models_at_once(session: Workbench, rooms: BatchResult) -> None:
    """By cursors that are read by turns, and in one FROM."""
    one, other = (
        session.rows(ALL, MODEL),
        session.rows("SELECT * FROM cerebro.predict('rooms', 'homes')"),
    )
    session.rows("BEGIN")
    session.rows("DECLARE one CURSOR FOR SELECT * FROM cerebro.predict(%s, 'homes')", MODEL)
    session.rows("DECLARE other CURSOR FOR SELECT * FROM cerebro.predict('rooms', 'homes')")
    read: dict[str, list[object]] = {"one": [], "other": []}
    for _ in range(3):
        for name, rows in read.items():
            rows += session.rows(f"FETCH 1700 FROM {name}")
    assert sorted(read["one"]) == sorted(one) and sorted(read["other"]) == sorted(other)  # type: ignore[type-var]
    session.rows("COMMIT")
    query = """
        SELECT p.id, p.prediction, q.prediction FROM cerebro.predict(%s, 'homes') p
        JOIN cerebro.predict('rooms', 'homes') q USING (id) ORDER BY p.id::integer"""
    numbers = {row[0]: row[1] for row in other}
    assert session.rows(query, MODEL) == [(row[0], row[1], numbers[row[0]]) for row in one]


@pytest.mark.postgresql("on Greenplum predict_row is not for the rows of tables")
def test_a_row_of_a_query_may_ask_for_another_prediction(
    session: Workbench, rooms: BatchResult
) -> None:
    query = """
        SELECT count(*) FILTER (WHERE q.told ->> 'prediction' = r.prediction), count(*)
        FROM (SELECT * FROM cerebro.predict(%s, 'street') LIMIT 20) p
        JOIN street h ON h.id::text = p.id JOIN cerebro.predict('rooms', 'street') r ON r.id = p.id,
        LATERAL (SELECT cerebro.predict_row('rooms', to_jsonb(h)) AS told) q"""
    assert session.row(query, MODEL) == (20, 20)


def test_it_sees_what_the_caller_sees(session: Workbench) -> None:
    session.rows("BEGIN ISOLATION LEVEL REPEATABLE READ")
    before = session.value("SELECT count(*) FROM cerebro.predict(%s, 'street')", MODEL)
    with closing(session.another()) as other:
        other.rows("INSERT INTO street (id) VALUES (100001)")
    try:
        session.rows("INSERT INTO street (id) VALUES (100002)")
        session.rows(
            "CREATE TEMP TABLE mine ON COMMIT DROP AS SELECT * FROM street WHERE id > 100000"
        )
        assert (
            session.value("SELECT count(*) FROM cerebro.predict(%s, 'street')", MODEL) == before + 1
        )
        assert session.rows("SELECT id FROM cerebro.predict(%s, 'mine', 'id')", MODEL) == [
            ("100002",)
        ]
    finally:
        session.rows("ROLLBACK; DELETE FROM street WHERE id > 100000")


def test_it_writes_nothing(session: Workbench) -> None:
    session.rows("BEGIN READ ONLY")
    assert session.value("SELECT count(*) FROM cerebro.predict(%s, 'street')", MODEL) == FEW
    session.rows("COMMIT; BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY")
    row = "(SELECT to_jsonb(h) FROM street h WHERE id = 1)"
    assert session.value(f"SELECT cerebro.predict_row(%s, {row}) IS NULL", MODEL) is False


def test_nothing_of_the_session_is_changed_between_rows(session: Workbench) -> None:
    """Whoever is called with a row finds the caller's path and settings."""
    session.rows("""
        CREATE OR REPLACE FUNCTION here(text) RETURNS text LANGUAGE plpgsql VOLATILE AS
        $$ BEGIN RETURN (SELECT string_agg(current_setting(s), '|')
                         FROM unnest('{search_path, jit, enable_hashagg}'::text[]
                                      || '{lock_timeout, extra_float_digits}'::text[]) s);
        END $$""")
    session.rows(
        "SET search_path = public, madlib, pg_catalog; SET jit = on; SET lock_timeout = '7s'"
    )
    session.rows("SET extra_float_digits = 0")
    told = "public, madlib, pg_catalog|on|on|7s|0"
    query = "SELECT DISTINCT here(id) FROM (SELECT id FROM cerebro.predict(%s, 'homes') {}) p"
    assert session.rows(query.format(""), MODEL) == [(told,)]
    assert session.rows(query.format("LIMIT 2"), MODEL) == [(told,)]
    refused(session, query.format("WHERE 1 / (id::integer - 4500) > -9"), MODEL, code="22012")
    assert session.value("SELECT here('')") == told


@pytest.mark.parametrize("end", ["cancel", "error", "limit", "savepoint"])
def test_a_query_may_end_in_the_middle(session: Workbench, end: str) -> None:
    expected = session.row(
        "SELECT count(*), sum(probability) FROM cerebro.predict(%s, 'homes')", MODEL
    )
    if end == "cancel":
        session.rows("SET statement_timeout = '400ms'")
        refused(
            session, "SELECT pg_sleep(0.001) FROM cerebro.predict(%s, 'homes')", MODEL, code="57014"
        )
        session.rows("RESET statement_timeout")
    elif end == "error":
        refused(
            session,
            "SELECT 1 / (id::integer - 4200) FROM cerebro.predict(%s, 'homes')",
            MODEL,
            code="22012",
        )
    elif end == "limit":
        assert len(session.rows("SELECT id FROM cerebro.predict(%s, 'homes') LIMIT 1", MODEL)) == 1
    else:
        session.rows(
            "BEGIN; DECLARE c CURSOR FOR SELECT id FROM cerebro.predict(%s, 'homes')", MODEL
        )
        rows = session.rows("FETCH 2 FROM c")
        session.rows("SAVEPOINT s")
        refused(session, "SELECT * FROM cerebro.predict('none', 'homes')", code="42704")
        session.rows("ROLLBACK TO s")
        assert len({*rows, *session.rows("FETCH 1 FROM c")}) == 3
    assert (
        session.row("SELECT count(*), sum(probability) FROM cerebro.predict(%s, 'homes')", MODEL)
        == expected
    )


def test_a_trainer_that_was_ended_meanwhile_is_started_again(session: Workbench) -> None:
    expected = sorted(session.rows(ALL, MODEL))
    session.rows("BEGIN; DECLARE c CURSOR FOR SELECT * FROM cerebro.predict(%s, 'homes')", MODEL)
    rows = session.rows("FETCH 10 FROM c")
    session.rows("SELECT cerebro_internal.trainer_stop()")
    assert sorted(rows + session.rows("FETCH ALL FROM c")) == expected


def test_a_plan_may_be_parallel_elsewhere(session: Workbench) -> None:
    session.rows(
        "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET "
        "min_parallel_table_scan_size = 0"
    )
    forced = (
        "debug_parallel_query"
        if session.connection.server_version >= 160000
        else "force_parallel_mode"
    )
    session.rows(f"SET {forced} = on")
    query = (
        "SELECT count(*) FROM street h JOIN cerebro.predict(%s, 'street') p ON p.id = h.id::text "
        "WHERE h.slope > -2"
    )
    assert session.value(query, MODEL) == FEW


def test_row_security_of_the_source_holds(session: Workbench, shared_superuser: Workbench) -> None:
    """A model is its owner's, and so are the rows that its owner may see."""
    session.rows(
        "CREATE TABLE guarded AS SELECT * FROM street; ALTER TABLE guarded ENABLE ROW LEVEL "
        "SECURITY; ALTER TABLE guarded FORCE ROW LEVEL SECURITY; CREATE POLICY few ON guarded "
        "USING (id <= 7)"
    )
    assert session.value("SELECT count(*) FROM cerebro.predict(%s, 'guarded', 'id')", MODEL) == 7
    with another_role(session, shared_superuser, "reader") as other:
        refused(other, "SELECT * FROM cerebro.predict(%s, 'street')", MODEL, code="42704")
    with another_role(session, shared_superuser, "stranger", granted=False) as other:
        refused(other, "SELECT * FROM cerebro.predict(%s, 'street')", MODEL, code="42501")


def test_the_id_is_that_of_the_key_or_of_the_column_that_is_named(session: Workbench) -> None:
    first = "SELECT min(id) FROM cerebro.predict(%s, {})"
    assert session.value(first.format("'street'"), MODEL) == "1"
    assert session.value(first.format("'sold_street'"), MODEL) is None
    assert session.value(first.format("""'street', '"Area ""%%s"'"""), MODEL) == "1000000"
    refused(session, first.format("'street', 'nr'"), MODEL, code="42703", words="nr")
    assert session.value(first.format("'street', 'id, id'"), MODEL) == "1"
    refused(session, first.format("'street', 'id, nr'"), MODEL, code="42703", words="id, nr")


WRONG = {
    "no such model": ("SELECT * FROM cerebro.predict('room', 'homes')", "42704", "rooms"),
    "no model": ("SELECT * FROM cerebro.predict(NULL, 'homes')", "22004", "model"),
    "no table": ("SELECT * FROM cerebro.predict('rooms', 'house')", "42P01", "house"),
    "no source": ("SELECT * FROM cerebro.predict('rooms', NULL)", "22004", "source"),
    "missing columns": (
        "SELECT * FROM cerebro.predict('rooms', 'points')",
        "42703",
        "'place', 'slope'",
    ),
    "another type": ("SELECT * FROM cerebro.predict('rooms', 'crooked')", "42804", "slope"),
    "a case": ("SELECT * FROM cerebro.predict('Rooms', 'homes')", "42704", "rooms"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_calls_are_refused(session: Workbench, rooms: BatchResult, wrong: str) -> None:
    session.rows(
        "CREATE OR REPLACE VIEW crooked AS SELECT id, place, ARRAY[slope] AS slope FROM homes"
    )
    statement, code, words = WRONG[wrong]
    refused(session, statement, code=code, words=words)


def test_columns_are_found_by_name_whatever_number_they_are(
    session: Workbench, rooms: BatchResult
) -> None:
    session.rows(
        "CREATE OR REPLACE VIEW others AS SELECT 1 AS more, slope::numeric, place::varchar(9), id "
        "FROM street"
    )
    query = "SELECT id, prediction FROM cerebro.predict('rooms', %s, 'id') ORDER BY id"
    assert session.rows(query, "others") == session.rows(query, "street")


DAMAGE = {
    "nothing deployed": (
        "UPDATE cerebro.model_log SET deployed = NULL WHERE model = 'rooms'",
        "55000",
    ),
    "no such version": ("UPDATE cerebro.model_log SET deployed = 7 WHERE model = 'rooms'", "55000"),
    "another recipe": (
        "UPDATE cerebro.version_log SET recipe = '{{}}' WHERE model = 'rooms'",
        "XX001",
    ),
    "another task": (
        "UPDATE cerebro.version_log SET task = 'classification' WHERE model = 'rooms'",
        "XX001",
    ),
    "another network": (
        "UPDATE cerebro.member_log SET architecture = '{{}}' WHERE model = 'rooms'",
        None,
    ),
    "no member": ("DELETE FROM cerebro.member_log WHERE model = 'rooms'", "XX001"),
    "no share": ("UPDATE cerebro.member_log SET share = 'NaN' WHERE model = 'rooms'", "XX001"),
    "other weights": (
        "UPDATE {0} SET chunk = chunk || 'x' WHERE part = (SELECT max(part) FROM {0})",
        None,
    ),
    "a state of another's": ("ALTER TABLE {} OWNER TO postgres", "55000"),
    "no state": ("DROP TABLE {}", "55000"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_was_damaged_is_refused(
    session: Workbench, shared_superuser: Workbench, rooms: BatchResult, damage: str
) -> None:
    """A version is read from rows and a table that its owner can change."""
    number = session.value("SELECT run_id FROM cerebro.version_log WHERE model = 'rooms'")
    statement, code = DAMAGE[damage]
    shared_superuser.rows("BEGIN")
    shared_superuser.rows(statement.format(f'cerebro_state."r{number}_m1"'))
    shared_superuser.rows("SET ROLE cerebro")
    error = refused(shared_superuser, "SELECT * FROM cerebro.predict('rooms', 'street')", code=code)
    assert error.pgcode not in ("XX000", "38000") and isinstance(error, psycopg2.Error)
    shared_superuser.rows("ROLLBACK")
    assert session.value("SELECT count(*) FROM cerebro.predict('rooms', 'street')") == FEW
