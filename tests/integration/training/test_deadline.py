"""A run whose budget is over, with real sessions and trainers: what is under way is cancelled, what
was trained counts.

The epoch loop runs in the test's own process, by a clock that is put forward when the log has what
the test waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from models import CLASSES
from processes import eventually, trainers
from specs import spec_of
from states import same, stored
from workbench import Workbench, compile_text

from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.params.fit_params import parse_fit_params
from cerebro_plpy.configs.params.output_losses import LoggedMetric
from cerebro_plpy.configs.run_spec import Ranking
from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.worker_sessions import Identity, WorkerSession
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.platform.postgres.adapter import Postgres
from cerebro_plpy.platform.postgres.visits import PostgresVisits
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.run.loop.epoch_loop import EpochLoop
from cerebro_plpy.run.request.run_request import Deadline, FitRequest
from cerebro_plpy.run.workers.run_context import RunContext
from cerebro_plpy.tables.architectures import StoredModel
from cerebro_plpy.trainer_client.settings import TrainerOptions

pytestmark = [pytest.mark.long, pytest.mark.postgresql("the epoch loop is that of any platform")]
SEGMENTS, EPOCHS = 2, 3
COMPILE = compile_text("Adam(learning_rate=0.01)")
QUICK = "batch_size=8"
ENDLESS = "batch_size=1,epochs=1000000"
KEEPING = (
    "batch_size=8,callbacks=[EarlyStopping(monitor='loss',patience=9,restore_best_weights=True)]"
)
LAST_VISIT, CANCEL = 1.0, 2.0
BOTH = {"metrics_compute_frequency": 1, "schedule": "replay"}
VISITS = (
    "SELECT mst_key, status, error FROM cerebro.visit WHERE run_id = %s ORDER BY mst_key, visit_no"
)
CONFIGS = (
    "SELECT mst_key, status, reason, best_epoch FROM cerebro.config WHERE run_id = %s ORDER BY "
    "mst_key"
)
METRICS = (
    "SELECT mst_key, epoch, dataset, name, value FROM cerebro.metric WHERE run_id = %s ORDER BY "
    "1, 2, 3, 4"
)


@dataclass
class Scene:
    """A run in this process: its sessions, and a clock that stands still until something is in the
    log.
    """

    bench: Workbench
    sessions: list[WorkerSession]
    now: float = 0.0
    run_id: int = 0
    moments: list[tuple[Callable[[int], bool], float]] = field(default_factory=list)

    def check(self) -> None:
        """Put the clock forward when the next thing to wait for has come."""
        if self.moments and self.moments[0][0](self.run_id):
            self.now = self.moments.pop(0)[1]

    def train(self, fits: list[str]) -> EpochLoop:
        """Train configurations with these fit parameters."""
        request = requested(self.bench, fits)
        control, *sessions = self.sessions
        self.run_id = control.run(sql("run.reserve"))[0][0]
        log = RunLog(control, self.run_id)
        log.begin(request, self.bench.pid())
        log.make_state_tables(request, [config.mst_key for config in request.configs])
        around = RunContext(self.check, lambda *_: None, lambda *_: None, print, lambda _: False)
        workers = [Worker(number, session) for number, session in enumerate(sessions)]
        visits = PostgresVisits([TrainerOptions(trainers=2)] * len(workers), 1 << 30, print)
        orchestrator = EpochLoop(visits, request, workers, log, around, {})
        orchestrator.run()
        log.end()
        return orchestrator

    def state(self, orchestrator: EpochLoop, mst_key: int) -> bytes:
        """The state of a configuration."""
        table = orchestrator.model_states[mst_key].table
        return b"".join(
            bytes(chunk) for (chunk,) in self.bench.rows(f"SELECT chunk FROM {table} ORDER BY part")
        )


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.pack("packed", SEGMENTS)


@pytest.fixture
def scene(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    server = bench.value(
        sql("session.server").replace("session_user::text", "''").rsplit(",", 1)[0]
    )
    platform = Postgres()
    caller: Any = bench
    who = Identity(
        "cerebro", "cerebro", bench.url, server, platform, platform.session_options(caller)
    )
    made = Scene(
        bench, [WorkerSession(who, "cerebro_db worker", lambda: None) for _ in range(1 + SEGMENTS)]
    )
    clock = SimpleNamespace(monotonic=lambda: made.now)
    for module in ("run.state.limits", "database.sessions.async_dispatcher"):
        monkeypatch.setattr(f"cerebro_plpy.{module}.time", clock)
    yield made
    for session in made.sessions:
        session.close()


def requested(bench: Workbench, fits: list[str]) -> FitRequest:
    """A request with a deadline over all of the packed table, first configurations first."""
    oid = bench.value("SELECT 'packed'::regclass::oid::bigint")
    source = PackedTable(
        relation=Relation("packed", "public", "packed", oid, 'public."packed"'),
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
        segments=tuple(range(SEGMENTS)),
        key="t.__dist_key__",
        rows=bench.value("SELECT count(*) FROM points"),
    )
    accuracy = (LoggedMetric("accuracy", "accuracy"),)
    return FitRequest(
        spec=spec_of(
            source,
            EPOCHS,
            tuple(range(1, EPOCHS + 1)),
            schedule="foremost",
            ranking=Ranking("training", "accuracy", descending=True),
        ),
        source=source,
        validation=None,
        configs=tuple(
            Config(
                key, 1, COMPILE, fit, parse_compile_params(COMPILE), parse_fit_params(fit), accuracy
            )
            for key, fit in enumerate(fits, 1)
        ),
        architectures={1: StoredModel(1, CLASSES, False)},
        architecture_table=source.relation,
        workers=SEGMENTS,
        gpus=(),
        backends=dict.fromkeys(range(1, len(fits) + 1), "tensorflow"),
        deadline=Deadline(LAST_VISIT, CANCEL, CANCEL),
    )


def select(bench: Workbench, name: str, fits: list[str]) -> None:
    """A model selection table with the configurations of a request."""
    bench.rows(
        f"CREATE TABLE {name} (mst_key integer, model_id integer, compile_params text, fit_params "
        "text)"
    )
    for key, fit in enumerate(fits, 1):
        bench.rows(f"INSERT INTO {name} VALUES (%s, 1, %s, %s)", key, COMPILE, fit)
    bench.rows(
        f"CREATE TABLE {name}_summary AS SELECT 'models'::text AS model_arch_table, NULL::text AS "
        "object_table"
    )


def test_what_is_under_way_is_cancelled_and_sessions_stay(bench: Workbench, scene: Scene) -> None:
    """One is trained on a segment and waits for the other, where the second would train for
    ever.
    """

    def seen(query: str, status: str) -> Callable[[int], bool]:
        found = f"SELECT count(*) FROM cerebro.{query} AND run_id = %s AND status = %s"
        return lambda run_id: bench.value(found, run_id, status) > 0

    scene.moments = [
        (seen("visit WHERE mst_key = 1", "completed"), 0.0),
        (seen("visit WHERE mst_key = 2", "running"), LAST_VISIT + 0.5),
        (seen("evaluation WHERE mst_key = 1", "completed"), CANCEL),
    ]
    fits = [QUICK, ENDLESS]
    orchestrator = scene.train(fits)
    over = "the budget was over"
    assert bench.rows(VISITS, scene.run_id) == [(1, "completed", None), (2, "failed", over)]
    assert bench.rows(CONFIGS, scene.run_id) == [
        (1, "stopped", over, None),
        (2, "stopped", over, None),
    ]
    assert orchestrator.model_states.keys() == {1} and orchestrator.failed == {}
    first, second = scene.sessions[1:]
    assert [session.run("SELECT 1") for session in (first, second)] == [[(1,)], [(1,)]]
    eventually(lambda: trainers({first.pid}) and not trainers({second.pid}))
    select(bench, "two", fits)
    again = bench.fit("packed", "again", "two", EPOCHS, replay_run=scene.run_id, **BOTH)
    assert bench.rows(VISITS, again) == [(1, "completed", None)]
    assert bench.rows(CONFIGS, again) == bench.rows(CONFIGS, scene.run_id)
    assert same(stored(bench, "again", 1), scene.state(orchestrator, 1))


def test_the_midst_of_an_epoch_is_evaluated_kept_and_replayed(
    bench: Workbench, scene: Scene
) -> None:
    done = "SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND status = 'completed'"
    scene.moments = [(lambda run_id: bench.value(done, run_id) == 1, LAST_VISIT + 0.5)]
    orchestrator = scene.train([KEEPING])
    made = bench.rows(VISITS, scene.run_id)
    assert made == [(1, "completed", None)] * len(made) and len(made) < EPOCHS * SEGMENTS
    assert bench.rows(CONFIGS, scene.run_id) == [(1, "stopped", "the budget was over", 1)]
    assert {epoch for _, epoch, *_ in bench.rows(METRICS, scene.run_id)} == {1}
    select(bench, "one", [KEEPING])
    again = bench.fit("packed", "repeated", "one", EPOCHS, replay_run=scene.run_id, **BOTH)
    for query in (VISITS, CONFIGS, METRICS):
        assert bench.rows(query, again) == bench.rows(query, scene.run_id)
    assert same(stored(bench, "repeated", 1), scene.state(orchestrator, 1))
