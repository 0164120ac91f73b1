"""What befalls a run when it has trained, or its owner meanwhile: the run has the reason, keeps its data, goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg2
import pytest
from processes import eventually
from roles import another_role, own_schema, session_of
from workbench import Workbench

GUESTS = """
    CREATE TABLE public.guests AS
    SELECT n AS id, n * 7919 % 97 AS age, (ARRAY['a', 'b', 'c'])[n % 3 + 1] AS place, n * 7919 % 97 > 40 AS stays
    FROM generate_series(1, 300) n;
    GRANT SELECT ON public.guests TO PUBLIC"""
ARGUMENTS = {
    "source": "public.guests", "target": "stays", "models": ["linear"], "configs": 1, "seed": 1, "ensemble": 1,
    "workers": 1, "budget": "1 hour",
}  # fmt: skip
RENAMED = "ALTER TABLE public.guests RENAME TO visitors"
BACK = "ALTER TABLE IF EXISTS public.visitors RENAME TO guests"
STATUS = "SELECT status FROM cerebro.run WHERE run_id = %s"
STATE = "SELECT status, error, ended_at IS NULL FROM cerebro.run_log WHERE run_id = %s"
PACKED = """
    SELECT count(*) FROM pg_class WHERE relnamespace = 'cerebro_state'::regnamespace AND relkind = 'r'
    AND relname IN (format('r%%s_training', %s::bigint), format('r%%s_validation', %s::bigint))"""
SHORTENED = "SELECT status FROM cerebro.act WHERE run_id = %s AND action = 'set_epochs'"
VISITS = "SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND status = 'completed'"


@pytest.fixture(scope="module", autouse=True)
def guests(bench: Workbench) -> None:
    bench.rows(GUESTS)


def train(session: Workbench, model: str, epochs: int, *, background: bool) -> None:
    """Train, and wait for the end; an error of a run in the background is not raised."""
    arguments = {**ARGUMENTS, "model": model, "epochs": epochs}
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
def in_the_midst(bench: Workbench, watcher: Workbench, model: str, *, background: bool) -> Iterator[int]:
    """A run that stands still, and at the end of the block is trained to its end."""
    before = watcher.newest_run()
    with bench.calling(lambda: train(bench, model, 1_000, background=background)) as trained:
        run = begun(watcher, before)
        pause(watcher, run)  # at once: later it would have to come to the end of what it trains together
        shorten(watcher, run)
        yield run
        watcher.rows("SELECT cerebro.continue_run(%s)", run)
        error = trained.exception()
        assert background == (error is None), error


@pytest.mark.long_for(background=True)
@pytest.mark.parametrize("background", [False, True], ids=["called", "submitted"])
def test_what_fails_after_training_stands_in_the_run(
    bench: Workbench, shared_superuser: Workbench, background: bool
) -> None:
    """The source is renamed while the run trains, and is needed to compare what it has trained."""
    model = f"renamed_{background}"
    try:
        with closing(bench.another()) as watcher, in_the_midst(bench, watcher, model, background=background) as run:
            shared_superuser.rows(f"SET lock_timeout = '20s'; {RENAMED}")
        status, error, open_ended = bench.row(STATE, run)
        assert (status, open_ended) == ("failed", False) and "guests" in error
        ((ended, why),) = bench.rows("SELECT status, reason FROM cerebro.config WHERE run_id = %s", run)
        assert ended == "completed" or (ended == "stopped" and why), "what the run has trained is over"
        visits = bench.value(VISITS, run)
    finally:
        shared_superuser.rows(BACK)
    bench.rows("SELECT cerebro.resume(%s, background => %s)", run, background)
    assert bench.value("SELECT cerebro.wait(%s)", run) == "completed"
    assert bench.row(STATE, run) == ("completed", None, False) and bench.value(VISITS, run) == visits
    assert bench.row("SELECT version, run_id FROM cerebro.model_version WHERE model = %s", model) == (1, run)
    bench.rows("SELECT cerebro.drop_model(%s)", model)


@pytest.mark.long_for(paused=True)
@pytest.mark.parametrize("paused", [False, True], ids=["trains", "is paused"])
def test_a_run_whose_owner_is_renamed_keeps_its_data(
    bench: Workbench, shared_superuser: Workbench, paused: bool
) -> None:
    """It is not found under the new name; that does not say that it is gone."""
    before = shared_superuser.newest_run()
    with another_role(bench, shared_superuser, "leaving") as session:
        own_schema(shared_superuser, "leaving")
        try:
            with session.calling(lambda: train(session, "kept", 1_000, background=False)) as trained:
                run = begun(shared_superuser, before)
                eventually(lambda: shared_superuser.value(VISITS, run))
                if paused:
                    pause(shared_superuser, run)
                shared_superuser.rows("ALTER ROLE leaving RENAME TO gone")
                error = trained.exception()
            assert isinstance(error, psycopg2.Error) and error.pgcode == "55000" and "'leaving'" in str(error), error
            assert shared_superuser.value(PACKED, run, run) == 2
            with closing(session_of(bench, "gone")) as renamed:
                assert renamed.value("SELECT cerebro.vacuum_runs('0')") == 0, "nor is it gone for who tidies up"
                assert shared_superuser.value(PACKED, run, run) == 2
        finally:
            shared_superuser.rows(
                "DO $$BEGIN ALTER ROLE gone RENAME TO leaving; EXCEPTION WHEN undefined_object THEN END$$"
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
