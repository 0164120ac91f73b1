"""cerebro.predict_rows: the rows of a source, as they are, beside their predictions; and queries in
the place of a source.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg2.extras import Json
from roles import another_role, refused
from versions import BatchResult, trained
from workbench import Workbench

from cerebro_plpy.configs.templates.layers.model_io import Measure

ROWS = 5000
"""More than a block."""
FEW = 60
HOMES = f"""
    CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE TYPE pair AS (a integer, b text);
    CREATE DOMAIN label AS text CHECK (value <> '');
    CREATE TYPE slope_of AS (id integer, slope float8);
    CREATE TYPE seen AS (id integer, place text, slope float8);
    CREATE TABLE homes AS
    SELECT n AS gone, n AS id, (ARRAY['a', 'b"', NULL, '😀'])[n % 4 + 1] AS place,
           sin(n) AS slope,
           (n % 50)::smallint AS rooms, (n % 50 > 20)::text AS sold
    FROM generate_series(1, {ROWS}) n;
    ALTER TABLE homes ADD PRIMARY KEY (id); ALTER TABLE homes DROP COLUMN gone;
    CREATE VIEW few AS SELECT * FROM homes WHERE id <= {FEW};
    CREATE TABLE odd AS
    SELECT id, place, slope, n::numeric(9, 3) / 7 AS exact, (n / 7.0)::real AS single,
           (n / 7.0)::money AS paid, n * interval '-1 day 3 hours 7 us' AS took,
           timestamptz '2020-10-24 23:30' + n * interval '29 minutes 1 us' AS at,
           timestamp '0044-03-15 10:00 BC' + n * interval '400 years' AS since,
           date '2020-01-31' - n AS day, time '23:59' AS clock, timetz '23:59+05:30' AS zoned,
           tstzrange(timestamptz '2020-03-29 02:30', NULL) AS during,
           ARRAY['a,b', NULL, 'NULL', '{{"}}', E'\\\\'] AS tags, ARRAY[[n, 2], [3, NULL]] AS grid,
           decode('00ff27', 'hex') AS bytes, ('é' || chr(10) || '"(,)\\')::label AS note,
           ''::varchar(3) AS nothing, 'ab'::char(5) AS padded, B'101'::varbit AS bits,
           '{{"a": 1.50}}'::json AS told, '[null]'::jsonb AS known, (ARRAY['sad',
           'glad'])[n % 2 + 1]::mood AS felt, ROW(n, NULL)::pair AS both,
           point(n / 3.0, -0.0) AS spot,
           'few'::regclass AS relation, '<a/><b/>'::xml AS marked,
           to_tsvector('simple', 'x y') AS words
    FROM few, LATERAL (SELECT id AS n) l;
    INSERT INTO odd (id, slope, exact, at, since, day)
    VALUES (-1, NULL, NULL, NULL, NULL, NULL),
           (-2, 'NaN', 'NaN', 'infinity', '-infinity', 'infinity'),
           (-3, '-0', 0, '294276-01-01', '4713-12-01 BC', '4713-12-01 BC');
    INSERT INTO odd (slope) VALUES ('1e-300');
    CREATE VIEW plain AS
    SELECT id, place, slope, exact, single, at,
           since, day, clock, zoned, grid, bytes, note, nothing,
           padded, told, known, felt FROM odd"""
JOINED = """
    SELECT count(*), count(*) FILTER (WHERE p."row" OPERATOR(pg_catalog.*=) h
                                      AND p.prediction = q.prediction
                                      AND p.probability IS NOT DISTINCT FROM q.probability
                                      AND p.probabilities IS NOT DISTINCT FROM q.probabilities
                                      AND p.lower IS NOT DISTINCT FROM q.lower
                                      AND p.upper IS NOT DISTINCT FROM q.upper)
    FROM cerebro.predict_rows(%s, NULL::homes) p
    JOIN homes h ON h.id = (p.row).id JOIN cerebro.predict(%s, 'homes') q ON q.id = h.id::text"""
SETTINGS = {
    "datestyle": st.sampled_from(("ISO, DMY", "SQL, DMY", "German", "Postgres, MDY")),
    "timezone": st.sampled_from(("UTC", "Europe/Berlin", "Asia/Kolkata", "Africa/Monrovia")),
    "intervalstyle": st.sampled_from(("postgres", "sql_standard", "iso_8601", "postgres_verbose")),
}
"""Settings that values of times have other texts under."""


@pytest.fixture(scope="module")
def homes(bench: Workbench) -> BatchResult:
    """A model of classes, and one of numbers."""
    bench.rows(HOMES)
    bench.rows("CREATE VIEW sales AS SELECT id, place, slope, sold FROM homes")
    bench.rows("CREATE VIEW sizes AS SELECT id, place, slope, rooms FROM homes")
    floats = Measure(25.0, 15.0, 0.0, 49.0)
    trained(
        bench, "rooms", "sizes", "rooms", epochs=1, margin=2.5, floats=floats, template="linear"
    )
    return trained(bench, "sold", "sales", "sold", epochs=1, template="linear")


@pytest.fixture
def session(bench: Workbench, homes: BatchResult) -> Iterator[Workbench]:
    yield bench
    bench.rows("ROLLBACK; RESET ALL")


@pytest.mark.parametrize("model", ["sold", "rooms"])
def test_each_row_is_that_of_its_table_beside_what_predict_says(
    session: Workbench, model: str
) -> None:
    assert session.row(JOINED, model, model) == (ROWS, ROWS)


def test_of_numbers_it_says_the_number_in_the_middle_of_the_range(session: Workbench) -> None:
    query = """SELECT count(*), max(abs(p.number - (p.lower + p.upper) / 2)) < 1e-9,
                      bool_and(abs(p.number - p.prediction::float8) <= 0.5)
               FROM cerebro.predict_rows('{}', NULL::few) p"""
    assert session.row(query.format("rooms")) == (FEW, True, True)
    none = "SELECT count(p.number) FROM cerebro.predict_rows('sold', NULL::few) p"
    assert session.value(none) == 0


@given(st.fixed_dictionaries(SETTINGS), st.fixed_dictionaries(SETTINGS))
def test_any_row_comes_back_to_the_bit_whatever_the_formats(
    bench: Workbench,
    shared_superuser: Workbench,
    homes: BatchResult,
    own: dict[str, str],
    learned: dict[str, str],
) -> None:
    """Neither the formats of the session nor those that the model reads with change a value."""
    shared_superuser.rows(
        "UPDATE cerebro.version_log SET reading = %s WHERE model = 'sold'", Json(learned)
    )
    for name, value in own.items():
        bench.rows("SELECT set_config(%s, %s, false)", name, value)
    for source in ("odd", "plain"):  # the texts of some values depend on settings
        query = f"""
            SELECT count(*), count(*) FILTER (WHERE p."row" OPERATOR(pg_catalog.*=) o)
            FROM cerebro.predict_rows('sold', NULL::{source}) p
            JOIN {source} o ON o.id IS NOT DISTINCT FROM (p.row).id"""
        assert bench.row(query) == (FEW + 4, FEW + 4), source
    bench.rows("RESET ALL")


def test_it_is_read_block_by_block(session: Workbench) -> None:
    """PostgreSQL puts it into the query, and so reads no more than that needs."""
    plan = session.rows(
        "EXPLAIN SELECT (p.row).id FROM cerebro.predict_rows('sold', NULL::homes) p"
    )
    assert not any("Function Scan" in line for (line,) in plan)
    session.rows("BEGIN; DECLARE c CURSOR FOR SELECT (p.row).id, p.prediction"
                 " FROM cerebro.predict_rows('sold', NULL::homes) p")  # fmt: skip
    first = session.rows("FETCH 3 FROM c")
    session.rows("SELECT cerebro_internal.trainer_stop()")
    assert len({*first, *session.rows("FETCH ALL FROM c")}) == ROWS


def test_rows_of_views_partitions_and_other_types(session: Workbench) -> None:
    count = "SELECT count(*), sum((p.row).slope) FROM cerebro.predict_rows('sold', {}) p"
    expected = (FEW, pytest.approx(session.value("SELECT sum(slope) FROM few")))
    assert session.row(count.format("NULL::few")) == expected
    assert session.row(count.format("NULL::slope_of, 'few'")) == expected
    assert session.row(count.format("NULL::homes, source => 'few'")) == expected
    session.rows("""
        BEGIN;
        CREATE TABLE parts (id integer, place text, slope float8) PARTITION BY RANGE (id);
        CREATE TABLE part_b (slope float8, gone text, id integer, place text);
        ALTER TABLE part_b DROP COLUMN gone;
        CREATE TABLE part_a PARTITION OF parts FOR VALUES FROM (0) TO (20);
        ALTER TABLE parts ATTACH PARTITION part_b FOR VALUES FROM (20) TO (10000);
        INSERT INTO parts SELECT id, place, slope FROM few""")
    assert session.row(count.format("NULL::parts")) == expected
    assert session.row(count.format("NULL::part_b, 'parts'")) == expected


def test_a_table_that_is_altered_is_read_as_it_is(session: Workbench) -> None:
    query = "SELECT (p.row).* FROM cerebro.predict_rows('sold', NULL::street) p ORDER BY id LIMIT 1"
    session.rows("BEGIN; CREATE TABLE street AS SELECT * FROM few")
    (before,) = session.rows(query)
    session.rows("ALTER TABLE street ADD COLUMN more date DEFAULT '2020-02-01', DROP COLUMN sold")
    session.rows("ALTER TABLE street ALTER COLUMN rooms TYPE text")
    (after,) = session.rows(query)
    id_, place, slope, rooms, _ = before
    assert after[:4] == (id_, place, slope, str(rooms)) and str(after[4]) == "2020-02-01"


def test_it_reads_as_the_caller(session: Workbench, shared_superuser: Workbench) -> None:
    """Grants of columns and row security hold for the rows that come back."""
    session.rows("""
        CREATE TABLE guarded AS SELECT * FROM few; ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
        CREATE POLICY first_rows ON guarded USING (id <= 7);
        CREATE TABLE partly AS SELECT * FROM few""")
    with another_role(session, shared_superuser, "row_reader") as other:
        session.rows("GRANT SELECT ON guarded TO row_reader")
        session.rows("GRANT SELECT (id, place, slope) ON partly TO row_reader")
        session.rows("SELECT cerebro.grant_predict('sold', 'row_reader')")
        owner = session.value("SELECT current_user::text")
        call = "SELECT count(*) FROM cerebro.predict_rows('sold', NULL::{}, {}, %s) p"
        assert other.value(call.format("guarded", "NULL"), owner) == 7
        refused(other, call.format("partly", "NULL"), owner, code="42501", words="rooms")
        assert other.value(call.format("seen", "'partly'"), owner) == FEW
        session.rows("SELECT cerebro.revoke_predict('sold', 'row_reader')")
    session.rows("DROP TABLE guarded, partly")


WRONG = {
    "no rows": ("NULL::integer", "42804", "row type of a table"),
    "a domain": ("NULL::label", "42804", "row type of a table"),
    "no table": ("NULL::slope_of", "22004", "source"),
    "a column less": ("NULL::homes, 'sales'", "42703", "rooms"),
    "another type": ("NULL::homes, 'texts'", "42804", "text"),
    "a shorter type": ("NULL::short, 'homes'", "42804", "character varying(3)"),
    "no source": ("NULL::homes, 'house'", "42P01", "house"),
    "not the model's": ("NULL::slope_of, 'slopes'", "42703", "place"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_calls_are_refused(session: Workbench, wrong: str) -> None:
    session.rows("""
        BEGIN; CREATE VIEW texts AS SELECT id, place, slope::text, rooms, sold FROM homes;
        CREATE VIEW slopes AS SELECT id, slope FROM homes;
        CREATE TYPE short AS (id integer, place varchar(3))""")
    arguments, code, words = WRONG[wrong]
    statement = f"SELECT * FROM cerebro.predict_rows('sold', {arguments})"
    refused(session, statement, code=code, words=words)


def test_no_function_or_type_on_the_path_is_taken(session: Workbench) -> None:
    """The types and functions that it names are PostgreSQL's own."""
    session.rows("""
        BEGIN; CREATE SCHEMA trap; CREATE TYPE trap.text AS ENUM ('x');
        CREATE TYPE trap.float8 AS (x text);
        CREATE TYPE trap.jsonb AS (x text);
        CREATE FUNCTION trap.unnest(pair[]) RETURNS SETOF pair LANGUAGE plpgsql AS
            $$ BEGIN RAISE 'trapped'; END $$;
        CREATE FUNCTION trap.unnest(homes[]) RETURNS SETOF homes LANGUAGE plpgsql AS
            $$ BEGIN RAISE 'trapped'; END $$;
        CREATE FUNCTION trap.rows_of_texts(pg_catalog.text[], homes) RETURNS homes[]
            LANGUAGE plpgsql AS
            $$ BEGIN RAISE 'trapped'; END $$;
        SET LOCAL search_path = trap, public, pg_catalog""")
    query = "SELECT count(*) FROM cerebro.predict_rows('sold', NULL::homes, 'few')"
    assert session.value(query) == FEW


QUERIES = {
    "a table": "TABLE few;",
    "parentheses": "(SELECT * FROM few)",
    "by name": "WITH f AS (SELECT * FROM few) SELECT * FROM f ; ",
    "a comment": "SELECT * FROM few -- all of them",
    "a union": "SELECT * FROM few WHERE id < 9 UNION ALL SELECT * FROM few WHERE id >= 9",
    "placeholders": "SELECT f.*, '%s' AS a, id %s AS b, $$%s$$ AS c FROM few f, (SELECT 3 AS s) q",
    "braces": "SELECT f.*, '{few}' AS a, U&'d\\0061t' AS b FROM few f",
    "more columns": "SELECT now() AS at, ROW(1, 2) AS pair, NULL AS none, f.* FROM few f",
}


@pytest.mark.parametrize("form", QUERIES)
def test_a_query_stands_for_the_table_that_it_reads(session: Workbench, form: str) -> None:
    query = QUERIES[form]
    predicted = "SELECT * FROM cerebro.predict('sold', {}, id_col => 'id') p ORDER BY id"
    told = session.rows(predicted.format("'few'"))
    assert session.rows(predicted.format("query => %s"), query) == told and len(told) == FEW
    rows = """SELECT (p.row).*, p.prediction, p.probability
              FROM cerebro.predict_rows('sold', NULL::few{}) p ORDER BY 1"""
    assert session.rows(rows.format(", query => %s"), query) == session.rows(rows.format(""))
    for groups in ("", ", group_by => 'place'"):
        measured = f"SELECT * FROM cerebro.evaluate('sold', {{}}{groups})"
        expected = session.rows(measured.format("'few'"))
        assert session.rows(measured.format("query => %s"), query) == expected


REFUSED_QUERIES = {
    "two": ("SELECT 1; SELECT 2", "22023"),
    "none": ("-- nothing", "22023"),
    "a change": ("DELETE FROM street", "22023"),
    "a change that returns rows": ("DELETE FROM street RETURNING *", "22023"),
    "a change by name": ("WITH s AS (DELETE FROM street RETURNING *) TABLE s", "22023"),
    "a new table": ("SELECT * INTO other FROM street", "22023"),
    "a lock": ("SELECT * FROM street FOR UPDATE", "22023"),
    "a plan": ("EXPLAIN SELECT * FROM street", "22023"),
    "no statement": ("SELEC 1", "42601"),
    "an end of its own": ("SELECT 1) t, (SELECT 2", "42601"),
    "a parameter": ("SELECT $1", "42P02"),
    "no column": ("SELECT nothing FROM street", "42703"),
    "no table": ("SELECT * FROM nothing", "42P01"),
    "equal names": ("SELECT id, place, slope, 1 AS id FROM street", "42701"),
    "a column less": ("SELECT id, place FROM street", "42703"),
    "another type": ("SELECT id, place, ARRAY[slope] AS slope, sold FROM street", "42804"),
    "blanks": (" ", "22004"),
    "a wrong value": ("SELECT id, place, slope / 0 AS slope, sold FROM street", "22012"),
}


@pytest.mark.parametrize("wrong", REFUSED_QUERIES)
def test_what_is_not_one_query_is_refused(session: Workbench, wrong: str) -> None:
    query, code = REFUSED_QUERIES[wrong]
    session.rows("CREATE TABLE IF NOT EXISTS street AS TABLE few")
    for function in ("predict", "evaluate"):
        refused(session, f"SELECT * FROM cerebro.{function}('sold', query => %s)", query, code=code)
        both = f"SELECT * FROM cerebro.{function}('sold', 'few', query => %s)"
        refused(session, both, query, code="22023", words="source")
        neither = f"SELECT * FROM cerebro.{function}('sold')"
        refused(session, neither, code="22004", words="query")
    assert session.value("SELECT count(*) FROM street") == FEW


def test_a_query_is_evaluated_once_and_makes_nothing(session: Workbench) -> None:
    session.rows("CREATE SEQUENCE IF NOT EXISTS evaluated")
    query = "SELECT nextval('evaluated') AS n, * FROM few"
    objects = "SELECT count(*) FROM pg_class"
    before = session.value(objects)
    session.rows("BEGIN")
    for call in (
        "cerebro.predict('sold', query => %s, id_col => 'id')",
        "cerebro.predict_rows('sold', NULL::few, query => %s)",
        "cerebro.evaluate('sold', query => %s)",
    ):
        first = session.value("SELECT nextval('evaluated')")
        session.rows(f"SELECT * FROM {call}", query)
        assert session.value("SELECT nextval('evaluated')") == first + FEW + 1
        assert session.value(objects) == before
    session.rows("COMMIT; BEGIN READ ONLY")
    count = "SELECT count(*) FROM cerebro.predict('sold', query => 'TABLE few', id_col => 'id')"
    assert session.value(count) == FEW


def test_names_in_a_query_mean_what_they_mean_to_the_caller(session: Workbench) -> None:
    """Its tables and functions are found by the path; no type or operator of the path is taken by
    what reads them.
    """
    session.rows("""
        BEGIN; CREATE SCHEMA trap;
        CREATE FUNCTION trap.doubled(id integer) RETURNS integer LANGUAGE sql AS 'SELECT 2 * $1';
        CREATE FUNCTION trap.same(varchar, varchar) RETURNS boolean LANGUAGE plpgsql AS
            $$ BEGIN RAISE 'trapped'; END $$;
        CREATE OPERATOR trap.= (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = trap.same);
        CREATE TYPE trap.text AS ENUM ('x'); CREATE TYPE trap.float8 AS (x pg_catalog.text);
        CREATE TEMP TABLE few AS SELECT * FROM public.few WHERE id < 4;
        CREATE TYPE pg_temp.text AS ENUM ('x'); CREATE TYPE pg_temp.int8 AS (x pg_catalog.text)""")
    query = "SELECT doubled(id) AS id, place::varchar, slope, sold::varchar FROM few"
    ids = "SELECT id FROM cerebro.predict('sold', query => %s, id_col => 'id') ORDER BY id"
    value = "SELECT rows FROM cerebro.evaluate('sold', query => %s) WHERE metric = 'accuracy'"
    for path, count in (("trap, public", 3), ("trap, public, pg_temp", FEW)):
        session.rows(f"SET LOCAL search_path = {path}")
        told = session.rows(ids, query)
        assert len(told) == count and {"2", "4", "6"} <= {row[0] for row in told}
        assert session.value(value, query) == count


def test_a_query_reads_as_the_caller(session: Workbench, shared_superuser: Workbench) -> None:
    session.rows("""
        CREATE TABLE fenced AS TABLE few; ALTER TABLE fenced ENABLE ROW LEVEL SECURITY;
        CREATE POLICY first_rows ON fenced USING (id <= 7)""")
    with another_role(session, shared_superuser, "query_reader") as other:
        session.rows("GRANT SELECT ON fenced TO query_reader")
        session.rows("SELECT cerebro.grant_predict('sold', 'query_reader')")
        owner = session.value("SELECT current_user::text")
        call = (
            "SELECT count(*) FROM cerebro.predict('sold', query => %s, id_col => 'id', owner => %s)"
        )
        assert other.value(call, "TABLE fenced", owner) == 7
        refused(other, call, "TABLE few", owner, code="42501")
        session.rows("SELECT cerebro.revoke_predict('sold', 'query_reader')")
    session.rows("DROP TABLE fenced")
