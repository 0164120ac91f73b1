"""A role that forges runs of its own takes nothing from others: neither their places, nor their
time.

Nothing is trained here: a run is a row in the log and a lock, which any role with usage can have by
hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from forged import ENTER, TAKE, Forged, forge, let_a_minute_pass
from processes import eventually
from roles import another_role, refused, session_of
from workbench import Workbench

from cerebro_plpy.database.queries import sql

pytestmark = pytest.mark.postgresql("runs are alive by their locks there alone")
LIMIT = "SET statement_timeout = '30s'"
HOLDERS = (
    "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND classid::bigint >> "
    "16 = 25446"
)
WORK = sql("session.work_for", lock="pg_try_advisory_lock_shared")


@pytest.fixture(scope="module")
def roles(bench: Workbench, shared_superuser: Workbench) -> Iterator[None]:
    with ExitStack() as stack:
        for name in ("queue_alice", "queue_eve"):
            stack.enter_context(another_role(bench, shared_superuser, name))
        stack.enter_context(
            another_role(
                bench, shared_superuser, "queue_gate", granted=False, options="LOGIN NOINHERIT"
            )
        )
        shared_superuser.rows("GRANT queue_alice, queue_eve TO queue_gate")
        yield


@pytest.fixture
def sessions(bench: Workbench, roles: None) -> Iterator[dict[str, list[Workbench]]]:
    """Sessions of roles, which are closed, so that their runs end."""
    made: dict[str, list[Workbench]] = {}
    yield made
    for session in [each for those in made.values() for each in those]:
        session.close()


class People:
    """Opens sessions of roles for one test."""

    def __init__(self, bench: Workbench, opened: dict[str, list[Workbench]]) -> None:
        self._bench, self._opened = bench, opened

    def session(self, role: str) -> Workbench:
        made = session_of(self._bench, role)
        self._opened.setdefault(role, []).append(made)
        made.rows(LIMIT)
        return made

    def run(self, role: str) -> Forged:
        return forge(self.session(role))


@pytest.fixture
def people(bench: Workbench, sessions: dict[str, list[Workbench]]) -> People:
    return People(bench, sessions)


@contextmanager
def quota(
    administrator: Workbench, trainers: int | None = None, configs: int | None = None
) -> Iterator[None]:
    administrator.rows(
        "INSERT INTO cerebro.quota (trainers, configs) VALUES (%s, %s)", trainers, configs
    )
    try:
        yield
    finally:
        administrator.rows("DELETE FROM cerebro.quota WHERE role IS NULL")


def places(session: Workbench, *runs: Forged) -> list[int | None]:
    query = "SELECT max(places) FROM cerebro.queue WHERE run_id = %s"
    return [session.value(query, run.run_id) for run in runs]


NUMBERS = [(1, 2**31 - 1, 1, False), (1, 1, -1_000_000, False), (1, 1, 2**31 - 1, False), (0, 1, 1,
False),
           (2, 1, 1, False), (1, 2, 1, True)]  # fmt: skip


@pytest.mark.parametrize(("fewest", "most", "configs", "steady"), NUMBERS)
def test_numbers_that_no_run_has_are_refused(
    people: People, fewest: int, most: int, configs: int, steady: bool
) -> None:
    eve = people.run("queue_eve")
    refused(eve.session, ENTER, eve.run_id, eve.ticket, fewest, most, configs, steady, code="22023")
    assert not eve.session.rows("SELECT FROM cerebro.queue WHERE run_id = %s", eve.run_id)


def test_configurations_are_added_within_quotas_alone(
    shared_superuser: Workbench, people: People
) -> None:
    eve = people.run("queue_eve")
    eve.enter()
    with quota(shared_superuser, trainers=2, configs=5):
        assert eve.take(1) == 1
        add = "SELECT cerebro_internal.add_to_queue(%s, %s, %s, %s)"
        assert not eve.session.value(add, eve.run_id, eve.ticket, 5, 1)
        assert not eve.session.value(add, eve.run_id, eve.ticket, 2**31 - 1, 1)
        assert eve.session.value(add, eve.run_id, eve.ticket, 4, 1)
        assert not eve.session.value(add, eve.run_id, eve.ticket, 1, 5)
        assert (
            eve.session.value("SELECT configs FROM cerebro.queue WHERE run_id = %s", eve.run_id)
            == 5
        )


@pytest.mark.parametrize("change", ["status = 'completed'", "pid = 1", "status = 'paused'"])
def test_a_run_counts_while_it_holds_its_lock_whatever_its_owner_writes(
    shared_superuser: Workbench, people: People, change: str
) -> None:
    first, second = people.run("queue_eve"), people.run("queue_eve")
    with quota(shared_superuser, trainers=1):
        first.enter()
        assert first.take(1) == 1
        first.session.rows(f"UPDATE cerebro.run_log SET {change} WHERE run_id = %s", first.run_id)
        second.enter()
        assert second.take(1) == 0 and places(shared_superuser, first) == [1]
        first.session.rows("SELECT pg_advisory_unlock_all()")
        assert second.take(1) == 1 and places(shared_superuser, first) == [None]


def test_a_backend_has_one_run_in_the_queue(shared_superuser: Workbench, people: People) -> None:
    session = people.session("queue_eve")
    runs = [forge(session) for _ in range(3)]
    for run in runs:
        run.enter()
    assert [
        run for (run,) in session.rows("SELECT run_id FROM cerebro.queue WHERE owner = 'queue_eve'")
    ] == [runs[-1].run_id]


def test_places_without_workers_are_left_to_others(
    shared_superuser: Workbench, people: People
) -> None:
    eve, alice = people.run("queue_eve"), people.run("queue_alice")
    with quota(shared_superuser, trainers=2):
        eve.enter(fewest=2, most=2, steady=True)
        assert eve.take(2) == 2
        alice.enter()
        assert alice.take(1) == 0
        let_a_minute_pass(shared_superuser)
        assert places(shared_superuser, eve) == [0]
        assert alice.take(2) == 2
        assert eve.take(2, had=2) == 0, "what is lost is not had any more"
        assert alice.take(2, had=2) == 2


def test_workers_keep_the_places_of_their_run(shared_superuser: Workbench, people: People) -> None:
    eve, alice = people.run("queue_eve"), people.run("queue_alice")
    first, second = people.session("queue_eve"), people.session("queue_eve")
    with quota(shared_superuser, trainers=3):
        eve.enter(most=3)
        assert eve.take(3) == 3
        assert [session.value(WORK, eve.run_id) for session in (first, first, second)] == [True] * 3
        let_a_minute_pass(shared_superuser)
        assert places(shared_superuser, eve) == [2]
        alice.enter()
        assert alice.take(3) == 1


def test_nobody_keeps_a_worker_from_its_lock(people: People) -> None:
    """Its key is drawn."""
    alice, eve = people.run("queue_alice"), people.session("queue_eve")
    for number in range(64):
        eve.rows(
            "SELECT pg_try_advisory_lock(((25446::bigint << 16 | %s) << 32) | %s)",
            number,
            alice.run_id & 0xFFFFFFFF,
        )
    assert alice.session.value(WORK, alice.run_id)


def test_a_run_that_waits_and_does_not_ask_is_waited_for_by_nobody(
    shared_superuser: Workbench, people: People
) -> None:
    eve, alice = people.run("queue_eve"), people.run("queue_alice")
    with quota(shared_superuser, trainers=1):
        alice.enter()
        assert alice.take(1) == 1 and alice.take(0, had=1) == 0
        shared_superuser.rows(
            "UPDATE cerebro.queue_log SET used = 100 WHERE run_id = %s", alice.run_id
        )
        eve.enter()
        assert alice.take(1) == 0, "it is the turn of the role that has used less"
        let_a_minute_pass(shared_superuser)
        assert eve.take(0) == 0, "it says that it waits, and could have the place"
        assert alice.take(1) == 1
        assert eve.take(0) == 0, "now it does wait"
        assert alice.take(0, had=1) == 0 and alice.take(1) == 0
        assert eve.take(1) == 1


def test_no_role_takes_more_than_its_share_while_another_has_nothing(
    shared_superuser: Workbench, people: People
) -> None:
    eve, alice = people.run("queue_eve"), people.run("queue_alice")
    with quota(shared_superuser, trainers=4):
        eve.enter()
        assert eve.take(1) == 1
        alice.enter()
        assert eve.take(4, had=1) == 2
        assert alice.take(4) == 2
        assert eve.take(4, had=2) == 2
        other = people.run("queue_eve")
        other.enter()
        assert other.take(4) == 0


def test_of_two_that_take_the_last_place_at_once_one_gives_it_back(
    shared_superuser: Workbench, people: People
) -> None:
    """Neither waits for the other's transaction, and neither sees it until it ends."""
    first, second = people.run("queue_alice"), people.run("queue_alice")
    with quota(shared_superuser, trainers=1):
        first.enter()
        second.enter()
        for run in (first, second):
            run.session.rows("BEGIN")
        assert [first.take(1), second.take(1)] == [1, 1]
        for run in (first, second):
            run.session.rows("COMMIT")
        again = [first.take(1), second.take(1)]
        assert again == [0, 1], (
            "the second call, before any trainer starts, sees what the first ones have committed"
        )
        assert places(shared_superuser, first, second) == again


def test_who_logged_in_is_not_who_calls(
    bench: Workbench, shared_superuser: Workbench, people: People
) -> None:
    """A pooler's login role is a member of all that it stands for."""
    alice, gate = people.run("queue_alice"), people.session("queue_gate")
    with quota(shared_superuser, trainers=2):
        alice.enter()
        assert alice.take(2) == 2
        standing = "SELECT * FROM cerebro.queue_log WHERE run_id = %s"
        before = shared_superuser.row(standing, alice.run_id)
        gate.rows("SET ROLE queue_eve")
        assert not gate.rows("SELECT ticket FROM cerebro.run_log WHERE run_id = %s", alice.run_id)
        for ticket in ("", "ticket", None):
            gate.rows(TAKE, alice.run_id, ticket, 0, 2)
            gate.rows(ENTER, alice.run_id, ticket, 8, 8, 5, True)
            gate.rows("SELECT cerebro_internal.add_to_queue(%s, %s, 5, 1)", alice.run_id, ticket)
            gate.rows("SELECT cerebro_internal.leave_queue(%s, %s)", alice.run_id, ticket)
        gate.rows("SELECT cerebro_internal.remove_dropped(%s)", alice.run_id)
        assert shared_superuser.row(standing, alice.run_id) == before
        assert gate.value("SELECT cerebro_internal.may_act(%s)", alice.run_id) is False
        refused(
            gate,
            "INSERT INTO cerebro.act_log (run_id, action) VALUES (%s, 'pause_run')",
            alice.run_id,
        )
        gate.rows("SET ROLE queue_alice")
        assert gate.value("SELECT cerebro_internal.may_act(%s)", alice.run_id) is True
        assert gate.value(TAKE, alice.run_id, alice.ticket, 1, 2) == 1


def test_sessions_of_calls_are_counted_by_their_locks_of_roles_with_usage(
    bench: Workbench, shared_superuser: Workbench
) -> None:
    """Whatever they are called: anybody may have any name, and any lock."""
    with another_role(bench, shared_superuser, "queue_carl", granted=False) as carl:
        carl.rows("SET application_name = 'cerebro_db worker'")
        carl.rows(WORK, 0)

        def counted() -> int:
            return int(shared_superuser.row(sql("session.workers_total"))[0])

        def held(but: int) -> int:
            return len({pid for (pid,) in shared_superuser.rows(HOLDERS)} - {but})

        eventually(lambda: counted() == held(carl.pid()))
        shared_superuser.rows("SELECT cerebro.grant_usage('queue_carl')")
        carl.rows("SET application_name = 'psql'")
        eventually(lambda: counted() == held(0))


def test_a_call_s_sessions_hold_the_lock(bench: Workbench) -> None:
    session = bench.another()
    session.rows("SELECT cerebro.vacuum_runs('1000 days')")
    named = (
        "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'cerebro\\_db%' AND datname "
        "= current_database()"
    )
    holding = {pid for (pid,) in bench.rows(HOLDERS)}
    assert {pid for (pid,) in bench.rows(named)} <= holding != set()
    session.close()


def test_an_open_transaction_of_another_role_holds_up_nobody(
    shared_superuser: Workbench, people: People
) -> None:
    eve, alice = people.run("queue_eve"), people.run("queue_alice")
    with quota(shared_superuser, trainers=2):
        eve.enter()
        eve.session.rows("BEGIN")
        eve.take(1)
        for call in (
            "take_places(-1, '', 1, 0)",
            "enter_queue(-1, '', 1, 1, 1, false)",
            "remove_dropped(-1)",
        ):
            eve.session.rows(f"SELECT cerebro_internal.{call}")
        alice.session.rows("SET lock_timeout = '5s'")
        alice.enter()
        assert alice.take(2) == 1, "the other place is for the role that waits"
        dropped = (
            "UPDATE cerebro.run_log SET dropped = true WHERE run_id = %s; SELECT "
            "cerebro_internal.remove_dropped(%s)"
        )
        eve.session.rows(dropped, eve.run_id, eve.run_id)
        alice.session.rows(dropped, alice.run_id, alice.run_id)
