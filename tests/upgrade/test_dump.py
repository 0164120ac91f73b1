"""A database with runs and models goes through pg_dump and is all there: to be read, predicted
from, trained on.

The copy is in the same server, beside the original.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import psycopg2
import pytest
from dumps import VISITS, Programs, custom, empty, errors, fill, plain, repeated
from listing import listing
from models import CLASSES
from processes import eventually
from roles import session_of
from servers import Address, Database
from versions import copy_state, deploy
from workbench import Row, Workbench, compile_text, opened, several

from cerebro_plpy.preprocessing.kinds.number import Number
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.values.scale import Scale

FIT_WORKERS = 1
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")
OTHER = f"other_{WORKER}"
VIEWS = {
    "run": "run_id", "config": "run_id, mst_key", "leaderboard": "run_id, rank",
    "progress": "run_id",
    "timeline": "run_id, kind, started_at, mst_key",
    "learning_curve": "run_id, mst_key, epoch, dataset, name",
}  # fmt: skip


class Runs(NamedTuple):
    """The runs of the original: one that is completed, one that was cancelled, one of another
    role's.
    """

    completed: int
    cancelled: int
    others: int


@pytest.fixture(scope="module")
def runs(bench: Workbench, shared_superuser: Workbench) -> Iterator[Runs]:
    """What the original database holds."""
    completed, cancelled = fill(bench)
    shared_superuser.rows(f"CREATE ROLE {OTHER} LOGIN")
    shared_superuser.rows(f"SELECT cerebro.grant_usage('{OTHER}')")
    shared_superuser.rows(
        f"GRANT CREATE ON SCHEMA public TO {OTHER}; GRANT SELECT ON points TO {OTHER}"
    )
    if not bench.greenplum:
        bench.rows(f"SELECT cerebro.grant_predict('model', '{OTHER}')")
        name_model(bench, completed)
        bench.rows("SELECT cerebro.register('registered', 'model', 2)")
        bench.rows(f"SELECT cerebro.grant_predict('named', '{OTHER}')")
    shared_superuser.rows(
        "INSERT INTO cerebro.form_timing (owner, machine, program, batch_size, threads, form, "
        f"compile_seconds) VALUES ('{OTHER}', 'm', 'p', 1, 1, 'f', 1)"
    )
    insert = """INSERT INTO cerebro.run_log (name, owner, status, spec, pid, epochs, segments)
                VALUES ('theirs', %s, 'completed', '{}', 1, 1, '{0}') RETURNING run_id"""
    others = shared_superuser.value(insert, OTHER)
    shared_superuser.rows(f"CREATE TABLE cerebro_state.r{others}_c1_a (part integer)")
    shared_superuser.rows(f"ALTER TABLE cerebro_state.r{others}_c1_a OWNER TO {OTHER}")
    yield Runs(completed, cancelled, others)
    shared_superuser.rows(f"DROP OWNED BY {OTHER}; DROP ROLE {OTHER}")


def name_model(bench: Workbench, run_id: int) -> None:
    """Make the first model of a run one by name, over the numbers of the points as columns."""
    bench.rows(
        "CREATE VIEW columns AS SELECT id, x[1] AS a, x[2] AS b, x[3] AS c, x[4] AS d, label FROM "
        "points"
    )
    bench.rows(f"GRANT SELECT ON columns TO {OTHER}")
    recipe = Recipe(tuple(Number(name, "real", Scale(0.0, 1.0), missing=False) for name in "abcd"))
    copy_state(bench, "model", run_id)
    deploy(
        bench, "named", 1, run_id=run_id, source="columns", target="label", recipe=recipe,
        classes=("high", "low", "middle"), architecture=CLASSES, compiled=compile_text(),
        margin=None,
        template="realmlp", share=0.25,
    )  # fmt: skip
    columns = """owner, model, version, group_value, run_id, mst_key, template, params,
                 architecture, compile_params, backend, state_bytes"""
    bench.rows(
        f"INSERT INTO cerebro.member_log ({columns}, position, share) SELECT {columns}, 2, 0.75 "
        "FROM cerebro.member_log WHERE model = 'named'"
    )


class Copy(NamedTuple):
    """A restored database: a session of the owner of the runs, and one of the superuser."""

    owner: Workbench
    administrator: Workbench


Way = Callable[[Programs, str, str, Path], None]


@pytest.fixture(scope="module")
def programs(shared_superuser: Workbench) -> Programs:
    return Programs(shared_superuser)


@pytest.fixture(scope="module", params=[plain, pytest.param(custom, marks=pytest.mark.long)])
def copy(
    request: pytest.FixtureRequest,
    address: Address,
    programs: Programs,
    shared_database: Database,
    runs: Runs,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Copy]:
    """The copy that each way of dumping and restoring makes."""
    with empty(address, f"copy_{WORKER}") as database:
        way: Way = request.param
        way(
            programs,
            shared_database.superuser_url,
            database.superuser_url,
            tmp_path_factory.mktemp("dump") / "file",
        )
        made = Copy(Workbench(database.url), Workbench(database.superuser_url))
        yield made
        for session in made:
            session.close()


def test_the_extension_is_the_same(copy: Copy, shared_superuser: Workbench) -> None:
    """With all grants and policies."""
    assert listing(copy.administrator.connection) == listing(shared_superuser.connection)


def test_tables_are_restored_in_any_order(shared_superuser: Workbench) -> None:
    """As several jobs of pg_restore fill them, which do not know of foreign keys between an
    extension's tables.
    """
    tables = """SELECT conrelid::regclass FROM pg_constraint
                WHERE contype = 'f' AND connamespace IN ('cerebro'::regnamespace,
                    'cerebro_optuna'::regnamespace)"""
    assert shared_superuser.rows(tables) == []


@pytest.mark.parametrize("view", VIEWS)
def test_the_views_show_the_same(bench: Workbench, copy: Copy, runs: Runs, view: str) -> None:
    query = f"SELECT v.* FROM cerebro.{view} v WHERE run_id <= %s ORDER BY {VIEWS[view]}"
    shown = bench.rows(query, runs.cancelled)
    assert shown
    assert copy.owner.rows(query, runs.cancelled) == shown


def test_what_is_measured_of_a_machine_stays_there(copy: Copy) -> None:
    assert copy.administrator.rows("SELECT FROM cerebro.form_timing") == []


def test_each_role_still_sees_its_own_runs_alone(copy: Copy, runs: Runs) -> None:
    for source in ("cerebro.run", "cerebro.run_log"):
        assert copy.owner.rows(f"SELECT run_id FROM {source} ORDER BY 1") == [
            (runs.completed,),
            (runs.cancelled,),
        ]
    theirs = session_of(copy.owner, OTHER)
    assert theirs.rows("SELECT run_id, name FROM cerebro.run") == [(runs.others, "theirs")]
    (state,) = copy.owner.row(
        "SELECT state_tables[1] FROM cerebro.config WHERE (run_id, mst_key) = (%s, 1)",
        runs.completed,
    )
    with pytest.raises(psycopg2.errors.InsufficientPrivilege):
        theirs.rows(f"SELECT FROM {state}")
    theirs.close()


def test_the_model_predicts_and_scores_the_same(copy: Copy) -> None:
    copy.owner.rows("SELECT madlib_predict('model', 'points', 'id', 'x', 'again', mst_key => 1)")
    assert differing(copy.owner, "again", "predicted") == []
    copy.owner.rows("SELECT madlib_evaluate('model', 'packed', 'scored', mst_key => 2)")
    assert differing(copy.owner, "scored", "evaluated") == []


@pytest.mark.postgresql("on Greenplum nobody can predict with a model table without reading it")
def test_who_was_granted_predictions_has_them_still(copy: Copy) -> None:
    theirs = session_of(copy.owner, OTHER)
    with pytest.raises(psycopg2.errors.InsufficientPrivilege):
        theirs.rows("SELECT model_weights FROM model")
    theirs.rows("SELECT madlib_predict('model', 'points', 'id', 'x', 'told', mst_key => 1)")
    assert differing(copy.administrator, "told", "predicted") == []
    theirs.close()


@pytest.mark.postgresql("on Greenplum no model by name is dumped here")
def test_what_is_known_of_models_by_name_is_known_still(copy: Copy, bench: Workbench) -> None:
    for view in ("model", "model_version", "model_member", "feature"):
        query = f"SELECT to_jsonb(v) FROM cerebro.{view} v ORDER BY 1"
        shown = bench.rows(query)
        assert shown and copy.owner.rows(query) == shown
    assert {value for (value,) in copy.owner.rows("SELECT importance FROM cerebro.feature")} == {
        0.5,
        None,
    }
    registered = "SELECT * FROM cerebro.predict('registered', 'points', 'id') ORDER BY id::integer"
    assert copy.owner.rows(registered) == bench.rows(registered)


@pytest.mark.long
@pytest.mark.postgresql("on Greenplum no model by name is dumped here")
def test_models_by_name_predict_for_who_was_granted_them(copy: Copy, bench: Workbench) -> None:
    predicted = (
        "SELECT * FROM cerebro.predict('named', 'columns', 'id', owner => 'cerebro') ORDER BY "
        "id::integer"
    )
    theirs, told = session_of(copy.owner, OTHER), bench.rows(predicted)
    assert len({row[1] for row in told}) > 1
    assert theirs.rows(predicted) == copy.owner.rows(predicted) == told
    theirs.close()
    copy.owner.rows(f"SELECT cerebro.revoke_predict('named', '{OTHER}')")


def test_settings_of_another_version_are_left_out(
    address: Address, programs: Programs, shared_superuser: Workbench, tmp_path: Path
) -> None:
    """The others are restored, without an error."""
    with empty(address, f"settings_{WORKER}") as database, opened(database.superuser_url) as source:
        source.rows("CREATE EXTENSION cerebro_db CASCADE; SELECT cerebro.set('spare_cores', 1)")
        source.rows("ALTER TABLE cerebro.setting DISABLE TRIGGER check_setting")
        source.rows("INSERT INTO cerebro.setting VALUES ('function_path', '/nowhere')")
        file = str(tmp_path / "dump")
        programs.done("pg_dump", "--format", "custom", "--file", file, database.superuser_url)
        source.rows("DROP EXTENSION cerebro_db CASCADE")
        told = programs.run("pg_restore", "--dbname", database.superuser_url, file)
        assert errors(told) == repeated(source)
        assert source.rows("SELECT * FROM cerebro.setting") == [("spare_cores", "1")]


def test_outputs_can_be_made_again(copy: Copy, runs: Runs) -> None:
    copy.owner.rows("SELECT cerebro.write_outputs(%s, 'rewritten')", runs.completed)
    assert differing(copy.owner, copy.owner.states("rewritten"), copy.owner.states("model")) == []
    assert copy.owner.weights("rewritten") == copy.owner.weights("model")


@pytest.mark.long
def test_a_cancelled_run_goes_on(copy: Copy, runs: Runs) -> None:
    """To which bits is shown in `tests/chaos`."""
    finished = "SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND status = 'completed'"
    assert 0 < copy.owner.value(finished, runs.cancelled) < VISITS
    copy.owner.rows("SELECT cerebro.resume(%s)", runs.cancelled)
    assert copy.owner.value(finished, runs.cancelled) == VISITS
    assert copy.owner.value("SELECT count(model_weights) FROM rest") == 2


def test_new_runs_have_new_numbers(copy: Copy, runs: Runs) -> None:
    run = copy.owner.fit("packed", "newest", "two", 1)
    assert run > runs.others
    copy.owner.rows("SELECT cerebro.drop_run(%s)", run)


def differing(session: Workbench, one: str, other: str) -> list[Row]:
    """Rows that only one of two tables has."""
    pairs = (one, other), (other, one)
    query = " UNION ALL ".join(
        f"(SELECT to_jsonb(t) FROM {a} t EXCEPT ALL SELECT to_jsonb(t) FROM {b} t)"
        for a, b in pairs
    )
    return session.rows(query)


@pytest.fixture
def under_way(bench: Workbench, runs: Runs) -> Iterator[int]:
    """A run that goes on until the test ends."""
    bench.configure("endless", several(2), ["batch_size=1,epochs=20"])
    session, before = bench.another(), bench.newest_run()
    with session.fitting("packed", "never", "endless", 100_000) as fitted:
        try:
            eventually(
                lambda: bench.rows(
                    "SELECT FROM cerebro.visit WHERE run_id > %s AND visit_no > 1", before
                )
            )
            yield bench.newest_run()
        finally:
            bench.rows("SELECT pg_cancel_backend(%s)", session.pid())
        with pytest.raises(psycopg2.errors.QueryCanceled):
            fitted.result()
    session.close()


@pytest.mark.long
def test_a_copy_of_a_run_under_way_leaves_the_original_alone(
    address: Address,
    programs: Programs,
    shared_database: Database,
    bench: Workbench,
    under_way: int,
    tmp_path: Path,
) -> None:
    """In the copy the run is interrupted, and goes on there; workers of the original are none of
    its own.
    """
    with empty(address, f"live_{WORKER}") as database:
        plain(programs, shared_database.superuser_url, database.superuser_url, tmp_path / "dump")
        copy, watcher = Workbench(database.url), Workbench(database.url)
        assert (
            copy.value("SELECT status FROM cerebro.run WHERE run_id = %s", under_way)
            == "interrupted"
        )
        assert copy.rows(
            "SELECT FROM cerebro.visit WHERE run_id = %s AND status = 'running'", under_way
        )
        resume_until_a_visit_is_made(copy, watcher, under_way)
        for session in (copy, watcher):
            session.close()
    assert (
        bench.rows(
            "SELECT error FROM cerebro.visit WHERE run_id = %s AND status = 'failed'", under_way
        )
        == []
    )


def resume_until_a_visit_is_made(session: Workbench, watcher: Workbench, run: int) -> None:
    finished = "SELECT max(visit_no) FROM cerebro.visit WHERE run_id = %s AND status = 'completed'"
    before = watcher.value(finished, run)
    with session.calling(lambda: session.rows("SELECT cerebro.resume(%s)", run)) as resumed:
        eventually(lambda: watcher.value(finished, run) > before or resumed.done())
        watcher.rows("SELECT pg_cancel_backend(%s)", session.pid())
        with pytest.raises(psycopg2.errors.QueryCanceled):
            resumed.result()


def test_a_role_dumps_what_is_its_own(
    address: Address, programs: Programs, bench: Workbench, runs: Runs, tmp_path: Path
) -> None:
    """Row security leaves out the rest; whoever restores is a superuser, for the extension."""
    with empty(address, f"own_{WORKER}") as database:
        without = ("--exclude-table", rf"cerebro_state.r{runs.others}\_*")
        programs.done(
            "pg_dump",
            "--enable-row-security",
            *without,
            "--file",
            str(tmp_path / "dump"),
            bench.url,
        )
        told = programs.run_script(tmp_path / "dump", database.superuser_url)
        with opened(database.superuser_url) as administrator, opened(database.url) as owner:
            assert told == repeated(administrator)
            assert (
                administrator.rows("SELECT run_id FROM cerebro.run_log WHERE name = 'theirs'") == []
            )
            administrator.rows("SELECT cerebro.grant_usage('cerebro')")
            owner.rows("SELECT madlib_predict('model', 'points', 'id', 'x', 'again', mst_key => 1)")
            assert differing(owner, "again", "predicted") == []
