"""Rows that are brought to a trainer of another segment, as Greenplum does it for boosted trees.

PostgreSQL executes the statements of Greenplum, without their clauses of distribution. So nothing
here depends on where rows are stored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pytest
from specs import spec_of
from states import same
from test_platform import packed
from tree_tables import make_architecture
from workbench import Row, Workbench, compile_text

from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.params.fit_params import parse_fit_params
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Steps, drive
from cerebro_plpy.database.sessions.worker_sessions import Identity, WorkerSession
from cerebro_plpy.errors import ConfigFailure
from cerebro_plpy.platform import state_tables
from cerebro_plpy.platform.greenplum.adapter import Greenplum
from cerebro_plpy.platform.greenplum.visits import GreenplumVisits
from cerebro_plpy.platform.postgres.adapter import Postgres
from cerebro_plpy.platform.postgres.visits import PostgresVisits
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.platform.training_platform import TrainingPlatform
from cerebro_plpy.platform.visit_protocol import BatchResult, BatchVisit, EvaluateVisit, Worker
from cerebro_plpy.platform.visits import Visits
from cerebro_plpy.records import replace
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.run.request import visit_jobs
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.run.state import config_jobs
from cerebro_plpy.run.state.config_state import ConfigHistory, ConfigState
from cerebro_plpy.run.workers.framework_choice import Probe
from cerebro_plpy.scheduling.schedule import schedule, visit_batches
from cerebro_plpy.scheduling.schedule.schedule import Plan, Visit
from cerebro_plpy.scheduling.schedule.visit_batches import BatchLimit
from cerebro_plpy.tables.architectures import StoredModel
from cerebro_plpy.trainer_client.settings import TrainerOptions

pytestmark = pytest.mark.postgresql("Greenplum has its own tests of these statements")
pytest.importorskip("lightgbm", reason="without LightGBM, which is not installed")

SEGMENTS = (0, 1)
EPOCHS = 2
CONFIG = Config(
    mst_key=1,
    model_id=1,
    compile_text="",
    fit_text="",
    compile=parse_compile_params(compile_text()),
    fit=parse_fit_params("batch_size=8"),
)
INPUTS = {"numbers": 0, "indicators": 0, "missing": [], "cardinalities": [], "vectors": [4]}
TREES = json.dumps(make_architecture(inputs=INPUTS, units=3, trees=6, epochs=EPOCHS))
DISTRIBUTION = re.compile(r"DISTRIBUTED BY \(\w+\)")
ENOUGH_BYTES = 1 << 30


class LocalSession(WorkerSession):
    """A session on PostgreSQL that executes the statements of Greenplum."""

    def start(self, statement: str, values: Sequence[object] = ()) -> None:
        super().start(DISTRIBUTION.sub("", statement), values)


class Server(NamedTuple):
    """A worker on a kind of server, which trains trees over two segments."""

    bench: Workbench
    worker: Worker
    make_visits: Callable[..., Visits]
    segments: tuple[int, ...] = SEGMENTS

    @property
    def plan(self) -> Plan:
        """The plan of a run of the config."""
        return Plan(
            EPOCHS,
            self.segments,
            dict.fromkeys(self.segments, self.worker.number),
            frozenset({EPOCHS}),
            whole_epoch_keys=frozenset({CONFIG.mst_key}),
            is_segment_bound=not self.worker.is_replaceable,
        )

    def visits(self, cache_bytes: int = ENOUGH_BYTES) -> Visits:
        """The visits of a worker whose trainer may cache so many bytes."""
        return self.make_visits([TrainerOptions()], cache_bytes, lambda text: None)

    def begin(self, tree_period: int = 1) -> Run:
        """Begin a run of the config, with a worker that knows nothing of its trainer."""
        place: Any = self
        source = packed(place, "packed")
        request = FitRequest(
            spec=spec_of(source, EPOCHS, (EPOCHS,), seed=4, tree_period=tree_period),
            source=source,
            validation=None,
            configs=(CONFIG,),
            architectures={1: StoredModel(1, TREES, False)},
            architecture_table=source.relation,
            workers=1,
            gpus=(),
            backends={CONFIG.mst_key: "tensorflow"},
        )
        session = self.worker.session
        run_id = session.run(sql("run.reserve"))[0][0]
        log = RunLog(session, run_id)
        log.begin(request, self.bench.pid())
        log.make_state_tables(request, [CONFIG.mst_key])
        worker = Worker(0, session, segment_id=self.worker.segment_id)
        state = ConfigState.restore(ConfigHistory(), request, CONFIG, run_id)
        return Run(self._replace(worker=worker), state)


class Run(NamedTuple):
    """A run of the config, of which nothing has been done yet."""

    server: Server
    state: ConfigState

    def train(self, cache_bytes: int = ENOUGH_BYTES) -> BatchResult:
        """Train both epochs, evaluate them, and store the last state."""
        plan = self.server.plan
        progress = schedule.start(plan, CONFIG.mst_key)
        whole_run = BatchLimit(EPOCHS * len(self.server.segments), evaluations=1)
        batch = visit_batches.build_whole_batch(plan, progress, whole_run)
        self.state.count_attempt(batch)
        visits = config_jobs.build_visits(self.state, batch, 0, {})
        worker = self.server.worker
        steps = train_and_store(self.server.visits(cache_bytes), worker, visits)
        return drive(worker.session, steps)

    def make_evaluation(self, segment: int) -> EvaluateVisit:
        """The evaluation of the stored state on a segment."""
        state = self.state
        visit = Visit(EPOCHS, CONFIG.mst_key, segment, "evaluate")
        table = state_tables.state_table(state.run_id, CONFIG.mst_key, 1)
        stored = StoredState(table, SEGMENTS[-1])
        last = EPOCHS * len(SEGMENTS)
        source = visit_jobs.make_later_state(state.run_id, CONFIG.mst_key, last, stored)
        return visit_jobs.make_evaluate_visit(
            state.request, CONFIG, state.run_id, (visit,), 2, source
        )

    @property
    def stored(self) -> bytes:
        """The stored state."""
        table = state_tables.state_table(self.state.run_id, CONFIG.mst_key, 1)
        chunks = self.server.bench.rows(f"SELECT chunk FROM {table} ORDER BY part")
        return b"".join(bytes(chunk) for (chunk,) in chunks)

    @property
    def logged(self) -> list[Row]:
        """Each visit in the log."""
        return self.server.bench.rows(
            "SELECT visit_no, segment_id, status, rows, loss, state_bytes > 0 FROM cerebro.visit "
            "WHERE run_id = %s ORDER BY 1",
            self.state.run_id,
        )


def train_and_store(
    visits: Visits, worker: Worker, batch: Sequence[BatchVisit]
) -> Steps[BatchResult]:
    """Make the visits of a batch and store the state; return what the trainer replied."""
    result = yield from visits.train(worker, batch)
    yield from visits.store(worker, result)
    return result


@pytest.fixture(scope="module")
def tables(bench: Workbench, shared_superuser: Workbench) -> None:
    """The packed table, and the table by which statements find a segment."""
    bench.pack("packed", len(SEGMENTS))
    shared_superuser.rows(
        "CREATE TABLE cerebro.segment_key AS SELECT n AS key FROM generate_series(0, 9) AS n; "
        "GRANT SELECT ON cerebro.segment_key TO PUBLIC"
    )


@pytest.fixture(scope="module")
def near(bench: Workbench, tables: None) -> Iterator[Server]:
    """A server whose workers read all rows."""
    yield from open_server(bench, Postgres(), PostgresVisits, WorkerSession)


@pytest.fixture(scope="module")
def apart(bench: Workbench, tables: None) -> Iterator[Server]:
    """A server whose worker serves the second segment only, the home of the config."""
    yield from open_server(bench, Greenplum(), GreenplumVisits, LocalSession)


def open_server(
    bench: Workbench,
    adapter: TrainingPlatform,
    make_visits: Callable[..., Visits],
    session: type[WorkerSession],
) -> Iterator[Server]:
    caller: Any = bench
    address = sql("session.server").replace("session_user::text", "''").rsplit(",", 1)[0]
    who = Identity(
        "cerebro",
        "cerebro",
        bench.url,
        bench.value(address),
        adapter,
        Postgres().session_options(caller),
    )
    (segment,) = adapter.assign_segments(SEGMENTS[-1:], 1)
    worker = Worker(0, session(who, "cerebro_db worker", lambda: None), segment_id=segment)
    yield Server(bench, worker, make_visits)
    worker.session.close()


@pytest.mark.parametrize("tree_period", [1, 3])
def test_trees_do_not_depend_on_where_their_rows_are_stored(
    near: Server, apart: Server, tree_period: int
) -> None:
    runs = [server.begin(tree_period) for server in (near, apart)]
    replies = [run.train().results for run in runs]
    assert same(runs[0].stored, runs[1].stored)
    assert runs[0].logged == runs[1].logged
    assert [row[1] for row in runs[1].logged] == [0, 1] * EPOCHS
    assert [row[-1] for row in runs[1].logged] == [None, None, None, True]
    sampled: dict[int, int] = dict(
        near.bench.rows(
            "SELECT __dist_key__, sum(x_shape[1]) FROM packed "
            "WHERE mod(buffer_id, %s) = 0 GROUP BY 1",
            tree_period,
        )
    )
    assert [row[3] for row in runs[1].logged] == [sampled[row[1]] for row in runs[1].logged]
    evaluated = [list(results[-1]["datasets"].values()) for results in replies]
    assert evaluated[0] == evaluated[1] and len(evaluated[0]) == len(SEGMENTS)


def test_rows_that_were_brought_leave_no_table(apart: Server) -> None:
    run = apart.begin()
    run.train()
    query = "SELECT count(*) FROM pg_class WHERE relname LIKE 'cerebro_buffers%'"
    assert apart.worker.session.run(query) == [(0,)]


def test_trees_need_memory_for_the_rows_of_all_segments(apart: Server) -> None:
    """Rows of the worker's own segment alone do not suffice."""
    own = apart.bench.value(
        "SELECT sum(octet_length(x) + octet_length(label)) FROM packed WHERE __dist_key__ = %s",
        SEGMENTS[-1],
    )
    run = apart.begin()
    with pytest.raises(ConfigFailure, match="all rows at once"):
        run.train(cache_bytes=int(own * 1.5))
    assert run.logged == []


@pytest.mark.parametrize("tree_period", [1, 3])
@pytest.mark.parametrize("is_of_group", [False, True])
def test_rows_of_another_segment_are_streamed_to_an_evaluation(
    near: Server, apart: Server, tree_period: int, is_of_group: bool
) -> None:
    """An evaluation of a segment does not depend on where and how its trainer reads the rows."""
    sums = []
    for server, cache_bytes in ((near, ENOUGH_BYTES), (near, 0), (apart, 0)):
        run = server.begin(tree_period)
        run.train()
        evaluate = run.make_evaluation(SEGMENTS[0])
        ((name, rows),) = evaluate.partitions
        if is_of_group:
            rows = replace(rows, buffers=(0, 1))
        evaluate = replace(evaluate, partitions=((name, rows),))
        fresh = Worker(0, server.worker.session, segment_id=server.worker.segment_id)
        steps = server.visits(cache_bytes).evaluate(fresh, evaluate)
        sums.append(drive(fresh.session, steps))
    assert sums[0] == sums[1] == sums[2]
    buffers = "buffer_id < 2 AND" if is_of_group else ""
    expected = near.bench.value(
        f"SELECT sum(x_shape[1]) FROM packed WHERE {buffers} mod(buffer_id, %s) = 0 "
        "AND __dist_key__ = %s",
        tree_period,
        SEGMENTS[0],
    )
    assert sums[0][SEGMENTS[0]]["training"]["rows"] == expected


@pytest.mark.parametrize("tree_period", [1, 3])
def test_a_worker_of_any_segment_times_trees(apart: Server, tree_period: int) -> None:
    """It times them on rows of its own segment, of a sample if trees learn from one."""
    run = apart.begin(tree_period)
    worker = run.server.worker
    probe = Probe(apart.visits(), worker, RunLog(worker.session, run.state.run_id))
    timing = probe.time(run.state.request, CONFIG, rows=64)
    assert timing is not None and timing["seconds_per_row"] > 0
