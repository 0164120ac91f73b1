"""A database of each released version goes on, updated where it is, or dumped there and restored
here.

A version's script and the rows of its tables are frozen as it made them. They were made on
PostgreSQL, since the first version could not train on Greenplum; there only the extension itself is
updated.
"""

from __future__ import annotations

import difflib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from dumps import VISITS, Programs, empty, plain, sessions
from followed_hints import read_statements
from listing import listing
from roles import another_role, own_schema, refused
from servers import Database, Server
from workbench import Workbench, opened

HERE = Path(__file__).parent
VERSIONS = ("0.1.0", "0.2.0")
CREATE = "CREATE EXTENSION IF NOT EXISTS cerebro_db WITH SCHEMA madlib"
COMPLETED, CANCELLED, AVERAGING = 1, 2, 3
TABLES = ("run_log", "config_log", "visit", "evaluation", "metric")
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")
# A call of every function that Python is the body of, with nothing but NULLs.
PYTHON_CALLS = """
    SELECT format('%s %s(%s)', CASE p.prokind WHEN 'p' THEN 'CALL' ELSE 'SELECT' END,
        p.oid::regproc,
                  (SELECT string_agg('NULL::' || t, ', ' ORDER BY n)
                   FROM unnest(p.proargtypes::regtype[]) WITH ORDINALITY a(t, n)))
    FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid JOIN pg_proc p ON p.oid = d.objid
    JOIN pg_language l ON l.oid = p.prolang
    WHERE d.classid = 'pg_proc'::regclass AND d.deptype = 'e' AND e.extname = 'cerebro_db'
        AND l.lanname LIKE 'plpy%'"""
Rows = dict[str, list[dict[str, Any]]]


def rows_of(version: str) -> Path:
    """The dump of a database that was used under that version."""
    return HERE / f"database-{version}.sql"


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What must not be lost: the rows of the log, and the functions that the ordinary role may
    execute.
    """

    rows: Rows
    functions: set[str]


@dataclass(frozen=True, kw_only=True)
class Old:
    """A database that the old version made: what it had there and has here, before anything else
    was done to it.
    """

    version: str
    administrator: Workbench
    owner: Workbench
    there: Facts
    here: Facts


def facts(administrator: Workbench) -> Facts:
    functions = """
        SELECT p.oid::regprocedure::text, has_function_privilege('cerebro', p.oid, 'EXECUTE')
        FROM pg_depend d JOIN pg_proc p ON p.oid = d.objid JOIN pg_extension e ON e.oid = d.refobjid
        WHERE d.classid = 'pg_proc'::regclass AND d.deptype = 'e' AND e.extname = 'cerebro_db'"""
    rows = "SELECT to_jsonb(t) FROM cerebro.{0} t ORDER BY to_jsonb(t)::text"
    return Facts(
        rows={
            table: [row for (row,) in administrator.rows(rows.format(table))] for table in TABLES
        },
        functions={name for name, allowed in administrator.rows(functions) if allowed},
    )


@contextmanager
def old_script(administrator: Workbench, version: str) -> Iterator[None]:
    """The old version's script lies beside the new one's within the block."""
    folder = administrator.value("SELECT setting FROM pg_config WHERE name = 'SHAREDIR'")
    script = Path(folder, "extension", f"cerebro_db--{version}.sql")
    there = script.exists()
    shutil.copy(HERE / script.name, script)
    yield
    if not there:
        script.unlink()


@pytest.fixture(scope="module")
def programs(server: Server) -> Programs:
    with opened(server.url("postgres", "postgres")) as administrator:
        return Programs(administrator)


@pytest.fixture(
    scope="module", params=[pytest.param(VERSIONS[0], marks=pytest.mark.long), *VERSIONS[1:]]
)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def empty_database(server: Server, version: str) -> Iterator[Database]:
    """A database in a server that has the old version's script."""
    administrator = opened(server.url("postgres", "postgres"))
    with (
        administrator as session,
        old_script(session, version),
        empty(server.url, f"release_{WORKER}") as database,
    ):
        yield database


@pytest.fixture(scope="module")
def updated(
    server: Server,
    programs: Programs,
    version: str,
    empty_database: Database,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Old]:
    """The database, made in the old version and updated."""
    script, text = tmp_path_factory.mktemp("release") / "old.sql", rows_of(version).read_text()
    assert CREATE in text
    script.write_text(text.replace(CREATE, f"{CREATE} VERSION '{version}'"))
    assert programs.run_script(script, empty_database.superuser_url) == []
    with sessions(server, empty_database) as (administrator, owner):
        there = facts(administrator)
        administrator.rows(
            "INSERT INTO cerebro.setting VALUES ('function_path', '/nowhere')"
        )  # is no setting any more
        administrator.rows("ALTER EXTENSION cerebro_db UPDATE")
        here = facts(administrator)
        yield Old(version=version, administrator=administrator, owner=owner, there=there, here=here)


@pytest.fixture(scope="module")
def restored(server: Server, programs: Programs, updated: Old, version: str) -> Iterator[Old]:
    """The dump of the old version, restored where the new one is installed."""
    with empty(server.url, f"release_restored_{WORKER}") as database:
        errors = programs.run_script(rows_of(version), database.superuser_url)
        # Grants on functions that take other arguments now; grant_usage makes them anew.
        assert [error for error in errors if not error.endswith(") does not exist")] == []
        with sessions(server, database) as (administrator, owner):
            here = facts(administrator)
            yield Old(
                version=version,
                administrator=administrator,
                owner=owner,
                there=updated.there,
                here=here,
            )


@pytest.fixture(
    scope="module", params=["updated", pytest.param("restored", marks=pytest.mark.long)]
)
def old(request: pytest.FixtureRequest, version: str) -> Old:
    found: Old = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def owner(old: Old) -> Workbench:
    """The owner of the runs, after the administrator has granted anew."""
    old.administrator.rows("SELECT cerebro.grant_usage('cerebro')")
    return old.owner


@pytest.mark.parametrize("old_version", VERSIONS)
def test_an_update_makes_what_an_installation_makes(
    shared_superuser: Workbench, old_version: str
) -> None:
    def after(*statements: str) -> list[str]:
        for statement in ("DROP EXTENSION cerebro_db CASCADE", *statements):
            shared_superuser.rows(statement)
        return listing(shared_superuser.connection)

    installed = after("CREATE EXTENSION cerebro_db")
    with old_script(shared_superuser, old_version):
        updated = after(
            f"CREATE EXTENSION cerebro_db VERSION '{old_version}'",
            "ALTER EXTENSION cerebro_db UPDATE",
        )
    assert [
        *difflib.unified_diff(installed, updated, "installed", "updated", lineterm="", n=0)
    ] == []


@pytest.mark.parametrize("old_version", VERSIONS)
def test_a_call_before_the_update_says_what_is_missing(
    shared_superuser: Workbench, old_version: str
) -> None:
    """Whatever function is called, for each of them names a module that is gone."""
    new = shared_superuser.value(
        "SELECT default_version FROM pg_available_extensions WHERE name = 'cerebro_db'"
    )
    with old_script(shared_superuser, old_version):
        shared_superuser.rows("DROP EXTENSION cerebro_db CASCADE")
        shared_superuser.rows(f"CREATE EXTENSION cerebro_db VERSION '{old_version}'")
        calls = [call for (call,) in shared_superuser.rows(PYTHON_CALLS)]
        assert len(calls) > 30
        for call in calls:
            error = refused(shared_superuser, call, code="55000")
            words = (
                f"extension cerebro_db is version {old_version}, its Python package is version "
                f"{new}"
            )
            assert words in str(error), call
            template = (
                "Install version {} of the Python package, and reconnect; or update the extension "
                "as an administrator: ALTER EXTENSION cerebro_db UPDATE; then reconnect."
            )
            (statement,) = read_statements(error, template)
        shared_superuser.rows(statement)


def test_rows_are_kept(old: Old) -> None:
    columns = {table: set(rows[0]) for table, rows in old.there.rows.items()}
    kept = {
        table: [{name: row[name] for name in columns[table]} for row in rows]
        for table, rows in old.here.rows.items()
    }
    assert kept == old.there.rows


def test_an_update_takes_the_right_to_lock_the_log(updated: Old) -> None:
    check_no_lock(updated.owner)
    assert updated.owner.rows(
        "UPDATE cerebro.run_log SET error = error WHERE owner = current_user RETURNING 1"
    )


def check_no_lock(owner: Workbench) -> None:
    for table in (*TABLES, "form_timing"):
        refused(owner, f"DO $$BEGIN LOCK TABLE cerebro.{table} IN ACCESS EXCLUSIVE MODE; END$$")


def test_grants_are_kept(old: Old) -> None:
    """Also before they are made anew: what lacks one is a function that takes other arguments
    now.
    """
    for name in old.there.functions - old.here.functions:
        assert old.administrator.value("SELECT to_regprocedure(%s)", name) is None


def test_what_was_granted_is_in_a_later_dump(
    server: Server, programs: Programs, updated: Old, empty_database: Database, tmp_path: Path
) -> None:
    """An update does not make grants to a role look as if the extension had made them."""
    updated.administrator.rows("SELECT cerebro.grant_usage('cerebro')")
    with empty(server.url, f"release_again_{WORKER}") as database:
        plain(programs, empty_database.superuser_url, database.superuser_url, tmp_path / "dump")
        administrator = Workbench(database.superuser_url)
        again = listing(administrator.connection)
        administrator.close()
    assert [
        *difflib.unified_diff(listing(updated.administrator.connection), again, lineterm="", n=0)
    ] == []


def test_who_may_write_to_the_log_may_not_lock_it(owner: Workbench) -> None:
    check_no_lock(owner)


def test_the_views_show_the_runs(owner: Workbench) -> None:
    assert owner.rows(
        "SELECT run_id, name, status FROM cerebro.run WHERE run_id < %s ORDER BY 1", AVERAGING
    ) == [
        (COMPLETED, "first", "completed"),
        (CANCELLED, None, "cancelled"),
    ]
    board = (
        "SELECT mst_key, epochs, status, metric, value FROM cerebro.leaderboard WHERE run_id = %s "
        "ORDER BY rank"
    )
    info = """SELECT mst_key, 2, 'completed', 'accuracy', validation_metrics_final
              FROM model_info ORDER BY 5 DESC"""
    assert owner.rows(board, COMPLETED) == owner.rows(info)
    assert (
        owner.value("SELECT count(*) FROM cerebro.timeline WHERE run_id = %s", COMPLETED) > VISITS
    )
    assert (
        owner.value("SELECT visits_done FROM cerebro.progress WHERE run_id = %s", COMPLETED)
        == VISITS
    )
    assert (
        owner.value(
            "SELECT count(DISTINCT epoch) FROM cerebro.learning_curve WHERE run_id = %s", COMPLETED
        )
        > 0
    )


def test_what_its_runs_cost_is_unknown(owner: Workbench) -> None:
    query = (
        "SELECT DISTINCT trainer_seconds, backend_seconds, gpu_seconds, unmeasured > 0 FROM "
        "cerebro.cost"
    )
    assert owner.rows(query) == [(None, None, None, True)]
    assert owner.value("SELECT count(*) FROM cerebro.cost WHERE stored_byte_seconds > 0") > 0, (
        "but for its states"
    )


def test_its_model_predicts_and_scores_as_it_did(owner: Workbench) -> None:
    """But for what another processor or framework rounds otherwise."""
    owner.rows("SELECT madlib_predict('model', 'points', 'id', 'x', 'again', mst_key => 1)")
    apart = """SELECT max(abs(a.prob - p.prob)), count(*) FROM again a FULL JOIN predicted p
               ON (a.id, a.class_value) = (p.id, p.class_value)"""
    difference, count = owner.row(apart)
    assert count == owner.value("SELECT count(*) FROM predicted")
    assert difference == pytest.approx(0, abs=1e-5)
    owner.rows("SELECT madlib_evaluate('model', 'packed', 'scored', mst_key => 2)")
    assert owner.row("SELECT loss, metric FROM scored") == pytest.approx(
        owner.row("SELECT loss, metric FROM evaluated")
    )


def test_outputs_can_be_made_again(owner: Workbench) -> None:
    owner.rows("SELECT cerebro.write_outputs(%s, 'rewritten')", COMPLETED)
    assert owner.weights("rewritten") == owner.weights("model")
    states = "SELECT mst_key, part, chunk FROM {} ORDER BY 1, 2"
    assert [bytes(row[2]) for row in owner.rows(states.format(owner.states("rewritten")))] == [
        bytes(row[2]) for row in owner.rows(states.format("model_state"))
    ]


def test_a_run_that_the_old_version_began_goes_on(owner: Workbench) -> None:
    done = "SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND status = 'completed'"
    assert 0 < owner.value(done, CANCELLED) < VISITS
    owner.rows("SELECT cerebro.resume(%s)", CANCELLED)
    assert owner.value("SELECT status FROM cerebro.run WHERE run_id = %s", CANCELLED) == "completed"
    assert owner.value(done, CANCELLED) == VISITS
    assert owner.value("SELECT count(*) FROM rest WHERE model_weights IS NOT NULL") == 2


def test_a_run_of_one_model_goes_on_with_what_it_was_averaged_to(
    old: Old, owner: Workbench
) -> None:
    if old.version == VERSIONS[0]:
        pytest.skip("it knew no madlib_fit")
    averages = (
        "SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND status = 'completed' AND kind = "
        "'average'"
    )
    assert owner.value(averages, AVERAGING) == 1
    owner.rows("SELECT cerebro.resume(%s)", AVERAGING)
    assert owner.value(averages, AVERAGING) == 2
    assert owner.value("SELECT status FROM cerebro.run WHERE run_id = %s", AVERAGING) == "completed"
    assert owner.value("SELECT model_weights IS NOT NULL FROM averaged")


def test_who_was_granted_predictions_has_them_still(old: Old, owner: Workbench) -> None:
    if old.version == VERSIONS[0]:
        pytest.skip("it knew no grant_predict")
    role = f"guest_{WORKER}"
    with another_role(owner, old.administrator, role) as guest:
        own_schema(old.administrator, role)
        old.administrator.rows(f"GRANT pg_monitor TO {role}")
        refused(guest, "SELECT model_weights FROM model")
        owner.rows(f"GRANT SELECT ON points TO {role}")
        guest.rows(
            f"SELECT madlib_predict('model', 'points', 'id', 'x', '{role}.foretold', mst_key => 1)"
        )
        assert guest.value(f"SELECT count(*) FROM {role}.foretold") == owner.value(
            "SELECT count(*) FROM predicted"
        )


def test_training_goes_on_from_an_old_model(owner: Workbench) -> None:
    run = owner.fit("packed", "model", "two", 1, warm_start=True)
    assert run > CANCELLED
    assert (
        owner.value(
            "SELECT count(*) FROM cerebro.leaderboard WHERE run_id = %s AND status = 'completed'",
            run,
        )
        == 2
    )


def test_an_old_run_can_be_dropped(owner: Workbench) -> None:
    owner.rows("SELECT cerebro.drop_run(%s)", COMPLETED)
    assert not owner.rows("SELECT FROM cerebro.visit WHERE run_id = %s", COMPLETED)
    assert not owner.rows("SELECT FROM pg_class WHERE relname LIKE 'r1\\_%' AND relkind = 'r'")
