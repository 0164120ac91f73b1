"""The platform protocol on plain PostgreSQL: any session reads any segment's rows by an index.

Each training visit is three transactions: the log row; the job in the trainer, which reads the old state;
the new state with the log row that says which table holds it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from typing import Any

from cerebro_plpy.database import strict_json
from cerebro_plpy.database.dispatch import Rows, Statement, Steps
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import LOCK_NOT_AVAILABLE, CerebroError
from cerebro_plpy.platform import state_tables
from cerebro_plpy.platform.protocol import Dataset, EvaluateVisit, RawRows, StateSource, TrainVisit, VisitResult, Worker
from cerebro_plpy.platform.statements import (
    begin,
    call,
    job_result,
    joined,
    load,
    megabytes,
    state_table,
    stream,
    without_known_program,
)
from cerebro_plpy.trainer.settings import TrainerRequest


class PostgresPlatform:
    """See `platform.Platform` for the laws."""

    def __init__(
        self, trainers: Sequence[TrainerRequest], cache_bytes: int | None, note: Callable[[str], None]
    ) -> None:
        """`trainers` says how that of each worker is started, by its number; the cache is that of each trainer, None
        for what its machine has room for.

        `note` tells the caller something.
        """
        self._trainers = trainers
        self._cache_bytes = cache_bytes
        self._note = note
        self._noted: set[str] = set()

    def start(self, worker: Worker) -> Generator[Statement, Rows, None]:
        """Start the trainer of a worker that has none."""
        if not worker.started:
            request = json.dumps({**vars(self._trainers[worker.number]), "framework": worker.framework})
            hello = job_result((yield call(worker, "visit.trainer_start", request)))
            worker.machine, worker.threads, worker.started = hello["machine"], hello["threads"], True
            worker.cache_bytes = hello["cache_bytes"] if self._cache_bytes is None else self._cache_bytes

    def train(self, worker: Worker, visit: TrainVisit) -> Steps[VisitResult]:
        """Train one visit, or average what others have left."""
        yield from self._prepare(worker, visit.datasets)
        run = (visit.run_id, visit.mst_key, visit.visit_no, visit.attempt)
        begin = (visit.run_id, visit.epoch, visit.mst_key, visit.dataset.segment_id, visit.visit_no, visit.attempt)
        yield Statement(sql("visit.visit_begin"), (*begin, worker.session.pid, visit.kind))
        try:
            done = yield from self._job(worker, visit.job, visit.datasets, visit.state)
            worker.state = visit.job["result_key"]
            logged = (done["rows"], done["form"], done["threads"], done["loss"], done["seconds"])
            table = yield from self._store(worker, visit, logged, run)
        except CerebroError as error:
            worker.state = ""
            yield Statement(sql("visit.visit_failed"), (error.message, *run))
            raise
        return VisitResult(
            rows=done["rows"],
            loss=done["loss"],
            seconds=done["seconds"],
            state_table=table,
            timings=done["timings"],
            fallback=done["fallback"],
        )

    def _store(
        self, worker: Worker, visit: TrainVisit, logged: tuple[object, ...], run: tuple[int, ...]
    ) -> Generator[Statement, Rows, str]:
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
            yield from self._drop_table(visit, visit.replaced_table)
        return visit.state_table

    def _visit_end(self, visit: TrainVisit, table: str) -> str:
        """What stores the new state in this table, and says so in the log."""
        return sql("visit.visit_end", state=table)

    def _make_table(self, worker: Worker, visit: TrainVisit, name: str) -> Generator[Statement, Rows, None]:
        # An earlier attempt may have made it.
        create = f"{state_table(worker.session, name)}; {sql('run.add_state_table')}"
        yield Statement(create, (name, visit.run_id, visit.mst_key, name))

    def _drop_table(self, visit: TrainVisit, name: str) -> Generator[Statement, Rows, None]:
        try:
            yield Statement(sql("run.drop_state_table", state=name), (name, visit.run_id, name))
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
            worker.state = ""
            yield Statement(sql("visit.evaluation_end"), ("failed", None, error.message, *key))
            raise
        worker.state = visit.state.key
        rows = sum(part["rows"] for part in done["datasets"].values())
        yield Statement(sql("visit.evaluation_end"), ("completed", rows, None, *key))
        return {name: done["datasets"][d.key] for name, d in zip(visit.names, visit.datasets)}

    def probe(self, worker: Worker, dataset: Dataset, state: StateSource, job: dict[str, Any]) -> Steps[dict[str, Any]]:
        """Time a configuration on the first buffer of a partition; nothing is logged or kept."""
        yield from self._prepare(worker, (dataset,))
        worker.state = ""
        return (yield from self._job(worker, job, (dataset,), state))

    def measure(
        self, worker: Worker, datasets: tuple[Dataset, ...], state: StateSource, job: dict[str, Any]
    ) -> Steps[dict[str, Any]]:
        """Evaluate outside a run, without a log; per data set key its rows and sums."""
        yield from self._prepare(worker, datasets)
        done = yield from self._job(worker, job, datasets, state)
        worker.state = state.key
        return dict(done["datasets"])

    def predict(
        self, worker: Worker, rows: RawRows, state: StateSource, job: dict[str, Any], request: dict[str, Any]
    ) -> Generator[Statement, Rows, str | None]:
        """Open a prediction job for rows, in blocks as `request` says; what declares the cursor over its blocks.

        None where the worker has no rows.
        """
        yield from self._prepare(worker, ())
        yield joined([*begin(worker, job, (), state), call(worker, "score.collect", json.dumps(request))])
        return sql("score.declare", id=rows.id, data=rows.data, table=rows.table)

    def predicted(self, worker: Worker) -> Statement:
        """End a prediction job whose blocks have been fetched."""
        return call(worker, "visit.job_finish")

    def results(self, worker: Worker, request: dict[str, Any]) -> Steps[dict[str, Any]]:
        """Final metrics from sums over segments."""
        yield from self._prepare(worker, ())
        short = without_known_program(worker, request)
        return job_result((yield call(worker, "visit.metric_results", strict_json.dumps(short))))

    def _prepare(self, worker: Worker, datasets: tuple[Dataset, ...]) -> Generator[Statement, Rows, None]:
        """Start the trainer and load the partitions that it has not seen yet."""
        yield from self.start(worker)
        for dataset in datasets:
            if dataset.key not in worker.datasets:
                loaded = job_result((yield load(worker, dataset, worker.cache_bytes)))
                worker.datasets[dataset.key] = loaded["cached"]
                self._tell(dataset, loaded)

    def _tell(self, dataset: Dataset, loaded: dict[str, Any]) -> None:
        """Say of the first partition of a table that is not kept what it would take."""
        name = dataset.table.relation.given
        if not loaded["cached"] and name not in self._noted:
            self._noted.add(name)
            self._note(
                f"segment {dataset.segment_id} of {name} takes {megabytes(loaded['bytes'])} MB of memory, of which its"
                f" trainer has {megabytes(loaded['limit'])} MB left for segments. Those that do not fit are read again"
                " at every visit, with the same result. To keep them, raise cache_mb in cerebro.setting, or use fewer"
                " workers."
            )

    def _job(
        self, worker: Worker, job: dict[str, Any], datasets: tuple[Dataset, ...], state: StateSource
    ) -> Steps[dict[str, Any]]:
        parts = begin(worker, job, datasets, state)
        for dataset in datasets:
            passes = 0 if worker.datasets[dataset.key] else job["fit"]["epochs"] if job["job"] == "train" else 1
            parts += [stream(dataset, number) for number in range(passes)]
        parts.append(call(worker, "visit.job_finish"))
        found = job_result((yield joined(parts)))
        worker.programs.update({job["program_key"]} if "program_key" in job else ())
        return found
