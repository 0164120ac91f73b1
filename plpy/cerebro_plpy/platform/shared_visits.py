"""Visits as every platform makes them; how a state passes to and from a trainer is left to each.

Each training visit is three transactions: the log row; the job in the trainer, which reads the old state;
the new state with the log row that says which table holds it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from cerebro_plpy.database import strict_json
from cerebro_plpy.database.dispatch import Rows, Statement, Steps
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import LOCK_NOT_AVAILABLE, CerebroError
from cerebro_plpy.platform import state_tables
from cerebro_plpy.platform.job import Dataset, Job, RawRows, StateSource, Sums
from cerebro_plpy.platform.protocol import BestState, EvaluateVisit, JoinedState, TrainVisit, VisitResult, Worker
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.platform.statements import call, job_result, join, load, megabytes, stream
from cerebro_plpy.trainer.settings import TrainerOptions


class SharedVisits(ABC):
    """See `protocol.Visits` for the laws."""

    def __init__(
        self, trainers: Sequence[TrainerOptions], cache_bytes: int | None, note: Callable[[str], None]
    ) -> None:
        """`trainers` says how that of each worker is started, by its number; the cache is that of each trainer, None
        for what its machine has room for.

        `note` tells the caller something.
        """
        self._trainers = trainers
        self._cache_bytes = cache_bytes
        self._note = note
        self._noted: set[str] = set()

    @abstractmethod
    def _pass_state(self, worker: Worker, state: StateSource, first: bool) -> list[Statement]:
        """Pass a state to the trainer; it is the `first` in its transaction, or comes after another one."""

    @abstractmethod
    def _visit_end(self, visit: TrainVisit, table: str) -> str:
        """What stores the new state in this table, and says so in the log."""

    @abstractmethod
    def _stored(self, stored: StoredState) -> Statement:
        """What stores the state that the trainer holds in an empty table."""

    @abstractmethod
    def predict(
        self, worker: Worker, rows: RawRows, state: StateSource, job: Job, request: Mapping[str, Any]
    ) -> Steps[str | None]:
        """See `Visits.predict`."""

    def start(self, worker: Worker) -> Steps[None]:
        """Start the trainer of a worker that has none."""
        if not worker.memory.started:
            request = json.dumps({**vars(self._trainers[worker.number]), "framework": worker.framework})
            hello = job_result((yield call(worker, "visit.trainer_start", request)))
            worker.memory.start(hello, self._cache_bytes)

    def train(self, worker: Worker, visit: TrainVisit) -> Steps[VisitResult]:
        """Train one visit, or average what others have left."""
        yield from self._prepare(worker, visit.datasets)
        run = (visit.run_id, visit.mst_key, visit.visit_no, visit.attempt)
        begin = (visit.run_id, visit.epoch, visit.mst_key, visit.dataset.segment_id, visit.visit_no, visit.attempt)
        yield Statement(sql("visit.visit_begin"), (*begin, worker.session.pid, visit.job.kind))
        try:
            done = yield from self._job(worker, visit.job, visit.datasets, visit.state)
            logged = (done["rows"], done["form"], done["threads"], done["loss"], done["seconds"])
            table = yield from self._store(worker, visit, logged, run)
        except CerebroError as error:
            worker.memory.lost_state()
            yield Statement(sql("visit.visit_failed"), (error.message, *run))
            raise
        return VisitResult(
            rows=done["rows"],
            loss=done["loss"],
            seconds=done["seconds"],
            state_table=table,
            timings=done["timings"],
            fallback=done["fallback"],
            warnings=done["warnings"],
        )

    def _store(self, worker: Worker, visit: TrainVisit, logged: tuple[object, ...], run: tuple[int, ...]) -> Steps[str]:
        """Write the new state and the log row; the table that took the state.

        Someone who reads a state table for long, such as a backup, must not stop the run: after a short
        wait the state goes to a fresh table.
        """

        def store(table: str) -> Statement:
            return Statement(self._visit_end(visit, table), (*logged, table, *run))

        try:
            if visit.replaced_table:
                yield from self._make_table(worker, visit, visit.state_table)
            yield store(visit.state_table)
        except CerebroError as error:
            if error.sqlstate != LOCK_NOT_AVAILABLE:
                raise
            fresh = state_tables.spare_table(visit.run_id, visit.mst_key, visit.visit_no, visit.attempt)
            yield from self._make_table(worker, visit, fresh)
            yield store(fresh)
            return fresh
        if visit.replaced_table:
            yield from self._drop_table(visit.run_id, visit.replaced_table)
        return visit.state_table

    def _make_table(self, worker: Worker, visit: TrainVisit, name: str) -> Steps[None]:
        # An earlier attempt may have made it.
        create = f"{worker.session.platform.state_table(name)}; {sql('run.add_state_table')}"
        yield Statement(create, (name, visit.run_id, visit.mst_key, name))

    def _drop_table(self, run_id: int, name: str) -> Steps[None]:
        try:
            yield Statement(sql("run.drop_state_table", state=name), (name, run_id, name))
        except CerebroError as error:
            if error.sqlstate != LOCK_NOT_AVAILABLE:
                raise  # else it goes at the end of the run

    def evaluate(self, worker: Worker, visit: EvaluateVisit) -> Steps[dict[str, Any]]:
        """Evaluate one visit; per data set (training, validation) its rows and sums."""
        yield from self._prepare(worker, visit.datasets)
        key = (visit.run_id, visit.epoch, visit.mst_key, visit.datasets[0].segment_id, visit.attempt)
        yield Statement(sql("visit.evaluation_begin"), key)
        try:
            done = yield from self._job(worker, visit.job, visit.datasets, visit.state)
        except CerebroError as error:
            worker.memory.lost_state()
            yield Statement(sql("visit.evaluation_end"), ("failed", None, error.message, *key))
            raise
        rows = sum(part["rows"] for part in done["datasets"].values())
        yield Statement(sql("visit.evaluation_end"), ("completed", rows, None, *key))
        return {name: done["datasets"][d.key] for name, d in zip(visit.names, visit.datasets)}

    def probe(self, worker: Worker, dataset: Dataset, state: StateSource, job: Job) -> Steps[dict[str, Any]]:
        """Time a configuration on the first buffer of a partition; nothing is logged or kept."""
        yield from self._prepare(worker, (dataset,))
        worker.memory.lost_state()
        return (yield from self._job(worker, job, (dataset,), state))

    def restore(self, worker: Worker, state: StateSource, job: Job) -> Steps[bool]:
        """Whether all of a state fits the program of a job; ConfigFailure where not even its weights do."""
        yield from self._prepare(worker, ())
        worker.memory.lost_state()
        done = yield from self._job(worker, job, (), state)
        return bool(done["whole"])

    def join(self, worker: Worker, joined: JoinedState, job: Job) -> Steps[StoredState]:
        """Make a state of the weights of several, in a table of its own."""
        yield from self._prepare(worker, ())
        yield from self._job(worker, job, (), joined.state)
        made = sql("run.add_state_table"), (joined.table, joined.run_id, joined.mst_key, joined.table)
        stored = StoredState(joined.table, joined.segment_id)
        table = Statement(worker.session.platform.state_table(joined.table))
        yield join([table, Statement(*made), self._stored(stored)])
        return stored

    def measure(
        self, worker: Worker, datasets: tuple[Dataset, ...], state: StateSource, job: Job
    ) -> Steps[dict[str, Any]]:
        """Evaluate outside a run, without a log; per data set key its rows and sums."""
        yield from self._prepare(worker, () if state.sealed else datasets)
        done = yield from self._job(worker, job, datasets, state)
        return dict(done["datasets"])

    def _collect(self, worker: Worker, state: StateSource, job: Job, request: Mapping[str, Any]) -> Steps[None]:
        """Open a prediction job for rows in blocks."""
        yield from self._prepare(worker, ())
        yield join([*self._begin(worker, job, (), state), call(worker, "score.collect", json.dumps(request))])
        worker.memory.lost_state()

    def predicted(self, worker: Worker) -> Statement:
        """End a prediction job whose blocks have been fetched."""
        return call(worker, "visit.job_finish")

    def results(self, worker: Worker, sums: Sums) -> Steps[dict[str, Any]]:
        """Final metrics from sums over segments."""
        yield from self._prepare(worker, ())
        request = strict_json.dumps(worker.memory.sums(sums))
        return job_result((yield call(worker, "visit.metric_results", request)))

    def keep(self, worker: Worker, best: BestState) -> Steps[StoredState]:
        """Copy a state and log it as the best."""
        platform = worker.session.platform
        made = sql("run.add_state_table"), (best.table, best.run_id, best.mst_key, best.table)
        yield join(
            [
                Statement(platform.state_table(best.table)),
                Statement(*made),
                Statement(platform.state_copy(best.state.table, best.state.segment_id, best.table)),
                Statement(sql("run.best_epoch"), (best.epoch, best.run_id, best.mst_key)),
            ]
        )
        if best.replaced_table:
            yield from self._drop_table(best.run_id, best.replaced_table)
        return StoredState(best.table, best.state.segment_id)

    def _prepare(self, worker: Worker, datasets: Sequence[Dataset]) -> Generator[Statement, Rows, None]:
        """Start the trainer and load the partitions that it has not seen yet."""
        yield from self.start(worker)
        for dataset in filter(worker.memory.lacks, datasets):
            loaded = job_result((yield load(worker, dataset)))
            worker.memory.loaded(dataset, loaded["cached"])
            self._tell(dataset, loaded)

    def _tell(self, dataset: Dataset, loaded: Mapping[str, Any]) -> None:
        """Say of the first partition of a table that is not kept what it would take."""
        name = dataset.table.relation.spelling
        if not loaded["cached"] and name not in self._noted:
            self._noted.add(name)
            self._note(
                f"segment {dataset.segment_id} of {name} takes {megabytes(loaded['bytes'])} MB of memory, of which its"
                f" trainer has {megabytes(loaded['limit'])} MB left for segments. Those that do not fit are read again"
                " at every visit, with the same result. To keep them, raise cache_mb in cerebro.setting, or use fewer"
                " workers."
            )

    def _job(self, worker: Worker, job: Job, datasets: Sequence[Dataset], state: StateSource) -> Steps[dict[str, Any]]:
        """Do a job from its beginning to its result, in one transaction.

        A sealed state is brought by a function of its owner: no row is read into the trainer before that has ended.
        """
        parts = self._begin(worker, job, datasets, state)
        if state.sealed:
            yield join(parts)
            parts = []
        for dataset in datasets:
            parts += [stream(dataset, number) for number in range(worker.memory.passes(job, dataset))]
        parts.append(call(worker, "visit.job_finish"))
        found = job_result((yield join(parts)))
        worker.memory.did(job)
        return found

    def _begin(self, worker: Worker, job: Job, datasets: Sequence[Dataset], state: StateSource) -> list[Statement]:
        """Open a job in the trainer and give it its state, unless that is there already."""
        spec = worker.memory.spec(job, state, datasets)
        source = spec["state"]["source"]
        if source == "sealed":
            return [Statement(state.sql, (json.dumps(spec), *state.values))]
        begin = call(worker, "visit.job_begin", json.dumps(spec))
        if source in ("averaged", "joined"):
            states = [one for one, _ in state.of]
            return [begin, *(part for one in states for part in self._pass_state(worker, one, first=False))]
        return [begin] if source in ("kept", "new") else [begin, *self._pass_state(worker, state, first=True)]
