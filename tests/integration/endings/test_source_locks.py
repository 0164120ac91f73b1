"""A source that another session has locked: a call waits as long as the caller says, and tells for
whom.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg2
import pytest
from processes import eventually
from roles import another_role, refused
from workbench import Workbench

FIT_WORKERS = 1
QUICK = (
    "models => '{linear}', configs => 1, epochs => 1, ensemble => 1, seed => 1, workers => 1, "
    "refit => 'none'"
)
CALLS = {
    "train": f"SELECT * FROM cerebro.train('rows', 'y', 'never', {QUICK})",
    "train over a view": f"SELECT * FROM cerebro.train('seen', 'y', 'never', {QUICK})",
    "train beside a table": "SELECT * FROM cerebro.train('free', 'y', 'never', split => 'table "
    f"rows', {QUICK})",
    "train in the background": "SELECT * FROM cerebro.train('rows', 'y', 'never', background => "
    f"true, {QUICK})",
    "refresh": "SELECT * FROM cerebro.refresh('learned')",
    "verify": "SELECT * FROM cerebro.verify('learned')",
    "plan": f"SELECT * FROM cerebro.plan('rows', 'y', {QUICK})",
    "plan over a view": f"SELECT * FROM cerebro.plan('seen', 'y', {QUICK})",
    "predict": "SELECT * FROM cerebro.predict('learned', 'rows')",
    "evaluate": "SELECT * FROM cerebro.evaluate('learned', 'rows')",
    "importance": "SELECT * FROM cerebro.importance('learned', 'rows')",
    "drift": "SELECT * FROM cerebro.drift('learned', 'rows')",
    "training_preprocessor_dl": "SELECT training_preprocessor_dl('rows', 'never', 'y', 'v')",
    "window_series": "SELECT cerebro.window_series('rows', 'never', 'one', 'id', 'x', 2)",
}
LEFT = """
    SELECT (SELECT count(*) FROM cerebro.run WHERE status IN ('running', 'queued')),
           (SELECT count(*) FROM pg_class WHERE relnamespace = 'cerebro_state'::regnamespace
               AND relkind = 'r'),
           (SELECT count(*) FROM cerebro.model), to_regclass('never')"""
WAITS = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'rows'::regclass"


# Functions of the tests alone: a read with a limit, and who is waited for.
FUNCTIONS = """
CREATE FUNCTION public.read_within(source text, statement text, budget double precision)
    RETURNS text
LANGUAGE plpython3u AS $$
    from cerebro_plpy.api import entry
    from cerebro_plpy.database import catalog, lock_waits
    from cerebro_plpy.database.sessions.local_session import LocalSession
    def read(db):
        session = LocalSession(db)
        relation = catalog.Catalog(db, "train").resolve_input(source)
        limit = lock_waits.read_wait_limit(db, budget)
        with lock_waits.bounded_waits(db, session, relation, limit):
            session.run(statement)
            return db.value("SELECT pg_catalog.current_setting('lock_timeout')")
    return entry.report_errors(entry.call)(plpy, {}, read)
$$;
CREATE FUNCTION public.waiting(pids integer[]) RETURNS json LANGUAGE plpython3u AS $$
    import json
    from cerebro_plpy.api import entry
    waits = entry.report_errors(entry.call)(plpy, {},
        lambda db: db.platform.find_waits(db, lambda: None, pids))
    return json.dumps([wait._asdict() for wait in waits])
$$;
GRANT EXECUTE ON FUNCTION public.read_within, public.waiting TO PUBLIC"""


@pytest.fixture(scope="module", autouse=True)
def functions(shared_superuser: Workbench) -> None:
    shared_superuser.rows(FUNCTIONS)


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.rows(
        "CREATE TABLE rows AS SELECT n AS id, 1 AS one, n * 7919 % 101 AS x, ARRAY[n]::real[] AS "
        "v, n * 7919 % 101 > 50 AS y FROM generate_series(1, 300) n; CREATE TABLE free AS TABLE "
        "rows;CREATE VIEW within AS SELECT * FROM rows WHERE x >= 0; CREATE VIEW seen AS SELECT * "
        "FROM within"
    )
    bench.rows(f"SELECT * FROM cerebro.train('rows', 'y', 'learned', {QUICK})")


@pytest.fixture(scope="module")
def holder(bench: Workbench) -> Iterator[Workbench]:
    """Another session, in which nothing commits by itself."""
    with closing(bench.another()) as session:
        session.connection.autocommit = False
        yield session


@contextmanager
def locked(holder: Workbench, table: str) -> Iterator[None]:
    """Have another session hold a table against everybody."""
    holder.rows(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
    try:
        yield
    finally:
        holder.connection.rollback()


@contextmanager
def lock_timeout(session: Workbench, value: str) -> Iterator[None]:
    session.rows("SELECT set_config('lock_timeout', %s, false)", value)
    try:
        yield
    finally:
        session.rows("RESET lock_timeout")


def refused_for(holder: Workbench, session: Workbench, call: str) -> psycopg2.Error:
    """The error of a call that waits in vain for another session, which is named with what is to be
    done.
    """
    error = refused(session, call, code="55P03", words=f"process {holder.pid()} of role 'cerebro'")
    assert "LOCK TABLE" in str(error.diag.message_detail)
    assert f"SELECT pg_terminate_backend({holder.pid()});" in str(error.diag.message_hint)
    return error


@pytest.mark.parametrize("name", CALLS)
def test_a_call_waits_as_long_as_the_caller_says(
    bench: Workbench, holder: Workbench, name: str
) -> None:
    before = bench.row(LEFT)
    with locked(holder, "rows"), lock_timeout(bench, "100ms"):
        error = refused_for(holder, bench, CALLS[name])
        assert "0.1 s, as long as lock_timeout says" in str(error)
        assert "lock on public.rows" in str(error.diag.message_detail)
        assert bench.value("SHOW lock_timeout") == "100ms"
    assert bench.row(LEFT) == before


@pytest.mark.parametrize("name", ["train", "plan over a view"])
def test_a_call_with_a_budget_waits_no_longer_than_that(
    bench: Workbench, holder: Workbench, name: str
) -> None:
    before = bench.row(LEFT)
    with locked(holder, "rows"):
        error = refused_for(
            holder, bench, CALLS[name].replace("seed => 1", "seed => 1, budget => '2 s'")
        )
    assert "as long as its budget lasts" in str(error)
    assert bench.row(LEFT) == before


def test_a_partition_and_who_is_before_in_the_queue(bench: Workbench, holder: Workbench) -> None:
    """A session that waits to lock a table keeps others from reading it."""
    bench.rows(
        "CREATE TABLE parted (id int, x int, y boolean) PARTITION BY RANGE (id);"
        "CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (1000);"
        "INSERT INTO parted SELECT id, x, y FROM rows"
    )
    call = CALLS["plan"].replace("'rows'", "'parted'")
    with lock_timeout(bench, "100ms"):
        with locked(holder, "ONLY parted_1"):
            assert "lock on public.parted_1" in str(
                refused_for(holder, bench, call).diag.message_detail
            )
        with closing(bench.another()) as own:
            own.rows(
                "SET lock_timeout = '100ms'; BEGIN; LOCK TABLE ONLY parted_1 IN ACCESS EXCLUSIVE "
                "MODE"
            )
            train = CALLS["train"].replace("'rows'", "'parted'")
            refused(
                own,
                train,
                code="25001",
                words="public.parted_1, behind parted: it is temporary, or changed or locked",
            )
        holder.rows("SELECT FROM parted_1 LIMIT 1")
        with closing(bench.another()) as queued:
            statement = "LOCK TABLE parted_1 IN ACCESS EXCLUSIVE MODE"
            queued.rows("BEGIN")
            with queued.calling(lambda: queued.rows(statement)) as waited:
                eventually(lambda: bench.value(WAITS.replace("'rows'", "'parted_1'")))
                error = refused(bench, call, code="55P03", words=f"process {queued.pid()}")
                assert (
                    "It waits for a lock on public.parted_1 that lets nobody read. Its statement: "
                    f"{statement}"
                ) in str(error)
                assert f"SELECT pg_cancel_backend({queued.pid()});" in str(error.diag.message_hint)
                holder.connection.rollback()
                waited.result()
    bench.rows("DROP TABLE parted")


def test_a_read_waits_within_its_limit(bench: Workbench, holder: Workbench) -> None:
    """The caller's lock_timeout counts before the budget, and stays what it was."""
    call = "SELECT public.read_within('rows', 'SELECT count(*) FROM public.rows', {})".format
    assert bench.value(call("NULL")) == "0"
    assert bench.value(call(20)) == "20s"
    with lock_timeout(bench, "70ms"):
        assert bench.value(call(20)) == "70ms"
        with locked(holder, "rows"):
            refused_for(holder, bench, call(20))
        assert bench.value("SHOW lock_timeout") == "70ms"
    with locked(holder, "rows"):
        assert "0.05 s, as long as its budget lasts" in str(refused_for(holder, bench, call(0.05)))
        assert "waited 0 s" in str(refused_for(holder, bench, call(-3)))
    assert bench.value("SHOW lock_timeout") == "0"


@pytest.mark.postgresql("on Greenplum another session of the call looks")
def test_who_is_waited_for_is_known_meanwhile(bench: Workbench, holder: Workbench) -> None:
    """Of a table that no catalog names behind the source, as one that a function reads."""
    with (
        closing(bench.another()) as waiter,
        locked(holder, "rows"),
        waiter.calling(lambda: waiter.rows("TABLE rows")),
    ):
        eventually(lambda: bench.value(WAITS))
        (wait,) = bench.value("SELECT public.waiting(%s)", [waiter.pid()])
        known = {"pid": holder.pid(), "table": "public.rows", "is_log": False, "role": "cerebro"}
        assert wait == {
            **known,
            "state": "idle in transaction",
            "query": "LOCK TABLE rows IN ACCESS EXCLUSIVE MODE",
        }
        assert bench.value("SELECT public.waiting(%s)", [bench.pid()]) == []
        holder.connection.rollback()


def test_a_plan_keeps_to_its_budget(bench: Workbench) -> None:
    bench.rows("CREATE VIEW slow AS SELECT r.* FROM rows r, (SELECT pg_sleep(1.1)) s")
    call = f"SELECT * FROM cerebro.plan('slow', 'y', budget => '1 s', {QUICK})"
    error = refused(bench, call, code="57014", words="budget is 1 s, and after 1.")
    assert "budget => '3 s'" in str(error.diag.message_hint)


def test_rows_that_were_rewritten_meanwhile_are_seen(bench: Workbench, holder: Workbench) -> None:
    """A snapshot that is older than the new rows would see none of them."""
    bench.rows("CREATE TABLE rewritten AS TABLE rows")
    holder.rows("ALTER TABLE rewritten ALTER x TYPE bigint")
    call = CALLS["train"].replace("'rows'", "'rewritten'").replace("never", "afterwards")
    with bench.calling(lambda: bench.rows(call)) as trained, closing(bench.another()) as watcher:
        try:
            eventually(lambda: watcher.value(WAITS.replace("'rows'", "'rewritten'")))
        finally:
            holder.connection.commit()
        assert trained.result()
    rows = "SELECT training_rows + validation_rows FROM cerebro.model WHERE model = 'afterwards'"
    assert bench.value(rows) == 300


def test_statements_of_others_are_not_shown(
    bench: Workbench, shared_superuser: Workbench, holder: Workbench
) -> None:
    with another_role(bench, shared_superuser, "waits_in_vain") as person:
        bench.rows("GRANT SELECT (id, x, y) ON rows TO waits_in_vain")
        with locked(holder, "rows"), lock_timeout(person, "100ms"):
            call = CALLS["plan"].replace("'y',", "'y', columns => 'x',")
            error = refused(
                person, call, code="55P03", words=f"process {holder.pid()} of role 'cerebro'"
            )
            assert "Its statement is not shown to this role." in str(error.diag.message_detail)
        bench.rows("REVOKE SELECT (id, x, y) ON rows FROM waits_in_vain")


OWN = {
    "plan": CALLS["plan"],
    "training_preprocessor_dl": "SELECT training_preprocessor_dl('points', 'own_packed', 'label', "
    "'x')",
    "validation_preprocessor_dl": "SELECT validation_preprocessor_dl('points', 'own_held', "
    "'label', 'x', 'own_packed')",
    "load_model_selection_table": "SELECT load_model_selection_table('models', 'own_configs', "
    "'{1}', ARRAY['optimizer=''SGD()'',loss=''categorical_crossentropy''']::text[], "
    "ARRAY['batch_size=8'])",
    "madlib_fit_multiple_model": "SELECT madlib_fit_multiple_model('own_packed', 'own_model', "
    "'own_configs', 2)",
    "madlib_predict": "SELECT madlib_predict('own_model', 'points', 'id', 'x', 'own_predicted', "
    "mst_key => 1)",
    "madlib_evaluate": "SELECT madlib_evaluate('own_model', 'own_held', 'own_measured', mst_key "
    "=> 1)",
    "window_series": CALLS["window_series"].replace("never", "own_windows"),
    "train": CALLS["train"].replace("never", "own"),
    "predict": CALLS["predict"],
    "predict_row": "SELECT cerebro.predict_row('learned', '{\"x\": 1}')",
    "evaluate": CALLS["evaluate"],
    "importance": CALLS["importance"],
    "drift": CALLS["drift"],
    "refresh": CALLS["refresh"],
    "verify": CALLS["verify"],
    "drop_model": "SELECT cerebro.drop_model('own')",
}


def test_no_call_changes_how_long_its_transaction_waits(bench: Workbench) -> None:
    """Also a fit in the caller's session alone, of tables that only its transaction sees."""
    with closing(bench.another()) as session:
        session.rows("SET lock_timeout = '71s'")
        session.rows("BEGIN")
        session.rows("SET LOCAL lock_timeout = '77s'")
        for name, call in OWN.items():
            session.rows(call)
            assert session.value("SHOW lock_timeout") == "77s", name
        session.rows("ROLLBACK")
        assert session.value("SHOW lock_timeout") == "71s"
