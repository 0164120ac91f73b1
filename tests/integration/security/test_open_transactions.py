"""Nothing that a role calls in a transaction which it leaves open holds up others: the law for all
functions that the catalog has, with a run of its own, one of another role, and one that does not
exist."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import psycopg2
import pytest
from processes import eventually
from roles import another_role
from workbench import Workbench

pytestmark = pytest.mark.postgresql("row security asks functions of each segment there")
FUNCTIONS = """
SELECT p.oid::regproc::text, coalesce(p.proargnames[1:p.pronargs], '{}'),
       ARRAY(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY a (t, i)
           ORDER BY i),
       p.prosecdef, p.prosrc
FROM pg_depend d JOIN pg_proc p ON p.oid = d.objid
WHERE d.classid = 'pg_proc'::regclass AND d.deptype = 'e' AND p.prokind = 'f'
  AND d.refobjid = (SELECT e.oid FROM pg_extension e WHERE e.extname = 'cerebro_db')
  AND (SELECT has_function_privilege('locks_eve', p.oid, 'EXECUTE'))
ORDER BY p.oid::regprocedure::text"""
LOCKS = """
SELECT c.relname || ' ' || l.mode FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
WHERE l.pid = %s AND c.relnamespace = 'cerebro'::regnamespace AND c.relkind = 'r'
    AND l.mode <> ALL (%s)"""
READING = ["AccessShareLock", "RowShareLock"]
WRITING = [*READING, "RowExclusiveLock"]
SENSIBLE: dict[str, Any] = {
    "ticket": "mine", "fewest": 1, "most": 1, "configs": 1, "steady": False, "wanted": 1, "had": 0,
    "timeout": "1 ms",
    "owner": "locks_eve", "model": "none",
}  # fmt: skip
KINDS = {"own", "foreign", "none"}


class Function(NamedTuple):
    """A function that the role may execute."""

    name: str
    parameters: list[str]
    types: list[str]
    definer: bool
    source: str

    def call(self, session: Workbench, run_id: int) -> bool:
        """Call it with that run, where it takes one; whether it has succeeded."""
        values = [run_id if name == "run_id" else SENSIBLE.get(name) for name in self.parameters]
        places = ", ".join(f"%s::{kind}" for kind in self.types)
        with suppress(psycopg2.Error):
            session.rows(f"SELECT * FROM {self.name}({places})", *values)
            return True
        return False


@pytest.fixture(scope="module")
def eve(bench: Workbench, shared_superuser: Workbench) -> Iterator[Workbench]:
    with another_role(bench, shared_superuser, "locks_eve") as session:
        session.rows("SET statement_timeout = '60s'; SET client_min_messages = error")
        yield session


@pytest.fixture(scope="module")
def functions(shared_superuser: Workbench, eve: Workbench) -> list[Function]:
    return [Function(*row) for row in shared_superuser.rows(FUNCTIONS)]


def logged(session: Workbench) -> int:
    """A live run in the log, marked as dropped."""
    run = session.value(
        "INSERT INTO cerebro.run_log (spec, pid, epochs, segments, ticket, dropped)"
        " VALUES ('{}', pg_backend_pid(), 1, '{0}', 'mine', true) RETURNING run_id"
    )
    session.rows("SELECT pg_advisory_lock((1667590770::bigint << 32) # %s)", run)
    session.rows("SELECT cerebro_internal.enter_queue(%s, 'mine', 1, 1, 1, false)", run)
    return int(run)


def test_no_call_in_an_open_transaction_holds_up_others(
    bench: Workbench, shared_superuser: Workbench, eve: Workbench, functions: list[Function]
) -> None:
    other = bench.another()
    foreign = other.value(
        "INSERT INTO cerebro.run_log (spec, pid, epochs, segments, ticket)"
        " VALUES ('{}', pg_backend_pid(), 1, '{0}', 'theirs') RETURNING run_id"
    )
    own, writing = logged(eve), set[str]()
    runs = {"own": own, "foreign": int(foreign), "none": -1}
    for function in functions:
        for kind in KINDS if "run_id" in function.parameters else {"none"}:
            eve.rows("BEGIN")
            succeeded = function.call(eve, runs[kind])
            allowed = WRITING if kind == "own" else READING
            held = [text for (text,) in shared_superuser.rows(LOCKS, eve.pid(), allowed)]
            assert not held, f"{function.name} of a run of kind {kind!r}: {held}"
            if succeeded and kind == "own" and shared_superuser.rows(LOCKS, eve.pid(), READING):
                writing.add(function.name)
            eve.rows("ROLLBACK")
    internal = ("enter_queue", "take_places", "add_to_queue", "leave_queue", "remove_dropped")
    assert writing >= {f"cerebro_internal.{name}" for name in internal}, (
        "calls with an own run come to what they are for"
    )
    other.rows("SELECT cerebro.drop_run(%s)", foreign)
    eve.rows("SELECT pg_advisory_unlock_all()")
    eventually(lambda: not eve.rows("SELECT FROM cerebro.queue"))


def test_what_runs_as_its_owner_locks_no_table_and_asks_not_who_logged_in(
    functions: list[Function],
) -> None:
    """In it nobody knows as whom it was called, and who logged in may be a pooler."""
    definers = [function for function in functions if function.definer]
    assert len(definers) >= 8
    for function in definers:
        for words in ("LOCK TABLE", "session_user", "current_user", "current_setting"):
            assert words.lower() not in function.source.lower(), f"{function.name}: {words}"
