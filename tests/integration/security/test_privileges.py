"""Several roles in one database: each sees and touches its own, and works on what it was
granted.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from followed_hints import read_statements
from processes import eventually
from roles import another_role, own_schema, refused
from workbench import Workbench, compile_text

FIT_WORKERS = 1
VIEWS = (
    "run",
    "config",
    "leaderboard",
    "progress",
    "timeline",
    "learning_curve",
    "decision",
    "act",
    "cost",
)
LOGS = ("run_log", "config_log", "visit", "evaluation", "metric", "decision_log", "act_log")
MODELS = (
    "model",
    "model_version",
    "feature",
    "template",
    "model_group",
    "model_log",
    "version_log",
    "group_log",
    "model_member",
    "member_log",
    "model_grant",
    "grant_log",
    "grant_state",
)
LOCKS = ("SHARE UPDATE EXCLUSIVE", "SHARE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE", "ACCESS EXCLUSIVE")
RELATIONS = """
SELECT c.relname::text FROM pg_class c JOIN pg_depend d ON d.classid = 'pg_class'::regclass
    AND d.objid = c.oid
WHERE d.deptype = 'e' AND c.relnamespace = 'cerebro'::regnamespace AND c.relkind IN ('r', 'v')"""


@pytest.fixture(scope="module")
def run(bench: Workbench) -> int:
    """A run of the ordinary role, which the others are not to touch."""
    bench.pack("packed", 2)
    bench.configure("one", [compile_text()])
    run_id = bench.fit("packed", "model", "one", 1, seed=1, search="grid")
    bench.rows("INSERT INTO cerebro.act_log (run_id, action) VALUES (%s, 'pause_run')", run_id)
    return run_id


@pytest.fixture(scope="module")
def ann(bench: Workbench, shared_superuser: Workbench, run: int) -> Iterator[Workbench]:
    """A session of a role that may use the extension, and has a schema of its own."""
    with another_role(bench, shared_superuser, "ann") as session:
        own_schema(shared_superuser, "ann")
        shared_superuser.rows("ALTER ROLE ann SET search_path = ann, public, madlib")
        session.rows("SET search_path = ann, public, madlib")
        session.fit_workers = FIT_WORKERS
        yield session


def test_these_are_all_tables_and_views(bench: Workbench) -> None:
    more = {"segment_key"} if bench.greenplum else set()
    found = {name for (name,) in bench.rows(RELATIONS)}
    assert found == {
        *VIEWS,
        *LOGS,
        *MODELS,
        "form_timing",
        "setting",
        "quota",
        "queue",
        "queue_log",
        "used_time",
        "processor_time",
        "newest_value",
        "visible_run",
        "orchestrator",
        "logged_run",
        "worker",
        "parameter",
        *more,
    }


def test_who_was_granted_nothing_reads_and_calls_nothing(
    bench: Workbench, shared_superuser: Workbench, run: int
) -> None:
    with another_role(bench, shared_superuser, "eve", granted=False) as eve:
        for (name,) in bench.rows(RELATIONS):
            refused(eve, f"SELECT FROM cerebro.{name}")
        refused(eve, "CREATE TABLE cerebro_state.r1_c1_a ()")
        refused(eve, "SELECT madlib.madlib_fit_multiple_model('packed', 'o', 'one', 1)")
        refused(eve, "SELECT cerebro_internal.trainer_start('{}')")


def test_only_administrators_grant_usage(
    bench: Workbench, shared_superuser: Workbench, ann: Workbench
) -> None:
    usage = "SELECT has_schema_privilege('eve', 'cerebro', 'USAGE')"
    with another_role(bench, shared_superuser, "eve", granted=False):
        for name in ("grant_usage", "revoke_usage"):
            error = refused(ann, f"SELECT cerebro.{name}('eve')")
            template = "Ask a superuser to call SELECT cerebro.{}({});"
            for statement in read_statements(error, template):
                shared_superuser.rows(statement)
            assert shared_superuser.value(usage) is (name == "grant_usage")


def test_only_administrators_write_settings(ann: Workbench) -> None:
    for call in (
        "SELECT cerebro.set('trainer_python', '/tmp/mine');",
        "SELECT cerebro.set('spare_cores', NULL);",
    ):
        assert refused(ann, call).diag.message_hint == f"Ask a superuser to call {call}"
    refused(ann, "SELECT cerebro.set('spare_cores', 1)")
    refused(ann, "INSERT INTO cerebro.setting VALUES ('trainer_python', '/tmp/mine')")
    refused(ann, "UPDATE cerebro.setting SET value = '/tmp/mine'")
    refused(ann, "DELETE FROM cerebro.setting")


def test_a_user_sees_nothing_of_another(bench: Workbench, ann: Workbench, run: int) -> None:
    for name in (*VIEWS, *LOGS):
        query = f"SELECT FROM cerebro.{name} WHERE run_id = %s"
        assert bench.rows(query, run) and not ann.rows(query, run), name
    bench.rows("INSERT INTO cerebro.form_timing VALUES ('cerebro', 'm', 'p', 1, 1, 'f', 1, 1)")
    timings = "SELECT FROM cerebro.form_timing"
    assert bench.rows(timings) and not ann.rows(timings)
    ann.rows("UPDATE cerebro.form_timing SET compile_seconds = 9")
    refused(ann, "UPDATE cerebro.form_timing SET form = 'slow'")
    refused(ann, "DELETE FROM cerebro.form_timing")
    assert bench.rows("SELECT FROM cerebro.form_timing WHERE form = 'f' AND compile_seconds = 1")


def test_a_member_of_the_role_sees_its_runs(
    bench: Workbench, shared_superuser: Workbench, run: int
) -> None:
    with another_role(bench, shared_superuser, "fellow") as fellow:
        assert not fellow.rows("SELECT FROM cerebro.run")
        shared_superuser.rows("GRANT cerebro TO fellow")
        for name in VIEWS:
            assert fellow.rows(f"SELECT FROM cerebro.{name} WHERE run_id = %s", run), name


def own_run(ann: Workbench) -> int:
    """A run in the log of the role, as it can write one by hand."""
    query = (
        "INSERT INTO cerebro.run_log (name, spec, pid, epochs, segments) VALUES ('own', '{}', 1, "
        "1, '{0}') RETURNING run_id"
    )
    return int(ann.value(query))


def test_a_user_touches_nothing_of_another(bench: Workbench, ann: Workbench, run: int) -> None:
    before = [bench.rows(f"SELECT * FROM cerebro.{name} ORDER BY 1, 2, 3") for name in LOGS]
    own = own_run(ann)
    for name in LOGS:
        if name not in ("metric", "decision_log", "act_log"):
            ann.rows(f"UPDATE cerebro.{name} SET status = 'failed'")
        refused(ann, f"DELETE FROM cerebro.{name}")
        refused(ann, f"TRUNCATE cerebro.{name}")
    refused(ann, "UPDATE cerebro.metric SET value = 0")
    refused(ann, "UPDATE cerebro.decision_log SET last_epoch = 0")
    ann.rows("UPDATE cerebro.act_log SET status = 'done'")
    refused(ann, "UPDATE cerebro.act_log SET actor = 'cerebro'")
    refused(ann, "INSERT INTO cerebro.act_log (run_id, action) VALUES (%s, 'pause_run')", run)
    ann.rows("UPDATE cerebro.run_log SET dropped = true WHERE run_id = %s", run)
    ann.rows("SELECT cerebro_internal.remove_dropped(%s)", run)
    refused(ann, "INSERT INTO cerebro.metric VALUES (%s, 1, 99, 'training', 'loss', 0)", run)
    refused(
        ann,
        "INSERT INTO cerebro.decision_log VALUES (%s, 9, now(), 1, 'stop', 1, 1, 1, NULL, 'asha', "
        "'')",
        run,
    )
    refused(
        ann,
        "INSERT INTO cerebro.visit (run_id, epoch, mst_key, segment_id, visit_no, attempt, status)"
        " VALUES (%s, 1, 1, 0, 1, 9, 'completed')",
        run,
    )
    refused(
        ann,
        "INSERT INTO cerebro.evaluation (run_id, epoch, mst_key, segment_id, attempt, status)"
        " VALUES (%s, 1, 1, 0, 9, 'completed')",
        run,
    )
    refused(
        ann,
        "INSERT INTO cerebro.config_log VALUES (%s, 9, '{}', 'waiting', NULL, '{}', 1, '', '', "
        "'{}', 'x')",
        run,
    )
    ann.rows("INSERT INTO cerebro.metric VALUES (%s, 1, 1, 'training', 'loss', 0)", own)
    refused(ann, "UPDATE cerebro.metric SET run_id = %s", run)
    refused(ann, "UPDATE cerebro.run_log SET owner = 'cerebro' WHERE run_id = %s", own)
    refused(ann, "INSERT INTO cerebro.form_timing VALUES ('cerebro', 'm', 'p', 1, 1, 'f', 1, 1)")
    ann.rows("SELECT cerebro.drop_run(%s)", own)
    assert [bench.rows(f"SELECT * FROM cerebro.{name} ORDER BY 1, 2, 3") for name in LOGS] == before


@pytest.mark.postgresql(
    "there a segment, which would have to check that, cannot ask which number its session took"
)
def test_a_user_takes_no_number_of_a_run_to_come(bench: Workbench, ann: Workbench) -> None:
    insert = (
        "INSERT INTO cerebro.run_log (run_id, name, spec, pid, epochs, segments) OVERRIDING "
        "SYSTEM VALUE VALUES (%s, 'planted', '{}', 1, 1, '{0}')"
    )
    own_run(ann)
    refused(ann, insert, bench.newest_run() + 100)
    refused(ann, "SELECT setval('cerebro.run_log_run_id_seq', 1)")
    for (own,) in ann.rows("SELECT run_id FROM cerebro.run_log"):
        ann.rows("SELECT cerebro.drop_run(%s)", own)


@pytest.mark.parametrize("mode", LOCKS)
def test_a_user_locks_no_table_against_others(bench: Workbench, ann: Workbench, mode: str) -> None:
    """A lock in these modes would stop everybody's runs and views, or the server's own
    housekeeping, for as long as it is held."""
    for (name,) in bench.rows(RELATIONS):
        refused(ann, f"DO $$BEGIN LOCK TABLE cerebro.{name} IN {mode} MODE; END$$")


def test_another_s_states_and_runs(
    bench: Workbench, ann: Workbench, shared_superuser: Workbench, run: int
) -> None:
    ((state,),) = bench.rows(
        "SELECT unnest(state_tables) FROM cerebro.config WHERE run_id = %s", run
    )
    assert bench.value(f"SELECT count(*) FROM {state}")
    for statement in ("SELECT FROM {}", "DROP TABLE {}", "TRUNCATE {}", "ALTER TABLE {} ADD x int"):
        refused(ann, statement.format(state))
    for call in ("resume({})", "drop_run({})", "write_outputs({}, 'copied')"):
        refused(ann, f"SELECT cerebro.{call.format(run)}", code="42704")
        # Nor for a superuser, whose statements would have names and types in them that the owner
        # can change.
        refused(shared_superuser, f"SELECT cerebro.{call.format(run)}", code="42704")
    assert bench.value(f"SELECT count(*) FROM {state}")


def test_training_and_predicting_only_on_what_may_be_read(
    bench: Workbench, ann: Workbench, run: int
) -> None:
    calls = {
        "fit": "SELECT madlib_fit_multiple_model('packed', 'o', 'one', 1)",
        "predict": "SELECT madlib_predict('model', 'points', 'id', 'x', 'o', mst_key => 1)",
        "evaluate": "SELECT madlib_evaluate('model', 'packed', 'o', mst_key => 1)",
        "pack": "SELECT training_preprocessor_dl('points', 'o', 'label', 'x')",
    }
    for call in calls.values():
        assert refused(ann, call).diag.message_hint or call
    before = ann.rows(
        "SELECT relname FROM pg_class WHERE relnamespace = 'ann'::regnamespace ORDER BY 1"
    )
    bench.rows("GRANT SELECT ON packed, packed_summary, one, one_summary, points TO ann")
    try:
        refused(ann, calls["fit"])  # it may not read the architectures
        refused(ann, calls["predict"])  # nor the model
        ann.rows(calls["pack"])
        ann.rows("DROP TABLE o, o_summary")
        bench.rows("GRANT SELECT ON models TO ann")
        ann.rows(calls["fit"])
        states = ann.states("o")
        assert (
            ann.value(
                "SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = %s::regclass", states
            )
            == "ann"
        )
        ann.rows("DROP TABLE o, o_info, o_summary")
    finally:
        bench.rows(
            "REVOKE ALL ON packed, packed_summary, one, one_summary, points, models FROM ann"
        )
    assert (
        ann.rows("SELECT relname FROM pg_class WHERE relnamespace = 'ann'::regnamespace ORDER BY 1")
        == before
    )


def test_writing_only_where_tables_may_be_created(
    bench: Workbench, ann: Workbench, run: int
) -> None:
    bench.rows(
        "CREATE SCHEMA theirs; GRANT USAGE ON SCHEMA theirs TO ann; GRANT SELECT ON points TO ann"
    )
    try:
        error = refused(ann, "SELECT training_preprocessor_dl('points', 'theirs.o', 'label', 'x')")
        assert "GRANT CREATE ON SCHEMA" in str(error.diag.message_hint)
    finally:
        bench.rows("REVOKE ALL ON points FROM ann; DROP SCHEMA theirs")


@pytest.fixture
def policies(bench: Workbench, ann: Workbench, run: int) -> Iterator[None]:
    """Of rows, buffers and models the role sees some only."""
    grants = "packed, packed_summary, one, one_summary, models, points"
    bench.rows(f"GRANT SELECT ON {grants} TO ann")
    bench.rows(
        "ALTER TABLE packed ENABLE ROW LEVEL SECURITY; CREATE POLICY visible ON packed USING "
        "(buffer_id % 2 = 0)"
    )
    bench.rows(
        "ALTER TABLE points ENABLE ROW LEVEL SECURITY; CREATE POLICY visible ON points USING (id "
        "<= 50)"
    )
    yield
    bench.rows("DROP POLICY visible ON packed; ALTER TABLE packed DISABLE ROW LEVEL SECURITY")
    bench.rows("DROP POLICY visible ON points; ALTER TABLE points DISABLE ROW LEVEL SECURITY")
    bench.rows(f"REVOKE ALL ON {grants} FROM ann")


def test_row_level_security_of_the_source_holds(
    bench: Workbench, ann: Workbench, policies: None
) -> None:
    visible = ann.value("SELECT sum(x_shape[1]) FROM packed")
    assert 0 < visible < bench.value("SELECT sum(x_shape[1]) FROM packed")
    found = ann.fit("packed", "trained", "one", 1)
    assert ann.value("SELECT sum(rows) FROM cerebro.visit WHERE run_id = %s", found) == visible
    assert ann.value("SELECT sum(rows) FROM cerebro.evaluation WHERE run_id = %s", found) == visible
    ann.rows("SELECT madlib_predict('trained', 'points', 'id', 'x', 'predicted', mst_key => 1)")
    assert ann.row("SELECT count(DISTINCT id), max(id) FROM predicted") == (50, 50)
    ann.rows("SELECT training_preprocessor_dl('points', 'repacked', 'label', 'x')")
    assert ann.value("SELECT sum(x_shape[1]) FROM repacked") == 50
    # Asked not to filter, PostgreSQL refuses; a role has no setting that shows more.
    ann.rows("SET row_security = off")
    refused(ann, "SELECT training_preprocessor_dl('points', 'all_of_it', 'label', 'x')")
    ann.rows("RESET row_security")


@pytest.mark.long
def test_roles_that_cannot_log_in_are_told_what_to_do(
    bench: Workbench, shared_superuser: Workbench, run: int
) -> None:
    with another_role(bench, shared_superuser, "nologin", options="NOLOGIN") as session:
        bench.rows("GRANT SELECT ON packed, packed_summary, one, one_summary, models TO nologin")
        shared_superuser.rows("GRANT CREATE ON SCHEMA public TO nologin")
        session.rows("SET ROLE nologin")
        error = refused(session, "SELECT madlib_fit_multiple_model('packed', 'o', 'one', 1)")
        assert "cannot log in" in str(error)
        template = (
            "ALTER ROLE {} LOGIN; or connect as a role that can log in and is a member of it, and "
            "SET ROLE to it."
        )
        (statement,) = read_statements(error, template)
        with another_role(bench, shared_superuser, "its_member") as fellow:
            shared_superuser.rows("GRANT nologin TO its_member")
            fellow.rows("SET ROLE nologin")
            made = fellow.fit("packed", "of_the_group", "one", 1)
            assert (
                fellow.value("SELECT owner FROM cerebro.run WHERE run_id = %s", made) == "nologin"
            )
        shared_superuser.rows(statement)
        assert session.fit("packed", "of_its_own", "one", 1)


def test_a_definer_function_does_not_train_for_its_callers(
    bench: Workbench, ann: Workbench, run: int
) -> None:
    bench.rows(
        "CREATE FUNCTION lent() RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = "
        "public, madlib AS $$SELECT madlib_fit_multiple_model('packed', 'lent', 'one', 1)$$"
    )
    error = refused(ann, "SELECT lent()")
    assert (
        "the session of 'ann' may not work as 'cerebro'" in str(error) and error.diag.message_hint
    )
    assert not bench.exists("lent")


@pytest.mark.postgresql("no call works in the caller's own session there")
def test_a_call_in_the_caller_s_own_session_leaves_no_state_behind(
    bench: Workbench, run: int
) -> None:
    """That session's next statement may be of another role, such as the caller of a SECURITY
    DEFINER function.
    """
    session = bench.another()
    session.rows("CREATE TEMP TABLE passing AS SELECT id, x FROM points")
    session.rows("SELECT madlib_predict('model', 'passing', 'id', 'x', 'of_passing', mst_key => 1)")
    error = refused(
        session, "SELECT count(*) FROM cerebro_internal.state_chunks(8120, 'result')", code="55000"
    )
    assert "is not held, but no state" in str(error)
    session.rows("DROP TABLE of_passing")
    session.close()


def test_who_holds_another_s_lock_does_not_make_a_run_look_alive(
    bench: Workbench, ann: Workbench
) -> None:
    """Anyone can take any advisory lock."""
    own = own_run(bench)
    ann.rows("SELECT pg_advisory_lock((1667590770::bigint << 32) # %s)", own)
    try:
        assert bench.value("SELECT status FROM cerebro.run WHERE run_id = %s", own) == "interrupted"
    finally:
        ann.rows("SELECT pg_advisory_unlock_all()")
        bench.rows("SELECT cerebro.drop_run(%s)", own)


def test_statements_of_workers_are_hidden_from_others(
    bench: Workbench, ann: Workbench, run: int
) -> None:
    query = (
        "SELECT query FROM pg_stat_activity WHERE usename = 'cerebro' AND application_name LIKE "
        "'cerebro\\_db%'"
    )
    with (
        ThreadPoolExecutor(1) as pool,
        bench.another().fitting("packed", "watched", "one", 3) as fitted,
    ):
        seen = pool.submit(
            lambda: eventually(lambda: ann.rows(query) or [("done",)] * fitted.done())
        )
        fitted.result()
        found = seen.result()
    assert set(found) == {("<insufficient privilege>",)}
