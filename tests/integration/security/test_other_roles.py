"""What a role writes into the log, grants or locks neither ends a statement of another role, nor
decides for it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg2
import pytest
from processes import eventually
from roles import another_role, own_schema, refused
from workbench import Workbench, compile_text

FIT_WORKERS = 1
RUN_KEY = "(1667590770::bigint << 32)"
LOCK_OF_NAME = "SELECT pg_advisory_lock(1667590772, hashtext(%s))"
UNLOCK = "SELECT pg_advisory_unlock_all()"

EXTREMES = {
    "integer": ("-2147483648", "2147483647"),
    "bigint": ("-9223372036854775808", "9223372036854775807"),
    "double precision": ("NaN", "Infinity", "-Infinity", "1e308", "-1e308", "1e-320"),
    "timestamp with time zone": ("infinity", "-infinity", "4713-01-01 00:00:00 BC", "294276-12-31"),
    "text": ("", "\x01" * 10_000, "'}\"{\\"),
    "jsonb": (
        "null",
        "5",
        "[]",
        '["a", [5, null, {}]]',
        '{"features": [5, null, [], "a", {}], "a": 1e4000, "b": -1e-4000, "c": [[{}]], "d": null, '
        '"e": 1e300}',
        '{"features": {"a": 5}, "a": {"b": 1e-300}, "rank_dataset": {}, "rank_descending": []}',
    ),
    "json": ("null", "5", "[]", '{"a": 1e4000}'),
    "text[]": ("{}", "{NULL}", "{{a},{b}}"),
    "integer[]": ("{}", "{NULL}", "{2147483647,-2147483648}", "{{1,2},{3,4}}"),
    "double precision[]": ("{}", "{NaN,Infinity,1e308}", "{{1},{2}}"),
    "bytea": ("",),
    "boolean": ("true", "false"),
    "name": ("", "x"),
}
USUAL = {
    "integer": "1",
    "bigint": "1",
    "double precision": "1",
    "timestamp with time zone": "2026-01-01",
    "text": "x",
    "jsonb": '{"rank_dataset": "training", "rank_metric": "loss", "rank_descending": "true"}',
    "json": "{}",
    "text[]": "{x}",
    "integer[]": "{0,1,2}",
    "double precision[]": "{1}",
    "bytea": "x",
    "boolean": "false",
}
NAMED = {
    "run_log.status": "completed",
    "config_log.status": "completed",
    "config_log.source": "call",
    "visit.status": "completed",
    "visit.kind": "train",
    "evaluation.status": "completed",
    "metric.dataset": "training",
    "metric.name": "loss",
    "decision_log.action": "continue",
    "act_log.action": "pause_run",
    "version_log.task": "regression",
}
"""Values that constraints ask for, by column."""
KEYS = {"mst_key", "visit_no", "decision_no", "version", "model"}
"""Columns that tell the rows of one table apart; rows of several tables share them."""
REFUSALS = {"42501", "23514", "23502", "23505", "22P02", "22003", "22008", "22P05", "22021"}
COLUMNS = """
SELECT c.relname::text, a.attname::text, format_type(a.atttypid, NULL), has_column_privilege(c.oid,
    a.attnum, 'INSERT'),
       has_column_privilege(c.oid, a.attnum, 'UPDATE'), a.attnotnull AND NOT a.atthasdef
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = 'cerebro'::regnamespace AND c.relkind = 'r' AND a.attnum > 0
    AND NOT a.attisdropped
  AND a.attgenerated = ''
  AND (has_column_privilege(c.oid, a.attnum, 'INSERT') OR has_column_privilege(c.oid, a.attnum,
      'UPDATE'))
ORDER BY c.relname = 'run_log' DESC, c.relname, a.attnum"""
VIEWS = """
SELECT c.oid::regclass::text FROM pg_class c
WHERE c.relnamespace IN ('cerebro'::regnamespace, 'cerebro_optuna'::regnamespace)
    AND c.relkind = 'v'
  AND has_table_privilege(c.oid, 'SELECT') ORDER BY 1"""


@pytest.fixture(scope="module")
def alice(bench: Workbench) -> Workbench:
    """The session of a role with a run, a packed table and configurations."""
    bench.pack("packed", 2)
    bench.configure("one", [compile_text()])
    bench.fit("packed", "model", "one", 1, seed=1)
    return bench


@pytest.fixture
def eve(alice: Workbench, shared_superuser: Workbench) -> Iterator[Workbench]:
    with another_role(alice, shared_superuser, "forger") as session:
        own_schema(shared_superuser, "forger")
        session.rows("SET search_path = forger, public, madlib")
        yield session
        of_run = "USING cerebro.run_log r WHERE r.run_id = t.run_id AND r.owner = 'forger'"
        for table in ("visit", "evaluation", "metric", "decision_log", "act_log", "config_log"):
            shared_superuser.rows(f"DELETE FROM cerebro.{table} t {of_run}")
        for table in (
            "run_log",
            "form_timing",
            "model_log",
            "version_log",
            "group_log",
            "member_log",
            "grant_log",
            "grant_state",
        ):
            shared_superuser.rows(f"DELETE FROM cerebro.{table} WHERE owner = 'forger'")


class Forger:
    """Writes rows of its own role with one value after another in a column."""

    def __init__(self, session: Workbench) -> None:
        self._session, self._numbers = session, itertools.count(1)
        self.columns = session.rows(COLUMNS)
        self.run = self._session.value(
            "INSERT INTO cerebro.run_log (spec, pid, epochs, segments) VALUES (%s, 1, 1, "
            "'{0,1,2}') RETURNING run_id",
            USUAL["jsonb"],
        )

    def forge(self, table: str, column: str, value: str) -> None:
        """Add a row and write into it, as far as the role may."""
        number = next(self._numbers)
        fields = {
            name: self._usual(table, name, kind, number)
            for of, name, kind, insert, _, needed in self.columns
            if of == table and insert and (needed or name in ("status", "template"))
        }
        if table == "run_log":
            fields.pop("run_id", None)
        written = [
            (insert, update)
            for of, name, _, insert, update, _ in self.columns
            if (of, name) == (table, column)
        ]
        ((may_insert, may_update),) = written
        if may_insert and column != "run_id":
            self._try(self._insert(table, {**fields, column: value}))
        if may_update:
            self._try(
                self._insert(
                    table, {**fields, **({"model": f"m{number}u"} if "model" in fields else {})}
                )
            )
            self._try((f"UPDATE cerebro.{table} SET {column} = %s", (value,)))

    def _usual(self, table: str, name: str, kind: str, number: int) -> object:
        if name == "run_id":
            return self.run
        if name in KEYS:
            return f"m{number}" if name == "model" else number
        return NAMED.get(f"{table}.{name}", USUAL[kind])

    def _insert(self, table: str, fields: dict[str, object]) -> tuple[str, tuple[object, ...]]:
        names, marks = ", ".join(fields), ", ".join(["%s"] * len(fields))
        return f"INSERT INTO cerebro.{table} ({names}) VALUES ({marks})", tuple(fields.values())

    def _try(self, statement: tuple[str, tuple[object, ...]]) -> None:
        try:
            self._session.rows(statement[0], *statement[1])
        except psycopg2.Error as error:
            assert error.pgcode in REFUSALS, (statement, str(error))


def test_no_row_of_a_role_makes_a_view_fail_for_others(
    alice: Workbench, shared_superuser: Workbench, eve: Workbench
) -> None:
    """Each extreme value of its type in each column that a role may write, now or later: by the
    catalog.
    """
    forger = Forger(eve)
    assert {table for table, *_ in forger.columns} >= {
        "run_log",
        "visit",
        "metric",
        "version_log",
        "act_log",
    }
    for table, column, kind, *_ in forger.columns:
        for value in EXTREMES[kind] * 2:
            forger.forge(table, column, value)
    run = eve.value(
        "INSERT INTO cerebro.run_log (spec, pid, epochs, segments)"
        " VALUES ('{}', 1, 999999, array_fill(7, ARRAY[100000])) RETURNING run_id"
    )
    eve.rows(
        "INSERT INTO cerebro.config_log (run_id, mst_key, params, status, model_id, "
        "compile_params, fit_params, architecture) SELECT %s, n, '{}', 'running', 1, '', '', '{}' "
        "FROM generate_series(1, 9) n",
        run,
    )
    eve.rows(
        "INSERT INTO cerebro.visit (run_id, epoch, mst_key, segment_id, visit_no, attempt, "
        "status, started_at) SELECT %s, 1, 1, 7, 1, 1, 'completed', '1970-01-02'",
        run,
    )
    with closing(eve.another()) as orchestrator:
        orchestrator.rows(
            "UPDATE cerebro.run_log SET pid = pg_backend_pid(), status = 'running', epochs = "
            "greatest(epochs, 1)"
        )
        orchestrator.rows(f"SELECT pg_advisory_lock({RUN_KEY} # run_id) FROM cerebro.run_log")
        for session in (alice, shared_superuser):
            for (view,) in session.rows(VIEWS):
                session.rows(f"SELECT * FROM {view}")
        own = alice.rows("SELECT DISTINCT owner FROM cerebro.run")
        assert own == [("cerebro",)] and eve.value("SELECT count(*) FROM cerebro.run") > 10


def test_no_number_of_a_run_is_too_large_for_a_view(
    alice: Workbench, shared_superuser: Workbench
) -> None:
    """Anybody may take numbers from the sequence until few are left."""
    run = 2**63 - 2
    insert = """INSERT INTO cerebro.run_log (run_id, owner, status, spec, pid, epochs,
        segments) OVERRIDING SYSTEM VALUE
                VALUES (%s, 'forger', 'completed', '{}', 1, 1, '{0}')"""
    shared_superuser.rows(insert, run)
    shared_superuser.rows(
        "INSERT INTO cerebro.config_log (run_id, mst_key, params, model_id, compile_params, "
        "fit_params, architecture) VALUES (%s, 2147483647, '{\"a\": 1}', 1, 'a=1', 'b=2', '{}')",
        run,
    )
    try:
        for (view,) in shared_superuser.rows(VIEWS):
            shared_superuser.rows(f"SELECT * FROM {view}")
    finally:
        for table in ("config_log", "run_log"):
            shared_superuser.rows(f"DELETE FROM cerebro.{table} WHERE run_id = %s", run)


USED = "SELECT coalesce(sum(seconds), 0) FROM cerebro.processor_time WHERE owner = %s"


def test_processor_time_is_counted_by_nothing_that_a_role_writes(
    alice: Workbench, shared_superuser: Workbench, eve: Workbench
) -> None:
    """It neither ends another role's run, nor makes it rest, nor lowers a role's own count."""
    before = {who: shared_superuser.value(USED, who) for who in ("cerebro", "forger")}
    assert before["cerebro"] > 0 == before["forger"]
    shared_superuser.rows("INSERT INTO cerebro.quota (cpu_a_day) VALUES ('1 day')")
    try:
        for seconds in ("Infinity", "1e308", "1e308", "-1e9", "9e8", "9e8"):
            for session in (eve, alice):
                try:
                    session.rows(
                        "INSERT INTO cerebro.run_log (spec, pid, epochs, segments, "
                        "trainer_seconds, backend_seconds, ended_at) VALUES ('{}', 1, 1, '{}', "
                        "%s, 0, now())",
                        seconds,
                    )
                except psycopg2.errors.InsufficientPrivilege:
                    assert seconds not in ("9e8",)
        alice.rows(
            "UPDATE cerebro.visit SET trainer_seconds = 0, ended_at = now() - interval '2 days'"
        )
        alice.rows(
            "UPDATE cerebro.run_log SET trainer_seconds = 0, ended_at = now() - interval '2 days'"
        )
        assert {who: shared_superuser.value(USED, who) for who in before} == before
        alice.fit("packed", "not_resting", "one", 1, seed=1)
        after = shared_superuser.value(USED, "cerebro")
        assert before["cerebro"] < after < before["cerebro"] + 1000
        for statement in (
            "UPDATE cerebro.used_time SET seconds = 0",
            "DELETE FROM cerebro.used_time",
        ):
            refused(alice, statement)
    finally:
        shared_superuser.rows("DELETE FROM cerebro.quota WHERE role IS NULL")
        alice.rows("DROP TABLE IF EXISTS not_resting, not_resting_info, not_resting_summary")


@contextmanager
def statement_at_work(session: Workbench, run: int) -> Iterator[None]:
    """A statement that holds the lock of a run until the block ends."""
    watcher, pid = session.another(), session.pid()
    with session.calling(
        lambda: session.rows(f"SELECT pg_sleep(600) FROM pg_advisory_lock({RUN_KEY} # {run})")
    ) as work:
        eventually(
            lambda: watcher.rows(
                "SELECT FROM pg_stat_activity WHERE pid = %s AND wait_event = 'PgSleep'", pid
            )
        )
        try:
            yield
        finally:
            watcher.rows("SELECT pg_cancel_backend(%s)", pid)
            with pytest.raises(psycopg2.errors.QueryCanceled):
                work.result()
            session.rows(UNLOCK)
            watcher.close()


@pytest.mark.postgresql("there a session by its name says who works for a run")
def test_what_a_role_says_that_it_used_is_bounded(
    alice: Workbench, shared_superuser: Workbench, eve: Workbench
) -> None:
    """By hand: it has to be of an own run that a statement works for, and no more than all
    processors do meanwhile.
    """
    theirs, ticket = alice.row(
        "SELECT run_id, ticket FROM cerebro.run_log ORDER BY run_id DESC LIMIT 1"
    )
    run = Forger(eve).run
    eve.rows("UPDATE cerebro.run_log SET ticket = 'own' WHERE run_id = %s", run)
    assert not eve.rows("SELECT ticket FROM cerebro.run_log WHERE ticket = %s", ticket)
    count = "SELECT cerebro_internal.count_time(%s, 'own', %s)"
    for seconds in ("NaN", "Infinity", "-1"):
        refused(eve, count, run, seconds, code="22023")
    refused(eve, count, None, 1.0, code="22004")
    before = shared_superuser.value(USED, "cerebro")
    assert not eve.value(count, theirs, 1.0) and not eve.value(count, run, 1.0), (
        "another's run, and one without work"
    )
    with (
        closing(eve.another()) as worker,
        closing(alice.another()) as hers,
        statement_at_work(worker, run),
        statement_at_work(hers, theirs),
    ):
        assert not eve.value(count, theirs, 5.0)
        for _ in range(3):
            assert eve.value(count, run, 1e308)
        began, cores = shared_superuser.row(
            "SELECT began_at, cores FROM cerebro.used_time WHERE owner = 'forger'"
        )
        most = "SELECT %s * extract(epoch FROM clock_timestamp() - %s)::double precision"
        assert (
            0 < shared_superuser.value(USED, "forger") <= shared_superuser.value(most, cores, began)
        )
    assert shared_superuser.value(USED, "cerebro") == before
    shared_superuser.rows("DELETE FROM cerebro.used_time WHERE owner = 'forger'")


def test_a_lock_of_another_role_reserves_no_name(
    alice: Workbench, shared_superuser: Workbench, eve: Workbench
) -> None:
    """Anyone can take any advisory lock; it counts where a role of its holder could make that
    table.
    """
    pack = "SELECT training_preprocessor_dl('points', '{}', 'label', 'x')"
    load = "SELECT load_keras_model(%s, (SELECT model_arch::text FROM models LIMIT 1))"
    for name in ("p1", "nets", "theirs"):
        eve.rows(LOCK_OF_NAME, f'"public"."{name}"')
        eve.rows("SELECT pg_advisory_lock(1667590771, hashtext(%s))", name)
    try:
        shared_superuser.rows("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        alice.rows("SET lock_timeout = '5s'")
        alice.rows(pack.format("p1"))
        alice.rows(load, "nets")
        shared_superuser.rows("GRANT CREATE ON SCHEMA public TO forger")
        refused(
            alice, pack.format("theirs"), code="42P07", words="is being made by another transaction"
        )
    finally:
        shared_superuser.rows("REVOKE ALL ON SCHEMA public FROM forger")
        alice.rows("RESET lock_timeout")
        eve.rows(UNLOCK)
    assert alice.exists("p1", "nets") and not alice.exists("theirs")
    alice.rows("DROP TABLE p1, p1_summary, nets")


def test_a_lock_of_another_role_keeps_no_run_from_its_owner(
    alice: Workbench, eve: Workbench
) -> None:
    run = alice.fit("packed", "held", "one", 1, seed=1)
    alice.rows("DROP TABLE held, held_info, held_summary")
    eve.rows(f"SELECT pg_advisory_lock({RUN_KEY} # %s)", run)
    try:
        refused(
            alice,
            "SELECT cerebro.resume(%s)",
            run,
            code="55006",
            words=f"session {eve.pid()} of role 'forger'",
        )
        assert alice.value("SELECT cerebro.vacuum_runs('0 seconds')") > 0
        with closing(alice.another()) as other:
            refused(other, "SELECT cerebro.resume(%s)", run, code="55006", words="is not under way")
        alice.rows("SELECT cerebro.drop_run(%s)", run)
    finally:
        eve.rows(UNLOCK)
    assert not alice.rows("SELECT FROM cerebro.run WHERE run_id = %s", run)


READABLE = """
SELECT c.relname::text FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
WHERE c.relnamespace = 'cerebro_state'::regnamespace AND a.grantee <> c.relowner
UNION ALL
SELECT p.oid::regprocedure::text FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) a
WHERE p.proname LIKE '%%\\_predict' AND p.proowner = current_user::regrole
      AND a.grantee <> p.proowner AND a.grantee <> 'trusted'::regrole"""


@pytest.mark.postgresql("predictions with a model table are not granted there")
def test_default_privileges_open_nothing_of_ours(
    alice: Workbench, shared_superuser: Workbench, eve: Workbench
) -> None:
    """Tables of states, weights and packed rows, gates of models and functions that predict are
    granted by us alone.
    """
    default = "ALTER DEFAULT PRIVILEGES {} ALL ON {} {} forger, PUBLIC"
    kinds = ("TABLES", "FUNCTIONS")
    for kind in kinds:
        alice.rows(default.format("GRANT", kind, "TO"))
    try:
        with another_role(alice, shared_superuser, "trusted"):
            run = alice.fit("packed", "opened", "one", 1, seed=1)
            alice.rows("SELECT cerebro.write_outputs(%s, 'again')", run)
            alice.rows("SELECT cerebro.grant_predict('opened', 'trusted')")
            alice.rows("SELECT cerebro.register('opened too', 'opened', 1)")
            assert alice.rows(READABLE) == []
            assert (
                eve.value(
                    "SELECT count(*) FROM information_schema.table_privileges WHERE grantee = "
                    "'forger'"
                )
                > 0
            )
            alice.rows("SELECT cerebro.grant_predict('opened too', 'trusted')")
            gate = alice.value("SELECT gate FROM cerebro.grant_log WHERE model = 'opened too'")
            assert alice.rows(READABLE) == [(gate,)]
            refused(eve, "SELECT cerebro.predict_row('opened too', '{}', 'cerebro')", code="42704")
            alice.rows(
                "SELECT cerebro.drop_model('opened too'), cerebro.revoke_predict('opened', "
                "'trusted')"
            )
    finally:
        for kind in kinds:
            alice.rows(default.format("REVOKE", kind, "FROM"))
        alice.rows("ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO PUBLIC")
