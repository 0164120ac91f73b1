"""The laws of `cerebro_plpy.platform.visits.Visits` on each platform, with real sessions
and real trainers.

The steps of a visit are worked through one by one, so that a test can look, or pull the plug, in
between.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from models import NOISY
from processes import eventually, idle, trainers
from specs import spec_of
from states import same
from workbench import Row, Workbench, compile_text

from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.params.fit_params import parse_fit_params
from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Rows, Session, Statement, Steps, drive
from cerebro_plpy.database.sessions.worker_sessions import Identity, WorkerSession
from cerebro_plpy.errors import CerebroError, ConnectionFailure
from cerebro_plpy.packing.packed_columns import Column
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.platform import state_tables, statements
from cerebro_plpy.platform.greenplum.adapter import Greenplum
from cerebro_plpy.platform.greenplum.visits import GreenplumVisits
from cerebro_plpy.platform.job import Job, RawRows, StateSource, Sums
from cerebro_plpy.platform.postgres.adapter import Postgres
from cerebro_plpy.platform.postgres.visits import PostgresVisits
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.platform.training_platform import TrainingPlatform
from cerebro_plpy.platform.visit_protocol import (
    BatchVisit,
    BestState,
    EvaluateVisit,
    TrainVisit,
    VisitResult,
    Worker,
)
from cerebro_plpy.platform.visits import Visits
from cerebro_plpy.records import dataclass, replace
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.run.request import visit_jobs
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.run.state.config_state import add_parts
from cerebro_plpy.scheduling.schedule.schedule import Visit
from cerebro_plpy.tables.architectures import StoredModel
from cerebro_plpy.trainer_client.settings import TrainerOptions

CONFIG = Config(
    mst_key=1,
    model_id=1,
    compile_text="",
    fit_text="",
    compile=parse_compile_params(compile_text("Adam(learning_rate=0.01)")),
    fit=parse_fit_params("batch_size=5"),
)
BEGINNING, END = "cerebro_internal.job_begin", "cerebro_internal.state_chunks"


@dataclass(frozen=True)
class Place:
    """A database in which the laws are to hold: its platform, and how its worker sessions are
    opened.
    """

    bench: Workbench
    platform: TrainingPlatform
    kind: Callable[[list[TrainerOptions], int, Callable[[str], None]], Visits]
    visits: Visits
    segments: tuple[int, ...]
    session: Callable[[], WorkerSession]

    @property
    def greenplum(self) -> bool:
        """Whether a worker serves one segment only."""
        return isinstance(self.platform, Greenplum)

    def worker(self, segment: int) -> Worker:
        """A new worker, which serves the segment of that place among all, if it alone can do so."""
        return Worker(
            0,
            self.session(),
            segment_id=self.platform.assign_segments(self.segments, len(self.segments))[segment],
        )

    def at(self, team: Team, segment: int) -> Worker:
        """Of the workers that stay the one that serves a segment: on PostgreSQL the first serves
        all.
        """
        return team[segment if self.greenplum else 0]


Team = tuple[Worker, Worker]


@pytest.fixture(scope="module")
def place(bench: Workbench, platform: str) -> Place:
    bench.pack("packed", 2)
    adapter: TrainingPlatform = Greenplum() if platform == "greenplum" else Postgres()
    kind = GreenplumVisits if platform == "greenplum" else PostgresVisits
    server = bench.value(
        sql("session.server").replace("session_user::text", "''").rsplit(",", 1)[0]
    )
    segments = tuple(
        key for (key,) in bench.rows("SELECT DISTINCT __dist_key__ FROM packed ORDER BY 1")
    )
    caller: Any = bench
    who = Identity(
        "cerebro", "cerebro", bench.url, server, adapter, adapter.session_options(caller)
    )
    return Place(
        bench,
        adapter,
        kind,
        kind([TrainerOptions(trainers=2)] * 16, 1 << 30, print),
        segments,
        lambda: WorkerSession(who, "cerebro_db worker", lambda: None),
    )


@pytest.fixture(scope="module")
def worker(place: Place) -> Iterator[Worker]:
    """A worker that serves the first segment."""
    made = place.worker(0)
    yield made
    made.session.close()


@pytest.fixture(scope="module")
def another(place: Place) -> Iterator[Worker]:
    """A worker that serves the second segment."""
    made = place.worker(1)
    yield made
    made.session.close()


@pytest.fixture
def team(worker: Worker, another: Worker) -> Team:
    return worker, another


def anew(worker: Worker) -> Worker:
    """The worker as one that knows nothing of what its trainer has."""
    return Worker(worker.number, worker.session, segment_id=worker.segment_id)


@dataclass(frozen=True)
class Run:
    """A run of one config, of which nothing has been done yet."""

    place: Place
    request: FitRequest
    run_id: int

    def train(
        self,
        segment: int,
        number: int = 1,
        attempt: int = 1,
        free: Collection[str] = (),
        fresh: Collection[str] = (),
    ) -> TrainVisit:
        """The visit of that number, from the state that the one before it left."""
        first = visit_jobs.make_initial_state(self.request, CONFIG, self.run_id)
        visit = Visit(1 + (number - 1) // 2, CONFIG.mst_key, self.place.segments[segment], "train")
        state = self.later(number - 1) if number > 1 else first
        place = visit_jobs.Attempt(number, attempt, 0, {}, number, free, fresh)
        return visit_jobs.make_train_visit(self.request, CONFIG, self.run_id, visit, place, state)

    def later(self, number: int) -> StateSource:
        """The state that the visit of that number left."""
        return visit_jobs.make_later_state(self.run_id, CONFIG.mst_key, number, self.left(number))

    def left(self, number: int) -> StoredState:
        """Where that state lies."""
        logged = (
            "SELECT segment_id FROM cerebro.visit WHERE (run_id, visit_no, status) = (%s, %s, "
            "'completed')"
        )
        segment = self.place.bench.value(logged, self.run_id, number)
        return StoredState(state_tables.state_table(self.run_id, CONFIG.mst_key, number), segment)

    def evaluation(self, segment: int, number: int, attempt: int = 1) -> EvaluateVisit:
        """The evaluation of the state after that visit."""
        visit = Visit(1, CONFIG.mst_key, self.place.segments[segment], "evaluate")
        return visit_jobs.make_evaluate_visit(
            self.request, CONFIG, self.run_id, (visit,), attempt, self.later(number)
        )

    def evaluation_of(self, epoch: int, state: StateSource) -> EvaluateVisit:
        """The evaluation of a state over all segments."""
        tour = tuple(
            Visit(epoch, CONFIG.mst_key, segment, "evaluate") for segment in self.place.segments
        )
        return visit_jobs.make_evaluate_visit(self.request, CONFIG, self.run_id, tour, 1, state)

    def tour_of_epoch(self, epoch: int) -> list[BatchVisit]:
        """The visits of an epoch, and its evaluation, as part of a tour whose state goes to the
        first table.
        """
        made: list[BatchVisit] = []
        for number, segment in zip((2 * epoch - 1, 2 * epoch), self.place.segments, strict=True):
            where, start = (
                Visit(epoch, CONFIG.mst_key, segment, "train"),
                visit_jobs.Attempt(number, 1, 0, {}, 1),
            )
            first = visit_jobs.make_initial_state(self.request, CONFIG, self.run_id)
            state = (
                visit_jobs.make_later_state(self.run_id, CONFIG.mst_key, number - 1, None)
                if number > 1
                else first
            )
            made.append(
                visit_jobs.make_train_visit(self.request, CONFIG, self.run_id, where, start, state)
            )
        evaluation = self.evaluation_of(
            epoch, visit_jobs.make_later_state(self.run_id, CONFIG.mst_key, 2 * epoch, None)
        )
        return [
            *made,
            replace(
                visit_jobs.make_batch_evaluation(self.request, CONFIG, evaluation),
                is_candidate=True,
            ),
        ]

    def logged(self) -> list[Row]:
        """Status, state table and state size of each visit."""
        return self.place.bench.rows(
            "SELECT status, state_table, state_bytes FROM cerebro.visit WHERE run_id = %s ORDER "
            "BY visit_no, attempt",
            self.run_id,
        )

    def stored(self, number: int) -> bytes:
        """What the table holds that takes the state after visits with that number."""
        table = state_tables.state_table(self.run_id, CONFIG.mst_key, number)
        return b"".join(
            bytes(c) for (c,) in self.place.bench.rows(f"SELECT chunk FROM {table} ORDER BY part")
        )


@pytest.fixture
def run(place: Place, worker: Worker) -> Run:
    return begun(place, worker, packed(place, "packed"))


def begun(place: Place, worker: Worker, source: PackedTable) -> Run:
    """A new run over a packed table."""
    request = FitRequest(
        spec=spec_of(source, 2, (2,), seed=4),
        source=source,
        validation=None,
        configs=(CONFIG,),
        architectures={1: StoredModel(1, NOISY, False)},
        architecture_table=source.relation,
        workers=1,
        gpus=(),
        backends={CONFIG.mst_key: "tensorflow"},
    )
    run_id = worker.session.run(sql("run.reserve"))[0][0]
    log = RunLog(worker.session, run_id)
    log.begin(request, place.bench.pid())
    log.make_state_tables(request, [config.mst_key for config in request.configs])
    return Run(place, request, run_id)


def packed(place: Place, name: str) -> PackedTable:
    """A table that was packed by label with one input."""
    oid = place.bench.value("SELECT %s::regclass::oid::bigint", name)
    return PackedTable(
        relation=Relation(name, "public", name, oid, f'public."{name}"'),
        independent=("x",),
        dependent=("label",),
        dependent_types=("text",),
        class_values=(("high", "low", "middle"),),
        class_types=("text[]",),
        num_classes=(3,),
        normalizing_const=1.0,
        buffer_size=8,
        input_shapes=((4,),),
        target_shapes=((3,),),
        float_targets=(False,),
        segments=place.segments,
        key="t.__dist_key__",
        rows=place.bench.value("SELECT count(*) FROM points"),
    )


def made(visits: Visits, worker: Worker, tour: Sequence[BatchVisit]) -> Steps[list[VisitResult]]:
    """Train visits, and store what they have left."""
    trained = yield from visits.train(worker, tour)
    return (yield from visits.store(worker, trained))


def until(worker: Worker, steps: Steps[Any], mark: str) -> Statement:
    """Work through steps; the statement that comes next, the first with that mark in it."""
    rows: Rows | None = None
    while mark not in (statement := next(steps) if rows is None else steps.send(rows)).sql:
        rows = worker.session.run(statement.sql, statement.values)
    return statement


def test_the_log_says_running_before_training_starts(
    place: Place, worker: Worker, run: Run
) -> None:
    steps = made(place.visits, worker, [run.train(0)])
    until(worker, steps, BEGINNING)
    assert run.logged() == [("running", None, None)]
    steps.close()


def test_a_visit_is_completed_together_with_its_state(
    place: Place, worker: Worker, run: Run
) -> None:
    steps = made(place.visits, worker, [run.train(0)])
    last = until(worker, steps, END)
    assert run.logged() == [("running", None, None)]
    assert run.stored(1) == b""
    worker.session.run(last.sql, last.values)
    with pytest.raises(StopIteration) as stop:
        steps.send([])
    assert run.logged() == [("completed", stop.value.value[0].state_table, len(run.stored(1)))]
    assert stop.value.value[0].state_table == state_tables.state_table(
        run.run_id, CONFIG.mst_key, 1
    )


def test_a_session_killed_while_it_commits_leaves_neither_state_nor_log(
    place: Place, run: Run
) -> None:
    killed = place.worker(0)
    steps = made(place.visits, killed, [run.train(0)])
    last = until(killed, steps, END)
    holder = place.bench.another()
    holder.connection.autocommit = False
    holder.rows("SELECT FROM cerebro.visit WHERE run_id = %s FOR UPDATE", run.run_id)
    serving = backends(killed)
    killed.session.start(last.sql, last.values)
    eventually(lambda: killed.session.poll() and waits(place.bench, killed))
    place.bench.rows("SELECT pg_terminate_backend(%s)", session(killed).pid)
    with pytest.raises(ConnectionFailure):
        eventually(lambda: killed.session.poll() == 0)
    holder.close()
    eventually(lambda: not trainers(serving))
    assert run.logged() == [("running", None, None)]
    assert run.stored(1) == b""
    killed.session.close()


def session(worker: Worker) -> WorkerSession:
    """The session of a worker of PostgreSQL."""
    assert isinstance(worker.session, WorkerSession)
    return worker.session


def backends(worker: Worker) -> set[int]:
    """The processes that serve a worker's session."""
    greenplum = isinstance(worker.session.platform, Greenplum)
    here = "SELECT pid FROM gp_backend_info()" if greenplum else "SELECT pg_backend_pid()"
    return {pid for (pid,) in worker.session.run(here)}


def waits(bench: Workbench, worker: Worker) -> bool:
    """Whether a worker's session waits for a lock."""
    query = "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = %s"
    return bench.rows(query, session(worker).pid) == [(True,)]


def test_a_visit_starts_from_the_state_that_the_one_before_committed(
    place: Place, worker: Worker, team: Team, run: Run
) -> None:
    stayed = begun(place, worker, run.request.source)
    for number in (1, 2, 3):
        hopper, stays = team[number % 2], place.at(team, number % 2)
        drive(stays.session, made(place.visits, stays, [stayed.train(number % 2, number)]))
        drive(hopper.session, made(place.visits, hopper, [run.train(number % 2, number)]))
        assert same(run.stored(number), stayed.stored(number))
    assert not same(run.stored(2), run.stored(3))


def test_a_tour_leaves_what_its_visits_leave_one_by_one(
    place: Place, worker: Worker, run: Run
) -> None:
    if place.greenplum:
        pytest.skip("a worker of Greenplum has one segment")
    stayed = begun(place, worker, run.request.source)
    for number, segment in ((1, 0), (2, 1)):
        drive(worker.session, made(place.visits, worker, [stayed.train(segment, number)]))
    first, held = run.train(0), visit_jobs.make_later_state(run.run_id, CONFIG.mst_key, 1, None)
    where = Visit(1, CONFIG.mst_key, place.segments[1], "train")
    second = visit_jobs.make_train_visit(
        run.request, CONFIG, run.run_id, where, visit_jobs.Attempt(2, 1, 0, {}, 1), held
    )
    steps = made(place.visits, worker, [first, second])
    last = until(worker, steps, END)
    assert run.logged() == [("running", None, None)] and run.stored(1) == b"", (
        "nothing before all is done"
    )
    worker.session.run(last.sql, last.values)
    with pytest.raises(StopIteration) as stop:
        steps.send([])
    table = first.state_table
    assert [result.state_table for result in stop.value.value] == [None, table]
    assert same(run.stored(1), stayed.stored(2))
    assert run.logged() == [("completed", None, None), ("completed", table, len(run.stored(1)))]
    logged = (
        "SELECT epoch, segment_id, visit_no, attempt, kind, rows, form, threads, loss, ended_at "
        ">= started_at FROM cerebro.visit WHERE run_id = %s ORDER BY visit_no"
    )
    assert place.bench.rows(logged, run.run_id) == place.bench.rows(logged, stayed.run_id)
    in_turn = (
        "SELECT (SELECT ended_at FROM cerebro.visit WHERE (run_id, visit_no) = (%s, 1)) = "
        "started_at"
    )
    assert place.bench.value(
        f"{in_turn} FROM cerebro.visit WHERE (run_id, visit_no) = (%s, 2)", *[run.run_id] * 2
    )


def test_a_tour_leaves_what_its_evaluations_find_and_the_best_state_of_them(
    place: Place, worker: Worker, run: Run
) -> None:
    """Bit by bit what they come to one by one, though none of the states between is stored."""
    if place.greenplum:
        pytest.skip("a worker of Greenplum has one segment")
    apart = begun(place, worker, run.request.source)
    found = {}
    for epoch in (1, 2):
        for number in (2 * epoch - 1, 2 * epoch):
            drive(
                worker.session, made(place.visits, worker, [apart.train((number - 1) % 2, number)])
            )
        evaluation = apart.evaluation_of(epoch, apart.later(2 * epoch))
        parts = drive(worker.session, place.visits.evaluate(worker, evaluation))
        total = add_parts(parts[segment] for segment in sorted(parts))
        sums = Sums(evaluation.job.program, total["sums"], total["rows"])
        found[epoch] = drive(worker.session, place.visits.compute_metrics(worker, sums))
        if epoch == 1:
            best = BestState(
                apart.run_id, CONFIG.mst_key, 1, apart.later(2), place.segments[1], "", None
            )
            table = state_tables.best_table(apart.run_id, CONFIG.mst_key, 1)
            kept = drive(worker.session, place.visits.retain(worker, replace(best, table=table)))
    first, second = run.tour_of_epoch(1), run.tour_of_epoch(2)
    trained = drive(worker.session, place.visits.train(worker, [*first, *second]))
    assert run.logged() == [("running", None, None)], "nothing before all is stored"
    state, table = first[-1].state, state_tables.best_table(run.run_id, CONFIG.mst_key, 1)
    best = BestState(run.run_id, CONFIG.mst_key, 1, state, place.segments[1], table, None)
    drive(worker.session, place.visits.store(worker, trained._replace(best=best)))
    assert same(run.stored(1), apart.stored(4)), "a tour has one table"
    copies = [
        place.bench.rows(place.platform.state_rows_sql(*each)) for each in (best.stored, kept)
    ]
    assert copies[0] and [bytes(chunk) for _, chunk in copies[0]] == [
        bytes(chunk) for _, chunk in copies[1]
    ]
    assert (
        place.bench.value("SELECT best_epoch FROM cerebro.config WHERE run_id = %s", run.run_id)
        == 1
    )
    logged = (
        "SELECT epoch, dataset, name, value FROM cerebro.metric WHERE run_id = %s ORDER BY epoch, "
        "name"
    )
    expected = [
        (epoch, "training", "loss", told["training"]["loss"]) for epoch, told in found.items()
    ]
    assert place.bench.rows(logged, run.run_id) == expected
    rows = (
        "SELECT epoch, segment_id, attempt, status, rows, ended_at >= started_at FROM "
        "cerebro.evaluation WHERE run_id = %s ORDER BY epoch, segment_id"
    )
    assert place.bench.rows(rows, run.run_id) == place.bench.rows(rows, apart.run_id)


def test_a_state_is_stored_beside_the_next_visit_as_it_was(
    place: Place, worker: Worker, run: Run
) -> None:
    """Of a program of the same name or another one; and whether that visit has ended by then, or
    has not.
    """
    apart, beside = (
        begun(place, worker, run.request.source),
        begun(place, worker, run.request.source),
    )
    serving = backends(worker)
    drive(worker.session, made(place.visits, worker, [apart.train(0)]))
    drive(worker.session, made(place.visits, worker, [apart.train(0, 2)]))
    for number in (1, 2):
        first, second = run.train(0, number), beside.train(0, number)
        trained = drive(worker.session, place.visits.train(worker, [first]))
        assert place.visits.can_overlap(worker, trained, second.datasets)
        drive(worker.session, place.visits.begin(worker, [second]))
        if number == 2:
            eventually(lambda: idle(trainers(serving)))
        with pytest.raises(CerebroError, match="not fetched"):
            worker.session.run(
                f"SELECT cerebro_internal.job_start(){statements.dispatch_clause(worker)}"
            )
        drive(worker.session, place.visits.store(worker, trained))
        rest = drive(worker.session, place.visits.finish(worker, [second]))
        drive(worker.session, place.visits.store(worker, rest))
        assert same(run.stored(number), apart.stored(number)) and same(
            beside.stored(number), apart.stored(number)
        )
        order = (
            "SELECT v.ended_at <= w.started_at AND w.started_at <= v.stored_at AND v.stored_at <= "
            "w.stored_at FROM cerebro.visit v JOIN cerebro.visit w USING (visit_no) WHERE "
            "(v.run_id, w.run_id, visit_no) = (%s, %s, %s)"
        )
        assert place.bench.value(order, run.run_id, beside.run_id, number)


def test_what_could_not_begin_beside_a_state_costs_nothing_of_it(
    place: Place, worker: Worker, run: Run
) -> None:
    other = begun(place, worker, run.request.source)
    trained = drive(worker.session, place.visits.train(worker, [run.train(0)]))
    second = other.train(0)
    wrong = replace(
        second,
        job=replace(second.job, program={**second.job.program, "compile": {}}, program_key=None),
    )
    with pytest.raises(CerebroError):
        drive(worker.session, place.visits.begin(worker, [wrong]))
    drive(worker.session, place.visits.store(worker, trained))
    drive(worker.session, made(place.visits, worker, [other.train(0, attempt=2)]))
    assert same(run.stored(1), other.stored(1))
    assert [status for status, *_ in other.logged()] == ["failed", "completed"]


def test_a_tour_is_cut_where_the_trainer_does_not_keep_its_segments(
    place: Place, worker: Worker
) -> None:
    run = begun(place, worker, packed(place, "packed"))
    streaming = place.kind([TrainerOptions(trainers=2)], 0, lambda text: None)
    visit, other = run.train(0), place.worker(0)
    (result,) = drive(other.session, made(streaming, other, [visit, replace(visit, visit_no=2)]))
    other.session.close()
    assert run.logged() == [("completed", result.state_table, len(run.stored(1)))]


def test_states_of_other_segments_in_a_table_do_not_matter(
    place: Place, worker: Worker, team: Team, run: Run
) -> None:
    emptied = begun(place, worker, run.request.source)
    tables = state_tables.state_tables(run.run_id, CONFIG.mst_key)
    for number, segment in ((1, 0), (2, 1), (3, 1), (4, 0)):
        states = []
        for which, free in ((run, tables), (emptied, [])):
            serves = place.at(team, segment)
            drive(
                serves.session,
                made(place.visits, serves, [which.train(segment, number, free=free)]),
            )
            read = place.bench.rows(place.platform.state_rows_sql(*which.left(number)))
            assert [part for part, _ in read] == list(range(1, len(read) + 1))
            states.append(b"".join(bytes(chunk) for _, chunk in read))
        assert same(*states)
        others = 1 if place.greenplum and number > 2 else 0
        assert len(run.stored(number)) == (1 + others) * len(emptied.stored(number))


def test_a_table_that_nothing_was_written_to_takes_a_state_as_an_emptied_one_does(
    place: Place, worker: Worker, team: Team, run: Run
) -> None:
    emptied, serves = begun(place, worker, run.request.source), place.at(team, 0)
    tables = state_tables.state_tables(run.run_id, CONFIG.mst_key)
    for number in (1, 2):
        drive(
            serves.session,
            made(place.visits, serves, [run.train(0, number, free=tables, fresh=tables)]),
        )
        drive(serves.session, made(place.visits, serves, [emptied.train(0, number)]))
        assert run.stored(number) == emptied.stored(number)


def test_a_state_is_kept_apart_and_the_one_before_it_goes(
    place: Place, worker: Worker, team: Team, run: Run
) -> None:
    """Whoever reads the old one, such as a backup, keeps it as long as it does; others may copy."""
    named = "SELECT best_epoch, state_tables FROM cerebro.config WHERE run_id = %s"
    before = None
    for epoch, segment in ((1, 0), (2, 1)):
        serves, number = place.at(team, segment), epoch
        drive(serves.session, made(place.visits, serves, [run.train(segment, number)]))
        table = state_tables.best_table(run.run_id, CONFIG.mst_key, epoch)
        left = run.left(number)
        best = BestState(
            run.run_id, CONFIG.mst_key, epoch, run.later(number), left.segment_id, table, before
        )
        for _ in range(2):  # also again, where nobody heard that it was done
            kept = drive(worker.session, place.visits.retain(worker, best))
        for state in (kept, run.left(number)):
            read = place.bench.rows(place.platform.state_rows_sql(*state))
            assert [part for part, _ in read] == list(range(1, len(read) + 1))
        copied, original = (
            place.bench.rows(place.platform.state_rows_sql(*s)) for s in (kept, run.left(number))
        )
        alone = place.bench.rows(place.platform.state_rows_sql(table, None))
        assert [bytes(chunk) for _, chunk in copied] == [bytes(chunk) for _, chunk in original]
        assert [(part, bytes(chunk)) for part, chunk in alone] == [
            (part, bytes(chunk)) for part, chunk in copied
        ]
        found, tables = place.bench.row(named, run.run_id)
        assert (found, table in tables, before in tables) == (epoch, True, False)
        assert before is None or not place.bench.exists(before)
        before = table


def test_the_state_that_is_read_is_the_one_that_was_stored(
    place: Place, worker: Worker, another: Worker, run: Run
) -> None:
    drive(worker.session, made(place.visits, worker, [run.train(0)]))
    drive(another.session, place.visits.evaluate(another, run.evaluation(1, 1)))
    assert same(held(another, run.later(1).key), run.stored(1))


def held(worker: Worker, key: str) -> bytes:
    """The state of that name that a worker's trainer holds."""
    return b"".join(
        bytes(chunk)
        for (chunk,) in worker.session.run(
            "SELECT cerebro_internal.state_chunks(1000, %s)" + statements.dispatch_clause(worker),
            (key,),
        )
    )


def test_an_evaluation_changes_no_state(place: Place, worker: Worker, team: Team, run: Run) -> None:
    drive(worker.session, made(place.visits, worker, [run.train(0)]))
    before = (run.logged(), run.stored(0), run.stored(1))
    for segment in (0, 1):
        serves = place.at(team, segment)
        drive(serves.session, place.visits.evaluate(serves, run.evaluation(segment, 1)))
    assert (run.logged(), run.stored(0), run.stored(1)) == before
    assert same(held(worker, run.later(1).key), run.stored(1))
    serves = place.at(team, 1)
    drive(serves.session, made(place.visits, serves, [run.train(1, 2)]))
    straight = begun(place, worker, run.request.source)
    drive(worker.session, made(place.visits, worker, [straight.train(0)]))
    drive(serves.session, made(place.visits, serves, [straight.train(1, 2)]))
    assert same(run.stored(2), straight.stored(2)), "nor what training on from it gives"


def test_an_evaluation_gives_the_same_sums_wherever_it_is_done(
    place: Place, worker: Worker, another: Worker, run: Run
) -> None:
    drive(worker.session, made(place.visits, worker, [run.train(0)]))
    here = drive(another.session, place.visits.evaluate(another, run.evaluation(1, 1)))
    other = place.worker(1)
    there = drive(other.session, place.visits.evaluate(other, run.evaluation(1, 1, attempt=2)))
    other.session.close()
    assert here == there
    assert here[place.segments[1]]["training"]["rows"] == rows_of(place, "packed", 1)


def test_measuring_outside_a_run_gives_what_an_evaluation_gives(
    place: Place, worker: Worker, another: Worker, run: Run
) -> None:
    drive(worker.session, made(place.visits, worker, [run.train(0)]))
    visit = run.evaluation(1, 1)
    found = drive(another.session, place.visits.evaluate(another, visit))
    logged = place.bench.value("SELECT count(*) FROM cerebro.evaluation")
    measured = drive(
        another.session, place.visits.measure(another, visit.datasets, visit.state, visit.job)
    )
    assert measured == {visit.datasets[0].key: found[place.segments[1]]["training"]}
    assert place.bench.value("SELECT count(*) FROM cerebro.evaluation") == logged


def outputs_of(
    place: Place, visits_of: Visits, worker: Worker, run: Run, segment: int
) -> np.ndarray:
    """A line for each row of a segment after the first visit: its class, and the probabilities of
    all.
    """
    visit = run.evaluation(segment, 1)
    job = Job("outputs", visit_jobs.describe_program(run.request, CONFIG), visit.job.result_key)
    chunks = drive(
        worker.session, visits_of.read_outputs(worker, visit.datasets[0], visit.state, job)
    )
    return np.frombuffer(b"".join(chunks), np.float32).reshape(-1, 1 + 3)


def test_outputs_of_rows_are_those_that_an_evaluation_adds_up(
    place: Place, worker: Worker, another: Worker, run: Run
) -> None:
    drive(worker.session, made(place.visits, worker, [run.train(0)]))
    visit = run.evaluation(1, 1)
    ((loss, rows), *_) = drive(
        another.session, place.visits.measure(another, visit.datasets[:1], visit.state, visit.job)
    )[visit.datasets[0].key]["sums"]
    found = outputs_of(place, place.visits, another, run, 1)
    right = found[np.arange(len(found)), 1 + found[:, 0].astype(int)]
    assert len(found) == rows == rows_of(place, "packed", 1)
    assert -np.log(right.astype(np.float64)).sum() == pytest.approx(loss, rel=1e-5)
    streaming, fresh = place.kind([TrainerOptions(trainers=2)], 0, print), anew(another)
    assert outputs_of(place, streaming, fresh, run, 1).tobytes() == found.tobytes(), (
        "whether they are kept or not"
    )


def test_outputs_of_packed_rows_are_those_of_the_raw_ones(
    place: Place, worker: Worker, team: Team, run: Run
) -> None:
    drive(worker.session, made(place.visits, worker, [run.train(0)]))
    packed_rows = [
        outputs_of(place, place.visits, place.at(team, each), run, each)[:, 1:] for each in (0, 1)
    ]
    raw = [values for _, values in predictions(place, run, "public.points")]
    found, expected = (
        np.array(sorted(map(tuple, rows))) for rows in (np.concatenate(packed_rows), raw)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "relation",
    ["public.points", "(SELECT * FROM public.points)"],
    ids=["table", "rows without a place"],
)
def test_each_row_is_predicted_once(place: Place, worker: Worker, run: Run, relation: str) -> None:
    drive(worker.session, made(place.visits, worker, [run.train(0)]))
    found = [int(name) for name, _ in predictions(place, run, relation)]
    assert sorted(found) == [key for (key,) in place.bench.rows("SELECT id FROM points ORDER BY 1")]


def predictions(place: Place, run: Run, relation: str) -> list[tuple[str, list[float]]]:
    """The id of each raw row, and the probabilities of its classes after the first visit."""
    job = Job("predict", visit_jobs.describe_program(run.request, CONFIG), "p")
    oid = (
        place.bench.value("SELECT 'points'::regclass::oid::bigint")
        if relation == "public.points"
        else 0
    )
    raw = RawRows(
        relation, "t.id::text", f"ARRAY[{Column('x', 'real[]', 'float32', False).bytes_sql('t.x')}]"
    )
    session = place.session()
    rows = place.platform.raw_rows(session, oid, raw)
    session.close()
    request = {
        "arrays": [{"kind": "float32", "column": "x", "divide": 1.0}],
        "want": {"kind": "prob"},
        "classes": [3],
    }
    found: list[tuple[str, list[float]]] = []
    for number, post in enumerate(place.platform.assign_segments(rows.segments, 1)):
        serves = Worker(number, place.session(), segment_id=post)
        told = {"block": 10, "request": request}
        declare = drive(serves.session, place.visits.predict(serves, rows, run.later(1), job, told))
        if declare:
            found += predicted(serves.session, declare)
            finish = place.visits.end_prediction(serves)
            serves.session.run(finish.sql, finish.values)
        serves.session.close()
    return found


def predicted(session: Session, declare: str) -> Iterator[tuple[str, list[float]]]:
    """The identifiers of all blocks that a cursor gives, with the probabilities of three classes in
    their order.
    """
    session.run("BEGIN")
    session.run(declare)
    while rows := session.run(sql("score.fetch")):
        told = statements.parse_result([rows[0][1:]])
        lines = zip(
            *(map(float, told[name].strip("{}").split(",")) for name in ("row", "class", "value")),
            strict=True,
        )
        values = [value for _, _, value in sorted(lines)]
        yield from zip(
            json.loads(rows[0][0]),
            (values[at : at + 3] for at in range(0, len(values), 3)),
            strict=True,
        )
    session.run("COMMIT")


def rows_of(place: Place, table: str, segment: int) -> int:
    """Examples on one segment."""
    key = place.segments[segment]
    return int(
        place.bench.value(f"SELECT sum(x_shape[1]) FROM {table} WHERE __dist_key__ = %s", key)
    )


@pytest.mark.parametrize("cache_bytes", [1 << 30, 0], ids=["kept", "streamed"])
def test_all_rows_of_a_segment_come_once_in_order(
    place: Place, worker: Worker, cache_bytes: int
) -> None:
    """The table's physical order must not matter, that of buffer_id must."""
    streaming = place.kind([TrainerOptions(trainers=2)], cache_bytes, print)
    distributed = "DISTRIBUTED BY (__dist_key__)" if place.greenplum else ""
    states = []
    for name, buffer_id, order in (
        ("in_order", "buffer_id", "buffer_id"),
        ("scrambled", "buffer_id", "buffer_id * 7 % 5, x"),
        ("renumbered", "1000 - buffer_id", "buffer_id"),
    ):
        table = f"{name}_{cache_bytes}"
        place.bench.rows(
            f"CREATE TABLE {table} AS SELECT __dist_key__, x, label, x_shape, label_shape, "
            f"{buffer_id} AS buffer_id FROM packed ORDER BY {order} {distributed}"
        )
        run = begun(place, worker, packed(place, table))
        visit = run.train(0)
        assert visit.job.fit
        visit = replace(visit, job=replace(visit.job, fit=replace(visit.job.fit, shuffle=False)))
        (result,) = drive(worker.session, made(streaming, worker, [visit]))
        assert result.rows == rows_of(place, table, 0)
        states.append(run.stored(1))
    assert same(states[0], states[1])
    assert not same(states[0], states[2])


@pytest.mark.parametrize("part", [1, 7, 64])
def test_into_what_parts_a_buffer_is_cut_does_not_matter(
    place: Place, worker: Worker, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    whole, cut = (begun(place, worker, packed(place, "packed")) for _ in range(2))
    drive(worker.session, made(place.visits, worker, [whole.train(0)]))
    monkeypatch.setattr(statements, "PART_BYTES", part)
    fresh = anew(worker)
    drive(fresh.session, made(place.visits, fresh, [cut.train(0)]))
    assert same(whole.stored(1), cut.stored(1))


def test_the_caller_is_told_once_of_a_table_that_does_not_fit(
    place: Place, worker: Worker, team: Team
) -> None:
    told: list[str] = []
    small = place.kind([TrainerOptions(trainers=2)], 100, told.append)
    run = begun(place, worker, packed(place, "packed"))
    fresh = (anew(team[0]), anew(team[1]))
    for number in (0, 1):
        serves = place.at(fresh, number)
        drive(serves.session, made(small, serves, [run.train(number, number + 1)]))
    assert [text.partition(" takes ")[0] for text in told] == [
        f"segment {place.segments[0]} of packed"
    ]


def test_what_a_trainer_was_given_is_the_partition(place: Place, worker: Worker, run: Run) -> None:
    fresh = anew(worker)
    steps = made(place.visits, fresh, [run.train(0)])
    statement = until(fresh, steps, "cerebro_internal.dataset_close")
    ((summary,),) = fresh.session.run(statement.sql, statement.values)
    steps.close()
    found = summary if isinstance(summary, dict) else json.loads(summary)
    buffers, size = place.bench.row(
        "SELECT count(*), sum(octet_length(x) + octet_length(label)) FROM packed WHERE "
        "__dist_key__ = %s",
        place.segments[0],
    )
    assert (found["buffers"], found["rows"], found["bytes"]) == (
        buffers,
        rows_of(place, "packed", 0),
        size,
    )


@pytest.mark.parametrize("done", range(5))
def test_steps_may_be_abandoned_at_any_statement(
    place: Place, worker: Worker, run: Run, done: int
) -> None:
    fresh = anew(worker)
    steps = made(place.visits, fresh, [run.train(0)])
    statement = next(steps)
    for _ in range(done):
        statement = steps.send(fresh.session.run(statement.sql, statement.values))
    steps.close()
    assert run.logged() in ([], [("running", None, None)])
    assert (run.stored(0), run.stored(1)) == (b"", b"")
    again = anew(worker)
    drive(again.session, made(place.visits, again, [run.train(0, attempt=2)]))
    assert run.logged()[-1] == (
        "completed",
        state_tables.state_table(run.run_id, CONFIG.mst_key, 1),
        len(run.stored(1)),
    )


def test_a_config_that_cannot_train_is_logged_as_failed(
    place: Place, worker: Worker, run: Run
) -> None:
    visit = run.train(0)
    visit.job.program["compile"]["optimizer"]["config"]["learning_rate"] = 1e38
    with pytest.raises(Exception, match="the training loss became"):
        drive(worker.session, made(place.visits, worker, [visit]))
    assert run.logged() == [("failed", None, None)]
    assert run.stored(1) == b""
    drive(worker.session, made(place.visits, worker, [run.train(0, attempt=2)]))
    assert run.logged()[-1][0] == "completed", "the trainer goes on with other work"
