"""What befalls a run when it has trained, or its owner meanwhile: the run has the reason, keeps its
data, goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import psycopg2
import pytest
from processes import eventually
from roles import another_role, own_schema, session_of
from workbench import Workbench

GUESTS = """
    CREATE TABLE public.guests AS
    SELECT n AS id, n * 7919 % 97 AS age, (ARRAY['a', 'b', 'c'])[n % 3 + 1] AS place,
        n * 7919 % 97 > 40 AS stays
    FROM generate_series(1, 300) n;
    GRANT SELECT ON public.guests TO PUBLIC"""
ARGUMENTS = {
    "source": "public.guests", "target": "stays", "models": ["linear"], "configs": 1, "seed": 1,
    "ensemble": 1,
    "workers": 1, "budget": "1 hour",
}  # fmt: skip
ENDLESS = 20_000
"""Epochs that take longer than any watcher needs to act: some 4 ms each."""
REFUSED = (
    "ALTER TABLE cerebro.version_log ADD CONSTRAINT refused CHECK (model NOT LIKE 'refused%') NOT "
    "VALID"
)
TAKEN = "ALTER TABLE cerebro.version_log DROP CONSTRAINT IF EXISTS refused"
STATUS = "SELECT status FROM cerebro.run WHERE run_id = %s"
STATE = "SELECT status, error, ended_at IS NULL FROM cerebro.run_log WHERE run_id = %s"
PACKED = """
    SELECT count(*) FROM pg_class WHERE relnamespace = 'cerebro_state'::regnamespace
        AND relkind = 'r'
    AND relname IN (format('r%%s_training', %s::bigint), format('r%%s_validation', %s::bigint))"""
SHORTENED = "SELECT status FROM cerebro.act WHERE run_id = %s AND action = 'set_epochs'"
EVALUATED = "SELECT count(*) FROM cerebro.metric WHERE run_id = %s AND dataset = 'validation'"
VISITS = "SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND status = 'completed'"


@pytest.fixture(scope="module", autouse=True)
def guests(bench: Workbench) -> None:
    bench.rows(GUESTS)


def train(session: Workbench, model: str, epochs: int, *, background: bool, **more: object) -> None:
    """Train, and wait for the end; an error of a run in the background is not raised."""
    arguments = {**ARGUMENTS, "model": model, "epochs": epochs, **more}
    if background:
        run = session.value("SELECT cerebro.submit('train', %s::jsonb)", json.dumps(arguments))
        session.value("SELECT cerebro.wait(%s)", run)
        return
    named = ", ".join(f"{name} => %s" for name in arguments)
    session.rows(f"SELECT * FROM cerebro.train({named})", *arguments.values())


def begun(watcher: Workbench, before: int) -> int:
    """The run that has begun since."""
    return eventually(lambda: newest if (newest := watcher.newest_run()) > before else 0)


def pause(watcher: Workbench, run: int) -> None:
    """Let a run stand still."""
    watcher.rows("SELECT cerebro.pause_run(%s)", run)
    eventually(lambda: watcher.row(STATE, run)[0] == "paused")


def shorten(watcher: Workbench, run: int) -> None:
    """Let a run train no more than the epoch that it is at."""
    eventually(lambda: watcher.value(STATUS, run) in ("running", "paused"))
    watcher.rows("SELECT cerebro.set_epochs(%s, 1)", run)
    eventually(lambda: watcher.value(SHORTENED, run) == "done")


@contextmanager
def storing_when_paused(superuser: Workbench, run: int) -> Iterator[None]:
    """Pause a run, whose last state waits to be stored between the statements of a transaction."""
    tables = ", ".join(f"cerebro_state.r{run}_c1_{slot}" for slot in "ab")
    waits_or_ended = """
        SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
                       WHERE NOT l.granted AND c.relname ~ format('^r%%s_c1_', %s::bigint))
            OR NOT EXISTS (SELECT FROM cerebro.visit WHERE run_id = %s AND status = 'running')"""
    with closing(superuser.another()) as reader:
        reader.rows("BEGIN")
        reader.rows(f"LOCK TABLE {tables} IN SHARE MODE")
        pause(superuser, run)
        eventually(lambda: superuser.value(waits_or_ended, run, run))
        yield


@contextmanager
def in_the_midst(
    bench: Workbench,
    watcher: Workbench,
    model: str,
    *,
    background: bool,
    fails: bool = False,
    **more: object,
) -> Iterator[int]:
    """A run that stands still, and at the end of the block is trained to its end; whether it is
    called and `fails`.
    """
    before = watcher.last_run_id()
    with bench.calling(
        lambda: train(bench, model, ENDLESS, background=background, **more)
    ) as trained:
        run = begun(watcher, before)
        pause(
            watcher, run
        )  # at once: later it would have to come to the end of what it trains together
        shorten(watcher, run)
        yield run
        watcher.rows("SELECT cerebro.continue_run(%s)", run)
        error = trained.exception()
        assert (fails and not background) == (error is not None), error


@pytest.mark.long_for(background=True)
@pytest.mark.parametrize("background", [False, True], ids=["called", "submitted"])
def test_what_fails_after_training_stands_in_the_run(
    bench: Workbench, shared_superuser: Workbench, background: bool
) -> None:
    """The version that it has come to cannot be stored; resumed, the run makes it."""
    model = f"refused_{background}"
    try:
        with (
            closing(bench.another()) as watcher,
            in_the_midst(bench, watcher, model, background=background, fails=True) as run,
        ):
            shared_superuser.rows(f"SET lock_timeout = '20s'; {REFUSED}")
        status, error, open_ended = bench.row(STATE, run)
        assert (status, open_ended) == ("failed", False) and "refused" in error
        ((ended, why),) = bench.rows(
            "SELECT status, reason FROM cerebro.config WHERE run_id = %s", run
        )
        assert ended == "completed" or (ended == "stopped" and why), (
            "what the run has trained is over"
        )
        visits = bench.value(VISITS, run)
    finally:
        shared_superuser.rows(TAKEN)
    bench.rows("SELECT cerebro.resume(%s, background => %s)", run, background)
    assert bench.value("SELECT cerebro.wait(%s)", run) == "completed"
    assert (
        bench.row(STATE, run) == ("completed", None, False) and bench.value(VISITS, run) == visits
    )
    assert bench.row(
        "SELECT version, run_id FROM cerebro.model_version WHERE model = %s", model
    ) == (1, run)
    bench.rows("SELECT cerebro.drop_model(%s)", model)


def test_a_cancel_after_training_cancels_the_run(
    bench: Workbench, shared_superuser: Workbench
) -> None:
    """It waits to store its version; resumed, it makes that."""
    waiting = (
        "SELECT FROM pg_locks WHERE relation = 'cerebro.version_log'::regclass AND NOT granted"
    )
    with closing(bench.another()) as watcher:
        before = watcher.last_run_id()
        with (
            shared_superuser.connection.cursor() as cursor,
            bench.calling(lambda: train(bench, "cancelled", 1, background=True)) as trained,
        ):
            cursor.execute("BEGIN; LOCK TABLE cerebro.version_log IN SHARE MODE")
            try:
                run = begun(watcher, before)
                eventually(lambda: watcher.rows(waiting))
                assert watcher.value("SELECT cerebro.cancel(%s)", run)
                trained.result()
            finally:
                cursor.execute("ROLLBACK")
    status, error, open_ended = bench.row(STATE, run)
    assert (status, open_ended) == ("cancelled", False) and "cancel" in error
    bench.rows("SELECT cerebro.resume(%s)", run)
    assert bench.row(STATE, run) == ("completed", None, False)
    bench.rows("SELECT cerebro.drop_model('cancelled')")


CHANGES = {
    "dropped": "DROP TABLE public.guests",
    "swapped": f"DROP TABLE public.guests; {GUESTS.replace('300', '200')}",
    "without a column": "ALTER TABLE public.guests RENAME TO older; CREATE TABLE public.guests AS "
    "SELECT id, age, stays FROM older; DROP TABLE older",
    "filled anew": "BEGIN; TRUNCATE public.guests; INSERT INTO public.guests SELECT n, -n, 'd', n "
    "% 2 = 0 FROM generate_series(1001, 1100) n; COMMIT",
    "of another type": "ALTER TABLE public.guests ALTER place TYPE integer USING ascii(place)",
}


@pytest.mark.long_for(change=("swapped", "without a column", "filled anew"))
@pytest.mark.parametrize("change", CHANGES)
def test_a_source_that_changes_while_its_model_is_trained_costs_nothing(
    bench: Workbench, guests_again: None, change: str
) -> None:
    """The version has all that is computed of rows that are held back, by those that were
    packed.
    """
    arguments: dict[str, Any] = {"target": "age", "ensemble": 3, "configs": 2}
    with (
        closing(bench.another()) as watcher,
        in_the_midst(bench, watcher, "changed", background=False, **arguments) as run,
    ):
        watcher.rows(f"SET lock_timeout = '20s'; {CHANGES[change]}")
    assert bench.row(STATE, run) == ("completed", None, False)
    found = bench.row(
        "SELECT version, deployed, value, margin, importance FROM cerebro.version_log"
        " JOIN cerebro.model_log USING (owner, model) WHERE model = 'changed'"
    )
    version, deployed, value, margin, importance = found
    logged = bench.value("SELECT min(validation) FROM cerebro.leaderboard WHERE run_id = %s", run)
    assert version == deployed == 1 and 0 < value <= logged * (1 + 1e-5) and margin > 0
    assert len([number for number in importance if number is not None]) == 2, (
        "of two columns that are inputs"
    )


@pytest.fixture
def guests_again(bench: Workbench) -> Iterator[None]:
    """The table as it was, afterwards, and no model of these tests."""
    yield
    bench.rows(f"DROP TABLE IF EXISTS public.guests; {GUESTS}")
    bench.rows("SELECT cerebro.drop_model(model) FROM cerebro.model WHERE model = 'changed'")


def test_a_version_is_compared_over_rows_whose_source_is_gone(
    bench: Workbench, guests_again: None
) -> None:
    """The one before takes them by a recipe of its own, by which they were packed as well."""
    good = (
        "models => '{linear}', configs => 1, epochs => 20, space => '{\"lr\": 0.1, "
        '"batch_size": 16}\', workers => 1'
    )
    bench.rows(
        f"SELECT * FROM cerebro.train('guests', 'stays', 'changed', {good}, seed => 2, ensemble => "
        "1)"
    )
    bench.rows("INSERT INTO public.guests SELECT n, n, 'd', true FROM generate_series(301, 330) n")
    bench.messages()
    with (
        closing(bench.another()) as watcher,
        in_the_midst(bench, watcher, "changed", background=False) as run,
    ):
        tables = [f"cerebro_state.r{run}_{name}" for name in ("compared", "compared_summary")]
        assert watcher.exists(*tables)
        watcher.rows("SET lock_timeout = '20s'; DROP TABLE public.guests")
    assert "is not better than version 1, which keeps predicting" in "".join(bench.messages())
    assert bench.value("SELECT count(*) FROM cerebro.model_version WHERE model = 'changed'") == 2
    bench.rows("SELECT cerebro.drop_model('changed')")
    assert not any(bench.exists(name) for name in tables)


@pytest.mark.long
def test_a_version_that_is_deployed_meanwhile_goes_on_to_predict(
    bench: Workbench, guests_again: None
) -> None:
    """The rows were packed for the one before; by the recipe of this one they were not."""
    for version in (1, 2):
        train(bench, "changed", 1, background=False)
        bench.rows(
            "INSERT INTO public.guests SELECT n, n * %s, 'd', true FROM generate_series(301, 330) "
            "n",
            version,
        )
    bench.rows("SELECT cerebro.deploy('changed', '1')")
    bench.messages()
    with (
        closing(bench.another()) as watcher,
        in_the_midst(bench, watcher, "changed", background=False) as run,
    ):
        watcher.rows("SELECT cerebro.deploy('changed', '2')")
    assert f"keeps predicting: it was deployed while run {run} was under way" in "".join(
        bench.messages()
    )
    assert bench.row("SELECT version, versions FROM cerebro.model WHERE model = 'changed'") == (
        2,
        3,
    )


def test_what_cannot_be_computed_without_packed_rows_is_null(
    bench: Workbench, guests_again: None
) -> None:
    """The trainer has them; whoever removes the tables meanwhile costs the run what is computed
    after it.
    """
    with closing(bench.another()) as watcher:
        before = watcher.last_run_id()
        with bench.calling(
            lambda: train(bench, "changed", ENDLESS, background=False, target="age")
        ) as trained:
            run = begun(watcher, before)
            eventually(lambda: watcher.value(EVALUATED, run))
            shorten(watcher, run)
            watcher.rows(
                f"DROP TABLE cerebro_state.r{run}_validation, "
                f"cerebro_state.r{run}_validation_summary"
            )
            trained.result()
    assert f"the packed rows of run {run} were removed" in "".join(bench.messages())
    found = bench.row(
        "SELECT v.value > 0, v.margin, v.importance FROM cerebro.version_log v WHERE v.model = "
        "'changed'"
    )
    assert found == (True, None, None)


@pytest.mark.long_for(moment=("is paused", "stores when paused"))
@pytest.mark.parametrize("moment", ["trains", "is paused", "stores when paused"])
def test_a_run_whose_owner_is_renamed_keeps_its_data(
    bench: Workbench, shared_superuser: Workbench, moment: str
) -> None:
    """It is not found under the new name; that does not say that it is gone."""
    before = shared_superuser.last_run_id()
    with another_role(bench, shared_superuser, "leaving") as session:
        own_schema(shared_superuser, "leaving")
        try:
            with session.calling(
                lambda: train(session, "kept", ENDLESS, background=False)
            ) as trained:
                run = begun(shared_superuser, before)
                eventually(lambda: shared_superuser.value(VISITS, run))
                with ExitStack() as stack:
                    if moment == "is paused":
                        pause(shared_superuser, run)
                    if moment == "stores when paused":
                        stack.enter_context(storing_when_paused(shared_superuser, run))
                    shared_superuser.rows("ALTER ROLE leaving RENAME TO gone")
                error = trained.exception()
            assert (
                isinstance(error, psycopg2.Error)
                and error.pgcode == "55000"
                and "'leaving'" in str(error)
            ), error
            assert shared_superuser.value(PACKED, run, run) == 2
            with closing(session_of(bench, "gone")) as renamed:
                assert renamed.value("SELECT cerebro.vacuum_runs('0')") == 0, (
                    "nor is it gone for who tidies up"
                )
                assert shared_superuser.value(PACKED, run, run) == 2
        finally:
            shared_superuser.rows(
                "DO $$BEGIN ALTER ROLE gone RENAME TO leaving; EXCEPTION WHEN undefined_object "
                "THEN END$$"
            )
        with session.calling(lambda: session.rows("SELECT cerebro.resume(%s)", run)) as resumed:
            shorten(shared_superuser, run)
            resumed.result()
        assert session.row(STATE, run) == ("completed", None, False)
        assert session.value("SELECT run_id FROM cerebro.model_version WHERE model = 'kept'") == run
        session.rows("SELECT cerebro.drop_model('kept')")
        session.rows("SELECT cerebro.vacuum_runs('0')")
        assert shared_superuser.value(PACKED, run, run) == 0
    shared_superuser.rows("DROP SCHEMA IF EXISTS leaving")
