"""What a source returns depends on who reads it, and under which settings: every call reads it as
the caller does.

Formats, such as the time zone, are those of the session that trained, in every session afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg2
import pytest
from followed_hints import read_statements
from roles import another_role, own_schema, refused
from workbench import Workbench

QUICK = "models => '{linear}', configs => 1, epochs => 3, ensemble => 1, seed => 1, refit => 'none'"
TRAIN = f"SELECT status, validation FROM cerebro.train(%s, %s, %s, {QUICK}, columns => %s)"
ROWS = (
    "SELECT training_rows, validation_rows FROM cerebro.model_version WHERE model = %s ORDER BY "
    "version DESC LIMIT 1"
)
PREDICTED = (
    "SELECT p.id, p.prediction, p.probability FROM cerebro.predict(%s, %s, 'id') p ORDER BY "
    "p.id::integer"
)


@contextmanager
def settings(bench: Workbench, **values: str) -> Iterator[None]:
    """Within, the session has these settings."""
    for name, value in values.items():
        bench.rows("SELECT set_config(%s, %s, false)", name, value)
    try:
        yield
    finally:
        for name in values:
            bench.rows(f"RESET {name}")


def train(bench: Workbench, source: str, target: str, model: str, columns: str = "*") -> float:
    ((status, validation),) = bench.rows(TRAIN, source, target, model, columns)
    assert status == "completed"
    return float(validation)


def accuracy(bench: Workbench, model: str, source: str) -> float:
    query = "SELECT value FROM cerebro.evaluate(%s, %s) WHERE metric = 'accuracy'"
    return float(bench.value(query, model, source))


def test_an_hour_is_that_of_the_session_that_trained(bench: Workbench) -> None:
    """Evaluated, explained and compared rows are those that are predicted, and a NOTICE says why
    they are others.
    """
    bench.rows("""
        CREATE TABLE orders AS
        SELECT n AS id, timestamptz '2024-01-01 00:00+00' + n * interval '37 minutes' AS created_at
        FROM generate_series(1, 2000) n;
        CREATE VIEW evenings AS
        SELECT id, extract(hour FROM created_at)::integer AS hour,
               extract(hour FROM created_at AT TIME ZONE 'America/New_York') >= 18 AS late
                   FROM orders""")
    more = (
        "columns => 'hour', types => '{\"hour\": \"category\"}', models => '{linear}', configs => "
        "1, epochs => 60, refit => 'none'"
    )
    call = (
        f"SELECT validation FROM cerebro.train('evenings', 'late', 'hours', {more}, ensemble => 1, "
        "seed => 1)"
    )
    with settings(bench, timezone="America/New_York"):
        validation = bench.value(call)
        here = bench.rows(PREDICTED, "hours", "evenings")
        assert accuracy(bench, "hours", "evenings") > 0.95 < validation
        assert not bench.connection.notices or "read under" not in bench.connection.notices[-1]
    with settings(bench, timezone="Asia/Tokyo"):
        bench.connection.notices.clear()
        assert bench.rows(PREDICTED, "hours", "evenings") == here
        told = "evenings is read under the formats of model 'hours': TimeZone America/New_York"
        assert [told in text for text in bench.connection.notices] == [True]
        assert accuracy(bench, "hours", "evenings") > 0.95
        assert bench.value("SELECT importance FROM cerebro.importance('hours', 'evenings')") > 0.3
        assert bench.value("SELECT psi FROM cerebro.drift('hours', 'evenings')") < 0.01
        assert {ok for (ok,) in bench.rows("SELECT ok FROM cerebro.verify('hours')")} == {True}
        bench.connection.notices.clear()
        bench.rows("SELECT count(*) FROM cerebro.predict('hours', (SELECT 'evenings'))")
    bench.rows("CREATE TABLE kept AS TABLE evenings")
    bench.connection.notices.clear()
    bench.rows(PREDICTED, "hours", "kept")
    assert not bench.connection.notices  # nothing of a table depends on formats
    formats = bench.value("SELECT reading FROM cerebro.version_log WHERE model = 'hours'")
    assert (formats["timezone"], formats["kind"], formats["rows"]) == (
        "America/New_York",
        "view",
        2000,
    )


def test_functions_of_a_view_find_their_tables(bench: Workbench) -> None:
    """As they do in a SELECT: in the caller's path, when a statement is planned and when it
    runs.
    """
    bench.rows(
        """
        CREATE SCHEMA shop; SET search_path = shop, public, madlib;
        CREATE TABLE rates (currency text PRIMARY KEY, rate numeric);
        INSERT INTO rates VALUES ('EUR', 1.1), ('GBP', 1.3), ('USD', 1);
        CREATE FUNCTION rate(c text) RETURNS numeric LANGUAGE sql STABLE
            AS 'SELECT r.rate FROM rates r WHERE r.currency = c';
        CREATE FUNCTION bucket(x numeric) RETURNS text LANGUAGE plpgsql STABLE
            AS $$ BEGIN RETURN CASE WHEN x > (SELECT avg(rate)
                FROM rates) * 50 THEN 'high' ELSE 'low' END; END $$;
        CREATE TABLE payments AS
        SELECT n AS id, n * 37 %% 100 AS amount, (ARRAY['EUR', 'GBP',
            'USD'])[n %% 3 + 1] AS currency,
               n * 37 %% 100 > 55 AS flagged FROM generate_series(1, 600) n;
        CREATE VIEW in_dollars AS
        SELECT id, amount * rate(currency) AS dollars, bucket(amount) AS bucket, flagged
            FROM payments;
        CREATE VIEW arrays AS SELECT id, ARRAY[amount * rate(currency), 1]::real[] AS x, flagged
            FROM payments;
        CREATE VIEW series AS SELECT id, currency, amount * rate(currency) AS x
            FROM payments""".replace("%%", "%")
    )
    try:
        planned = (
            f"SELECT name FROM cerebro.plan('in_dollars', 'flagged', {QUICK}) WHERE section = "
            "'column'"
        )
        assert ("dollars",) in bench.rows(planned)
        train(bench, "in_dollars", "flagged", "dollars", "dollars, bucket")
        assert len(bench.rows(PREDICTED, "dollars", "in_dollars")) == 600
        assert accuracy(bench, "dollars", "in_dollars") > 0.5
        for call in ("importance", "drift"):
            assert bench.rows(f"SELECT * FROM cerebro.{call}('dollars', 'in_dollars')")
        assert (
            bench.value("SELECT count(*) FROM cerebro.attribution('dollars', 'in_dollars', 'id')")
            == 1200
        )
        bench.rows(
            "SELECT training_preprocessor_dl('arrays', 'packed', 'flagged', 'x', n_segments => 2)"
        )
        bench.rows("SELECT cerebro.window_series('series', 'windows', 'currency', 'id', 'x', 4)")
        bench.rows("BEGIN READ ONLY")
        assert ("dollars",) in bench.rows(planned)
        assert accuracy(bench, "dollars", "in_dollars") > 0.5
    finally:
        bench.rows("ROLLBACK; RESET search_path")


def test_dates_are_read_in_the_order_of_the_session_that_trained(bench: Workbench) -> None:
    bench.rows("""
        CREATE TABLE bills AS
        SELECT n AS id, to_char(date '2023-01-01' + n, 'DD/MM/YYYY') AS bought,
            n % 365 > 180 AS late
        FROM generate_series(1, 500) n;
        CREATE VIEW bought AS SELECT id, bought::date AS bought, extract(month
            FROM bought::date) > 6 AS second, late
        FROM bills""")
    with settings(bench, datestyle="ISO, DMY"):
        planned = (
            f"SELECT data ->> 'type' FROM cerebro.plan('bought', 'late', {QUICK}) WHERE name = "
            "'bought'"
        )
        assert bench.value(planned) == "date"
        train(bench, "bought", "late", "days", "bought, second")
        here = bench.rows(PREDICTED, "days", "bought")
    with settings(bench, datestyle="SQL, MDY"):
        assert bench.rows(PREDICTED, "days", "bought") == here
        row = '{"bought": "05/08/2023", "second": true}'
        told = bench.value("SELECT cerebro.predict_row('days', %s) -> 'probability'", row)
        assert told == {number: probability for number, _, probability in here}["216"]


def test_conditions_do_not_sink_into_a_view(bench: Workbench) -> None:
    """A cast is not evaluated for rows that the view leaves out; and its columns may have names of
    the system's own.
    """
    bench.rows("""
        CREATE FUNCTION is_numeric(x text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE COST 100000
            AS $$ BEGIN PERFORM x::numeric; RETURN true; EXCEPTION WHEN others THEN RETURN false;
                END $$;
        CREATE TABLE amounts AS
        SELECT n AS id, CASE WHEN n % 40 = 0 THEN 'n/a' ELSE (n * 37 % 200)::text END AS amount,
            n * 37 % 200 > 100 AS y
        FROM generate_series(1, 900) n;
        CREATE VIEW usable AS SELECT id, amount::numeric AS amount, y FROM amounts
            WHERE is_numeric(amount);
        CREATE VIEW joined AS
        SELECT r.id, r.amount::numeric AS amount, r.id % 3 AS ctid, r.y FROM amounts r
            JOIN (SELECT id FROM amounts WHERE amount <> 'n/a') k USING (id)""")
    for name, columns in (("usable", "amount"), ("joined", "amount, ctid")):
        train(bench, name, "y", name, columns)
        count = bench.value(f"SELECT count(*) FROM {name}")
        assert sum(bench.row(ROWS, name)) == count == len(bench.rows(PREDICTED, name, name))
    bench.rows("BEGIN READ ONLY")
    try:
        assert bench.rows(f"SELECT * FROM cerebro.plan('joined', 'y', {QUICK})")
        for call in ("evaluate", "importance", "drift"):
            assert bench.rows(f"SELECT * FROM cerebro.{call}('joined', 'joined')")
    finally:
        bench.rows("ROLLBACK")


def test_a_view_that_is_never_twice_the_same_is_read_once(bench: Workbench) -> None:
    """Its rows are divided: none is on both sides, and none is lost."""
    bench.rows("""
        CREATE TABLE seen (id integer);
        CREATE TABLE lots AS SELECT n AS id, n * 7919 % 1009 AS x, (ARRAY['a', 'b',
            'c'])[n % 3 + 1] AS y
        FROM generate_series(1, 5000) n;
        CREATE VIEW drawn AS SELECT id, x, y FROM lots ORDER BY random() LIMIT 300;
        CREATE VIEW noisy AS SELECT id, x, random() AS noise, y FROM lots WHERE id <= 600""")
    for name, count in (("drawn", 300), ("noisy", 600)):
        train(bench, name, "y", name)
        assert sum(bench.row(ROWS, name)) == count
        run = bench.newest_run()
        shapes = [
            bench.value(f'SELECT sum(label_shape[1]) FROM cerebro_state."r{run}_{side}"')
            for side in ("training", "validation")
        ]
        assert tuple(shapes) == bench.row(ROWS, name)
    made = "relnamespace = 'cerebro_state'::regnamespace AND relname ~ '^(source|rows|sample)_'"
    left = f"SELECT relname FROM pg_class WHERE {made}"
    assert not bench.rows(left)


def test_columns_that_may_not_be_read_are_not(
    bench: Workbench, shared_superuser: Workbench
) -> None:
    """With or without a key, and where the key itself may not be read; else they are named."""
    with another_role(bench, shared_superuser, "column_reader") as reader:
        bench.rows("""
            CREATE TABLE people AS
            SELECT n AS id, n % 80 AS age, (ARRAY['n', 's'])[n % 2 + 1] AS region,
                md5(n::text) AS ssn,
                   date '1990-01-01' + n AS born, n % 80 > 60 AS retired FROM generate_series(1,
                       400) n;
            CREATE TABLE keyed AS TABLE people; ALTER TABLE keyed ADD PRIMARY KEY (id);
            CREATE TABLE secret_key AS TABLE people; ALTER TABLE secret_key ADD PRIMARY KEY (ssn);
            GRANT SELECT (id, age, region, retired) ON people, keyed,
                secret_key TO column_reader""")
        for name in ("people", "keyed", "secret_key"):
            train(reader, f"public.{name}", "retired", name, "age, region")
            assert len(reader.rows(PREDICTED, name, f"public.{name}")) == 400
            for call in ("evaluate", "importance", "drift"):
                assert reader.rows(f"SELECT * FROM cerebro.{call}(%s, %s)", name, f"public.{name}")
        for call in ("plan", "train"):
            statement = f"SELECT * FROM cerebro.{call}('public.keyed', 'retired', {QUICK})"
            error = refused(reader, statement, words='"ssn", "born"')
            assert 'GRANT SELECT ("ssn", "born") ON' in str(error)


def test_no_temporary_tables_are_needed(bench: Workbench, shared_superuser: Workbench) -> None:
    with another_role(bench, shared_superuser, "no_temporary") as person:
        database = bench.value("SELECT current_database()")
        bench.rows("""
            CREATE TABLE dots AS SELECT n AS id, n % 17 AS x, ARRAY[n % 17]::real[] AS a,
                n % 17 > 8 AS y
            FROM generate_series(1, 25000) n;
            CREATE VIEW dots_seen AS TABLE dots; GRANT SELECT ON dots, dots_seen TO no_temporary""")
        own_schema(shared_superuser, "no_temporary")
        shared_superuser.rows(f'REVOKE TEMPORARY ON DATABASE "{database}" FROM PUBLIC')
        try:
            assert not person.value(
                "SELECT has_database_privilege(current_database(), 'TEMPORARY')"
            )
            for source in ("dots", "dots_seen"):
                assert person.rows(
                    f"SELECT * FROM cerebro.plan('public.{source}', 'y', {QUICK}, columns => 'x')"
                )
                train(person, f"public.{source}", "y", source, "x")
            person.rows(
                "SELECT training_preprocessor_dl('public.dots_seen', 'no_temporary.packed', 'y', "
                "'a')"
            )
        finally:
            shared_superuser.rows(f'GRANT TEMPORARY ON DATABASE "{database}" TO PUBLIC')


def test_what_is_not_committed_behind_a_view_is_not_trained_on(bench: Workbench) -> None:
    """No other session can see it: a call that keeps something of it is refused, and a plan sees
    it.
    """
    bench.rows("""
        CREATE TABLE base AS SELECT n AS id, n % 9 AS x, n % 9 > 4 AS y FROM generate_series(1,
            200) n;
        CREATE VIEW above AS TABLE base; CREATE VIEW further AS TABLE above;
        CREATE TABLE parts (id integer, x integer, y boolean) PARTITION BY RANGE (id);
        CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (1000);
        INSERT INTO parts TABLE base""")
    for change, source in (("base", "further"), ("parts_1", "parts")):
        bench.rows("BEGIN")
        bench.rows(f"INSERT INTO {change} SELECT n, 1, true FROM generate_series(201, 300) n")
        planned = (
            f"SELECT sum((data ->> 'rows')::integer) FROM cerebro.plan(%s, 'y', {QUICK}) WHERE "
            "section = 'rows'"
        )
        assert bench.value(planned, source) == 300
        with pytest.raises(psycopg2.Error) as error:
            train(bench, source, "y", "behind")
        bench.rows("ROLLBACK")
        assert error.value.pgcode == "25001" and f"public.{change}, behind {source}" in str(
            error.value
        )
    bench.rows("CREATE TEMPORARY TABLE later AS TABLE base")
    for more in ("", ", background => true"):
        query = (
            f"SELECT * FROM cerebro.train('base', 'y', 'behind', {QUICK}, split => 'table "
            f"later'{more})"
        )
        refused(
            bench, query, code="25001", words="other sessions cannot use later: it is temporary"
        )


def test_ids_have_the_text_of_the_session(bench: Workbench) -> None:
    """The documented join finds all rows, whatever the column is and whatever texts the session
    makes.
    """
    bench.rows("""
        CREATE DOMAIN moment AS timestamptz;
        CREATE TABLE things AS
        SELECT n AS id, n::smallint AS small, n::numeric / 7 AS exact, 'a' || n AS word,
            n % 2 = 0 AS flag,
               date '2020-01-01' + n AS day, timestamptz '2020-01-01' + n * interval '61 min' AS at,
               (timestamptz '2020-01-01' + n * interval '61 min')::moment AS moment,
                   n / 7.0::float8 AS f8,
               (n / 7.0)::real AS f4, n * interval '1 day 2 hours -3 min' AS span,
                   n::money AS money,
               decode(lpad(n::text, 4, '0'), 'hex') AS bytes,
               daterange(date '2020-01-01', date '2020-01-01' + n) AS days,
                   ARRAY[timestamptz '2020-01-01'] AS times,
               n % 7 AS x, n % 7 > 3 AS y FROM generate_series(1, 60) n""")
    train(bench, "things", "y", "things", "x")
    styles = dict(
        timezone="Asia/Kolkata",
        datestyle="German, DMY",
        intervalstyle="iso_8601",
        extra_float_digits="-3",
        bytea_output="escape",
    )
    names = "id small exact word flag day at moment f8 f4 span money bytes days times"
    ids = "SELECT DISTINCT id FROM cerebro.predict('things', 'things', %s)"
    joined = f"SELECT count(*) FROM ({ids}) p JOIN things t ON p.id = t.{{}}::text"
    for values in ({}, styles):
        with settings(bench, **values):
            for name in names.split():
                assert bench.value(joined.format(name), name) == 60, (name, values)


def test_a_tenant_learns_of_its_own_rows(bench: Workbench, shared_superuser: Workbench) -> None:
    """By a setting of its session, not by that of its role; whichever way it was set, in the
    background, too.
    """
    with another_role(bench, shared_superuser, "tenants") as app:
        shared_superuser.rows("ALTER ROLE tenants SET app.tenant_id = '2'")
        bench.rows("""
            CREATE TABLE sold AS
            SELECT n AS id, CASE WHEN n <= 100 THEN 1 ELSE 2 END AS tenant_id, n * 7919 % 101 AS x,
                   n * 7919 % 101 > 50 AS y FROM generate_series(1, 350) n;
            ALTER TABLE sold ADD PRIMARY KEY (id); ALTER TABLE sold ENABLE ROW LEVEL SECURITY;
            CREATE POLICY strict ON sold USING (tenant_id =
                current_setting('app.tenant_id')::integer);
            CREATE FUNCTION own_tenant() RETURNS integer LANGUAGE sql STABLE
                AS 'SELECT nullif(current_setting(''app.tenant_id'', true), '''')::integer';
            CREATE TABLE lent AS TABLE sold; ALTER TABLE lent ENABLE ROW LEVEL SECURITY;
            CREATE POLICY lenient ON lent USING (tenant_id = own_tenant());
            GRANT SELECT ON sold, lent TO tenants""")
        for source in ("sold", "lent"):
            for text in ("SET app.tenant_id = '1'", "BEGIN; SET LOCAL app.tenant_id = '1'"):
                app.rows(text)
                planned = (
                    f"SELECT sum((data ->> 'rows')::integer) FROM cerebro.plan(%s, 'y', {QUICK}, "
                    "columns => 'x')"
                )
                assert app.value(f"{planned} WHERE section = 'rows'", source) == 100
                train(app, source, "y", source, "x")
                assert sum(app.row(ROWS, source)) == 100
                assert len(app.rows(PREDICTED, source, source)) == 100
                app.rows("COMMIT; RESET app.tenant_id")
        app.rows("SET app.tenant_id = '1'")
        (run_id,) = app.row(
            f"SELECT run_id FROM cerebro.train('lent', 'y', 'later', {QUICK}, background => true)"
        )
        app.rows("SELECT cerebro.wait(%s, '1 minute')", run_id)
        assert sum(app.row(ROWS, "later")) == 100
        app.rows("SET app.tenant_id = ''")
        error = refused(
            app, f"SELECT * FROM cerebro.train('lent', 'y', 'none', {QUICK})", code="22023"
        )
        assert "has no rows to learn from" in str(error)
        names = "SELECT reading -> 'names' FROM cerebro.version_log WHERE model = 'later'"
        assert app.value(names) == ["app.tenant_id"]


def test_row_security_is_the_caller_s(bench: Workbench) -> None:
    """Who switches it off gets all rows of a source or an error; our own tables are read by their
    policies.
    """
    bench.rows("""
        CREATE TABLE unpoliced AS
        SELECT n AS id, n * 37 % 101 AS x, n * 37 % 101 > 50 AS y FROM generate_series(1, 400) n;
        CREATE TABLE policed AS TABLE unpoliced;
        ALTER TABLE policed ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
        CREATE POLICY even ON policed USING (id % 2 = 0);
        CREATE VIEW over_policed AS SELECT * FROM policed;
        CREATE VIEW over_unpoliced AS SELECT * FROM unpoliced""")
    with settings(bench, row_security="off"):
        for source in ("unpoliced", "over_unpoliced"):
            train(bench, source, "y", source, "x")
            assert sum(bench.row(ROWS, source)) == 400
            assert len(bench.rows(PREDICTED, source, "over_unpoliced")) == 400
            assert (
                bench.value("SELECT cerebro.predict_row(%s, '{\"x\": 7}') ->> 'prediction'", source)
                is not None
            )
            assert accuracy(bench, source, source) > 0
        for source, policed in (
            ("policed", "row_security is off"),
            ("over_policed", "row-level security policy"),
        ):
            refused(bench, TRAIN, source, "y", source, "x", words=policed)
            refused(bench, "SELECT * FROM cerebro.plan(%s, 'y')", source, words=policed)
            refused(bench, PREDICTED, "unpoliced", source, words=policed)
        plan = "SELECT * FROM cerebro.plan('policed', 'y')"
        template = "SET row_security = on; then the call reads the rows that they show you."
        (statement,) = read_statements(refused(bench, plan), template)
        assert bench.value("SHOW row_security") == "off"
        bench.rows(statement)
        assert bench.rows(plan)
    train(bench, "over_policed", "y", "over_policed", "x")
    assert sum(bench.row(ROWS, "over_policed")) == 200
