"""What a session leaves of its trainers when it ends: the next session of the same role has them,
and nobody else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg2
import pytest
from processes import alive, command_line, eventually, trainers
from roles import another_role
from workbench import Workbench, setting, several

LIMIT_MB = "4322"
"""A limit of memory that no other module has: its sessions would take what these tests have left.
"""
PID = "SELECT (cerebro.trainer_report('none') ->> 'pid')::integer"
KEEP = "SELECT cerebro.grant_usage(%s::regrole, keep_trainers => %s)"


@pytest.fixture(scope="module", autouse=True)
def limit(bench: Workbench) -> Iterator[None]:
    with setting(bench, "trainer_memory_mb", LIMIT_MB):
        yield


@contextmanager
def session(bench: Workbench) -> Iterator[Workbench]:
    """A session of the same role, which ends."""
    other = bench.another()
    try:
        yield other
    finally:
        other.close()


def left(bench: Workbench) -> int:
    """The trainer that a session had, when it is kept."""
    with session(bench) as other:
        pid = int(other.value(PID))
    eventually(lambda: kept(pid))
    return pid


def kept(pid: int) -> bool:
    return command_line(pid)[:1] == ["cerebro_trainer: none kept"]


def test_the_next_session_has_it(bench: Workbench) -> None:
    pid = left(bench)
    with session(bench) as other:
        assert other.value(PID) == pid
        assert trainers({other.pid()}) == {pid}
        assert other.value(PID) == pid, "and keeps it"


def test_another_role_has_it_not(bench: Workbench, shared_superuser: Workbench) -> None:
    """Nor a superuser, nor one who only works as the role."""
    with another_role(bench, shared_superuser, "heir") as heir:
        pid = left(bench)
        assert heir.value(PID) != pid
        with session(shared_superuser) as other:
            other.rows("SET ROLE cerebro")
            assert other.value(PID) != pid
            other.rows("SET SESSION AUTHORIZATION cerebro")
            assert other.value(PID) != pid
        assert kept(pid)
        with session(bench) as other:
            assert other.value(PID) == pid


def test_a_role_of_many_tenants_leaves_none(bench: Workbench, shared_superuser: Workbench) -> None:
    with (
        another_role(bench, shared_superuser, "tenants, all") as tenants,
        setting(bench, "tenant_roles", "{other}"),
    ):
        before = left(tenants)
        shared_superuser.rows(KEEP, '"tenants, all"', False)
        assert stored(shared_superuser) == ["other", "tenants, all"]
        with session(tenants) as other:
            pid = int(other.value(PID))
            assert pid != before
            assert other.value(PID) == pid, "for itself it has one"
        eventually(lambda: not alive({pid}))
        shared_superuser.rows(KEEP, '"tenants, all"', True)
        assert stored(shared_superuser) == ["other"]
        pid = left(tenants)
        shared_superuser.rows("SELECT cerebro.grant_usage(%s::regrole)", '"tenants, all"')
        with session(tenants) as other:
            assert other.value(PID) == pid


def test_a_member_of_a_role_of_many_tenants_leaves_none(
    bench: Workbench, shared_superuser: Workbench
) -> None:
    with (
        another_role(bench, shared_superuser, "tenants, all", options="NOLOGIN"),
        another_role(bench, shared_superuser, "lodger", granted=False) as lodger,
    ):
        shared_superuser.rows('GRANT "tenants, all" TO lodger')
        before = left(lodger)
        shared_superuser.rows(KEEP, '"tenants, all"', False)
        with session(lodger) as other:
            pid = int(other.value(PID))
            assert pid != before
        eventually(lambda: not alive({pid}))
        left(bench)
        left(shared_superuser)
        shared_superuser.rows(KEEP, '"tenants, all"', True)
        with session(lodger) as other:
            assert other.value(PID) == before


def stored(superuser: Workbench) -> list[str]:
    return list(
        superuser.value("SELECT value::text[] FROM cerebro.setting WHERE name = 'tenant_roles'")
    )


def test_nothing_is_kept_where_no_time_is(bench: Workbench) -> None:
    with setting(bench, "trainer_idle_seconds", "0"), session(bench) as other:
        pid = int(other.value(PID))
    eventually(lambda: not alive({pid}))


def of_fit(bench: Workbench, table: str) -> tuple[set[int], dict[int, bytes]]:
    """The trainers of a fit by a session that then ends, and what came out."""
    with session(bench) as other:
        other.fit("packed", table, "two", 2, seed=5, schedule="rotation", workers=2)
        return trainers(other.workers()), other.weights(table)


@pytest.mark.long
def test_a_fit_by_kept_trainers_gives_the_same_bits(bench: Workbench) -> None:
    bench.pack("packed", 2)
    bench.configure("two", several(2))
    first, weights = of_fit(bench, "first")
    assert len(first) == 2
    eventually(
        lambda: all(command_line(pid)[:1] == ["cerebro_trainer: tensorflow kept"] for pid in first)
    )
    again, same = of_fit(bench, "second")
    assert again == first
    assert same == weights


def test_who_is_ended_within_a_fit_leaves_none(
    bench: Workbench, shared_superuser: Workbench
) -> None:
    bench.pack("many", 2)
    bench.configure("long", several(2), ["batch_size=1,epochs=60"])
    with session(bench) as other:
        pid = other.pid()
        with other.fitting("many", "endless", "long", 100_000, workers=2) as fitted:
            running = eventually(lambda: trainers(bench.workers()))
            shared_superuser.rows("SELECT pg_terminate_backend(%s)", pid)
            with pytest.raises(psycopg2.Error):
                fitted.result()
    eventually(lambda: not alive(running))
