"""Quotas of roles and of all together, the queue of runs that find no place, and their turns: by
the log, nobody ever has more than there is, whoever came first is served first, and nothing holds
up others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial

import psycopg2
import pytest
from forged import forge, let_a_minute_pass
from models import NOISY
from processes import eventually
from roles import another_role, own_schema, refused
from workbench import Workbench, several

ROLES = ("queue_ann", "queue_bob")
STATUS = "SELECT status FROM cerebro.run WHERE run_id = %s"
MOST = """
WITH edge AS (
    SELECT t.run_id, t.worker_pid, t.started_at AS at, 1 AS change FROM cerebro.visit t
    UNION ALL SELECT t.run_id, t.worker_pid, t.ended_at, -1 FROM cerebro.visit t)
SELECT max(n.together)
FROM (SELECT sum(e.change) OVER (ORDER BY e.at, e.change) AS together FROM edge e
    WHERE e.run_id > %s) n"""
"""How many visits were under way at the same time, at most: each worker makes one."""


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench, shared_superuser: Workbench) -> None:
    bench.pack("packed", 2)
    bench.configure("two", several(2))
    bench.configure("long", several(2), ["batch_size=1,epochs=10"], bench.model(NOISY))
    shared_superuser.rows(
        "GRANT SELECT ON packed, packed_summary, two, two_summary, long, long_summary, models TO "
        "PUBLIC"
    )


@pytest.fixture(scope="module")
def users(bench: Workbench, shared_superuser: Workbench) -> Iterator[list[Workbench]]:
    """Sessions of two roles that may train on these tables."""
    with _users(bench, shared_superuser, ROLES) as found:
        yield found


@contextmanager
def _users(
    bench: Workbench, administrator: Workbench, names: tuple[str, ...]
) -> Iterator[list[Workbench]]:
    if not names:
        yield []
        return
    with (
        another_role(bench, administrator, names[0]) as session,
        _users(bench, administrator, names[1:]) as others,
    ):
        own_schema(administrator, names[0])
        session.rows(f"SET search_path = {names[0]}, public, madlib")
        yield [session, *others]


@contextmanager
def quota(administrator: Workbench, **rows: object) -> Iterator[None]:
    """A quota in force within the block: of a role, or of all."""
    names = ", ".join(rows)
    administrator.rows(
        f"INSERT INTO cerebro.quota ({names}) VALUES ({', '.join(['%s'] * len(rows))})",
        *rows.values(),
    )
    try:
        yield
    finally:
        administrator.rows(
            "DELETE FROM cerebro.quota WHERE role IS NOT DISTINCT FROM %s", rows.get("role")
        )


@pytest.fixture(scope="module")
def for_one(bench: Workbench) -> int:
    """The trainers that let one run work at a time: on Greenplum it needs one for each of its two
    segments.
    """
    return 2 if bench.greenplum else 1


def submit(session: Workbench, output: str, epochs: int = 1, configs: str = "two") -> int:
    query = "SELECT cerebro.submit('public.packed', %s, %s, %s, workers => 2, backend => 'jax')"
    return int(session.value(query, output, f"public.{configs}", epochs))


@contextmanager
def working(bench: Workbench) -> Iterator[int]:
    """A run that goes on until the block ends."""
    run = submit(bench, "endless", 100_000, "long")
    eventually(lambda: bench.rows("SELECT FROM cerebro.visit WHERE run_id = %s", run))
    try:
        yield run
    finally:
        bench.rows("SELECT cerebro.cancel(%s)", run)
        bench.rows("SELECT cerebro.wait(%s)", run)


@pytest.fixture(scope="module")
def shared(bench: Workbench, shared_superuser: Workbench, users: list[Workbench]) -> list[int]:
    """The runs of Ann, Bob, and Ann again, when all of them have ended, of which two trainers at
    most worked at a time.

    How places are shared among any roles and runs is a law of `hopping/shares`.
    """
    before, (ann, bob) = bench.last_run_id(), users
    with quota(shared_superuser, trainers=2):
        runs = [
            (user, submit(user, f"shared_{number}")) for number, user in enumerate([ann, bob, ann])
        ]
        for user, run in runs:
            assert user.value("SELECT cerebro.wait(%s)", run) == "completed", run
    assert shared_superuser.value(MOST, before) <= 2
    return [run for _, run in runs]


def test_two_roles_share_two_places(users: list[Workbench], shared: list[int]) -> None:
    first, _, last = shared
    began = (
        "SELECT run_id FROM cerebro.visit WHERE run_id = ANY (%s) GROUP BY run_id ORDER BY "
        "min(started_at)"
    )
    assert users[0].rows(began, [first, last]) == [(first,), (last,)], (
        "in the order of their arrival"
    )


def test_what_can_never_fit_is_refused_before_anything_begins(
    bench: Workbench, shared_superuser: Workbench, users: list[Workbench], for_one: int
) -> None:
    ann, before = users[0], users[0].last_run_id()
    call = "SELECT cerebro.submit('public.packed', 'never', 'public.two', 1)"
    with quota(shared_superuser, role="queue_ann", configs=1):
        error = refused(ann, call, code="53400", words="2 configurations")
        assert "cerebro.quota" in str(error.diag.message_hint)
    with quota(shared_superuser, role="queue_ann", trainers=for_one, runs_waiting=0):
        first = submit(ann, "alone", 100_000, "long")
        refused(ann, call, code="53400", words="0 runs of role 'queue_ann' do, of at most 0")
        ann.rows("SELECT cerebro.cancel(%s)", first)
        ann.rows("SELECT cerebro.wait(%s)", first)
    assert ann.newest_run() == first > before and not ann.exists("never")


def test_only_administrators_write_quotas(
    shared_superuser: Workbench, users: list[Workbench]
) -> None:
    ann = users[0]
    with (
        quota(shared_superuser, role="queue_ann", trainers=1),
        quota(shared_superuser, role="queue_bob", trainers=2),
    ):
        assert ann.rows("SELECT role, trainers FROM cerebro.quota") == [("queue_ann", 1)]
        for statement in (
            "UPDATE cerebro.quota SET trainers = 9",
            "DELETE FROM cerebro.quota",
            "DELETE FROM cerebro.queue_log",
        ):
            refused(ann, statement)
        assert shared_superuser.value("SELECT count(*) FROM cerebro.queue_log") > 0
        assert ann.rows("SELECT FROM cerebro.queue_log") == []
    with quota(shared_superuser, trainers=3):
        assert ann.rows("SELECT role, trainers FROM cerebro.quota") == [(None, 3)]
        refused(shared_superuser, "INSERT INTO cerebro.quota (trainers) VALUES (4)", code="23505")


def places(session: Workbench, *runs: int) -> list[int]:
    """How many each has; none before it stands in the queue."""
    return [
        session.value("SELECT coalesce(sum(places), 0) FROM cerebro.queue WHERE run_id = %s", run)
        for run in runs
    ]


@pytest.mark.long
@pytest.mark.postgresql(
    "on Greenplum a run has a worker for each segment, from its beginning to its end"
)
def test_workers_are_given_back_to_who_comes_and_taken_when_that_one_has_gone(
    bench: Workbench, shared_superuser: Workbench, users: list[Workbench]
) -> None:
    ann, bob = users
    before = ann.last_run_id()
    with quota(shared_superuser, trainers=2):
        first = submit(ann, "alone_first", 100_000, "long")
        eventually(lambda: places(ann, first) == [2])
        second = submit(bob, "beside", 100_000, "long")
        eventually(lambda: places(ann, first, second) == [1, 1])
        eventually(lambda: bob.rows("SELECT FROM cerebro.visit WHERE run_id = %s", second))
        assert bob.value("SELECT cerebro.cancel(%s)", second)
        eventually(lambda: places(ann, first) == [2])
        assert ann.value("SELECT cerebro.cancel(%s)", first)
        assert ann.value("SELECT cerebro.wait(%s)", first) == "cancelled"
    assert shared_superuser.value(MOST, before) <= 2


@pytest.mark.long
@pytest.mark.postgresql("runs are alive by their locks there alone")
def test_a_run_that_works_nowhere_is_waited_for_by_nobody(
    shared_superuser: Workbench, users: list[Workbench]
) -> None:
    ann, bob = users
    forged = forge(bob.another())
    with quota(shared_superuser, trainers=2):
        forged.enter(fewest=2, most=2, steady=True)
        assert forged.take(2) == 2
        run = submit(ann, "beside_it")
        eventually(lambda: ann.value(STATUS, run) == "queued")
        let_a_minute_pass(shared_superuser)
        assert ann.value("SELECT cerebro.wait(%s)", run) == "completed"
    forged.session.close()


def test_who_has_used_the_processor_time_of_a_day_waits_until_it_is_longer_ago(
    shared_superuser: Workbench, users: list[Workbench], shared: list[int]
) -> None:
    """It is what `cerebro.cost` counts, of trainers and backends."""
    bob = users[1]
    counted = bob.value(
        "SELECT sum(trainer_seconds + backend_seconds) FROM cerebro.cost WHERE owner = current_user"
    )
    used = "SELECT sum(seconds) FROM cerebro.processor_time WHERE owner = 'queue_bob'"
    assert shared_superuser.value(used) == pytest.approx(counted) and counted > 0
    bob.rows("SELECT cerebro.drop_run(%s)", shared[1])
    assert shared_superuser.value(used) == pytest.approx(counted)
    with quota(shared_superuser, role="queue_bob", cpu_a_day=f"{counted / 2} seconds"):
        second = submit(bob, "used_up")
        rests = "SELECT status, rests FROM cerebro.queue WHERE run_id = %s"
        eventually(lambda: bob.rows(rests, second) == [("queued", True)])

        def begun_a_day_later() -> bool:
            """Whether it has a place, were all of it a day longer ago: also what the run counts
            while it waits.
            """
            shared_superuser.rows(
                "UPDATE cerebro.used_time SET counted_at = counted_at - interval '1 day'"
                " WHERE owner = 'queue_bob' AND counted_at > now() - interval '1 day'"
            )
            return bool(bob.rows("SELECT FROM cerebro.visit WHERE run_id = %s", second))

        eventually(begun_a_day_later)
    assert bob.value("SELECT cerebro.wait(%s)", second) == "completed"


@pytest.mark.long
def test_acts_add_no_more_configurations_than_quotas_allow(
    bench: Workbench, shared_superuser: Workbench, users: list[Workbench]
) -> None:
    ann, adding = users[0], "SELECT cerebro.add_configs(%s, %s, %s)"
    compiled = {
        "loss": ["categorical_crossentropy"],
        "metrics": ["accuracy"],
        "lr": [0.001, 0.1, "log"],
    }
    space = json.dumps({"compile_params": compiled, "fit_params": {"batch_size": [2]}})
    with (
        quota(shared_superuser, role="queue_ann", configs=4),
        quota(shared_superuser, configs=5),
        working(bench) as other,
    ):
        run = submit(ann, "acted", 100_000, "long")
        eventually(lambda: ann.rows("SELECT FROM cerebro.visit WHERE run_id = %s", run))
        two = ann.value(adding, run, space, 2)
        one = ann.value("SELECT cerebro.clone_config(%s, 1, '{\"batch_size\": 2}', false)", run)
        last = ann.value(
            'SELECT cerebro.drill_down(%s, 1, \'{"fit_params": {"batch_size": [8]}}\')', run
        )
        outcome = "SELECT status, reason FROM cerebro.act WHERE act_id = %s"
        eventually(lambda: ann.row(outcome, last)[0] != "scheduled")
        full = "quotas leave no room for {}: see configs of cerebro.quota"
        found = [ann.row(outcome, act) for act in (two, one, last)]
        assert found == [
            ("refused", full.format("2 more configurations")),
            ("done", None),
            ("refused", full.format("1 more configuration")),
        ]
        counts = "SELECT configs FROM cerebro.queue WHERE run_id = %s"
        assert (ann.value(counts, run), ann.value(counts, other)) == (3, 2)
        assert ann.value("SELECT count(*) FROM cerebro.config WHERE run_id = %s", run) == 3
        assert bench.value("SELECT cerebro.cancel(%s)", other)
        assert bench.value("SELECT cerebro.wait(%s)", other) == "cancelled"
        more = ann.value(adding, run, space, 1)
        eventually(lambda: ann.row(outcome, more) == ("done", None))
        assert ann.value("SELECT cerebro.cancel(%s)", run)
        ann.rows("SELECT cerebro.wait(%s)", run)


@pytest.mark.long
@pytest.mark.postgresql(
    "on Greenplum a run has a worker for each segment, from its beginning to its end"
)
def test_roles_take_turns_where_there_are_fewer_places(
    bench: Workbench, shared_superuser: Workbench, users: list[Workbench]
) -> None:
    before, seen = users[0].last_run_id(), set[int]()
    rests = "SELECT run_id FROM cerebro.queue WHERE status = 'queued' AND role_used > 0"
    with quota(shared_superuser, trainers=1):
        runs = [(user, submit(user, "turns", 100_000, "long")) for user in users]

        def all_have_rested() -> bool:
            seen.update(run for (run,) in shared_superuser.rows(rests))
            return seen >= {run for _, run in runs}

        eventually(all_have_rested)
        for user, run in runs:
            user.rows("SELECT cerebro.set_epochs(%s, 1)", run)
        assert {user.value("SELECT cerebro.wait(%s)", run) for user, run in runs} == {"completed"}
    assert shared_superuser.value(MOST, before) == 1


@pytest.fixture(scope="module")
def first(shared_superuser: Workbench, users: list[Workbench], for_one: int) -> Iterator[int]:
    """A run that has all places of its role, until the last test lets those go on that wait behind
    it.
    """
    ann = users[0]
    with quota(shared_superuser, role="queue_ann", trainers=for_one):
        run = submit(ann, "first", 100_000, "long")
        eventually(lambda: ann.rows("SELECT FROM cerebro.visit WHERE run_id = %s", run))
        yield run
        ann.rows("SELECT cerebro.cancel(%s)", run)
        ann.rows("SELECT cerebro.wait(%s)", run)


@pytest.fixture
def ann(users: list[Workbench]) -> Workbench:
    return users[0]


def test_a_queued_run_holds_nothing_and_tells_its_position(
    bench: Workbench, shared_superuser: Workbench, ann: Workbench, first: int
) -> None:
    second = submit(ann, "second")
    eventually(lambda: ann.value(STATUS, second) == "queued")
    progress = "SELECT status, queue_position FROM cerebro.progress WHERE run_id = %s"
    assert ann.row(progress, second) == ("queued", 1)
    assert not bench.rows("SELECT FROM cerebro.run WHERE run_id = %s", second)
    assert bench.row("SELECT owner, status FROM cerebro.queue WHERE run_id = %s", second) == (
        None,
        "queued",
    )
    sessions = "SELECT pid, backend_xmin FROM pg_stat_activity WHERE application_name LIKE %s"
    if not bench.greenplum:  # there the session that writes the log stays
        eventually(lambda: len(shared_superuser.rows(sessions, f"cerebro_db run {second} %")) == 1)
    eventually(
        lambda: (
            {row[1] for row in shared_superuser.rows(sessions, f"cerebro_db run {second} %")}
            == {None}
        )
    )
    ann.rows("SELECT cerebro.drop_run(%s)", second)
    assert not ann.rows("SELECT FROM cerebro.queue WHERE run_id = %s", second)


def calling(session: Workbench) -> AbstractContextManager[Future[int]]:
    return session.calling(
        lambda: session.fit("public.packed", "called", "public.two", 1, backend="jax")
    )


def test_all_go_on_when_there_is_a_place(
    shared_superuser: Workbench, ann: Workbench, first: int
) -> None:
    """Those that were cancelled or lost meanwhile by a resume, and a call, which says that it has
    waited.

    A call that waits can be cancelled, too.
    """
    cancelled, lost = submit(ann, "cancelled"), submit(ann, "lost")
    eventually(lambda: ann.value(STATUS, lost) == "queued")
    assert ann.value("SELECT cerebro.cancel(%s)", cancelled)
    assert ann.value("SELECT cerebro.wait(%s)", cancelled) == "cancelled"
    backend = shared_superuser.value("SELECT pid FROM cerebro.run WHERE run_id = %s", lost)
    # A statement of its own: beside a table of Greenplum the function would be called on a segment.
    assert shared_superuser.value("SELECT pg_terminate_backend(%s)", backend)
    eventually(lambda: ann.value(STATUS, lost) == "interrupted")
    assert not ann.rows("SELECT FROM cerebro.queue WHERE run_id = %s", lost)
    ann.rows("SELECT cerebro.resume(%s, background => true)", cancelled)
    eventually(lambda: ann.value(STATUS, cancelled) == "queued")
    with closing(ann.another()) as other:
        other.rows("SET search_path = queue_ann, public, madlib")
        with calling(other) as called:
            run = eventually(lambda: newest if (newest := ann.newest_run()) > lost else 0)
            eventually(lambda: ann.value(STATUS, run) == "queued")
            assert ann.value("SELECT cerebro.cancel(%s)", run)
            with pytest.raises(psycopg2.errors.QueryCanceled):
                called.result()
        with calling(other) as called:
            eventually(
                lambda: ann.value("SELECT count(*) FROM cerebro.queue WHERE status = 'queued'") == 2
            )
            assert ann.value("SELECT cerebro.cancel(%s)", first)
            called.result()
        assert any("is queued, at position 2" in text for text in other.messages())
    assert ann.value("SELECT cerebro.wait(%s)", cancelled) == "completed"
    ann.rows("SELECT cerebro.resume(%s)", lost)
    assert ann.value(STATUS, lost) == "completed"


@pytest.mark.long
@pytest.mark.parametrize("background", [False, True], ids=["called", "submitted"])
def test_a_run_that_waits_hears_that_its_owner_has_another_name(
    bench: Workbench, shared_superuser: Workbench, for_one: int, background: bool
) -> None:
    """Nothing would let it begin: it ends, and so does its call."""
    renamed = (
        "ALTER ROLE queue_before RENAME TO queue_after",
        "ALTER ROLE queue_after RENAME TO queue_before",
    )
    status = "SELECT status FROM cerebro.run WHERE run_id = %s"
    with (
        working(bench),
        quota(shared_superuser, trainers=for_one),
        _users(bench, shared_superuser, ("queue_before",)) as (session,),
    ):
        before = shared_superuser.last_run_id()
        fit = partial(session.fit, "public.packed", "waited", "public.long", 100_000, workers=2)
        with session.calling(
            lambda: submit(session, "waited", 100_000, "long") if background else fit()
        ) as called:
            run = eventually(
                lambda: newest if (newest := shared_superuser.newest_run()) > before else 0
            )
            eventually(lambda: shared_superuser.value(status, run) == "queued")
            shared_superuser.rows(renamed[0])
            try:
                error = called.exception()
                assert background or (
                    isinstance(error, psycopg2.Error) and "'queue_before'" in str(error)
                ), error
                eventually(lambda: shared_superuser.value(status, run) == "interrupted")
            finally:
                shared_superuser.rows(renamed[1])
        session.rows("SELECT cerebro.drop_run(%s)", run)
    shared_superuser.rows("DROP SCHEMA IF EXISTS queue_before")
