"""The platform protocol on plain PostgreSQL: any session reads any segment's rows by an index.

Each training visit is three transactions: the log row; the job in the trainer, which reads the old state;
the new state with the log row that says which table holds it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from typing import Any

from cerebro_plpy import jobs, strict_json
from cerebro_plpy.dispatch import Rows, Statement, Steps
from cerebro_plpy.errors import LOCK_NOT_AVAILABLE, CerebroError
from cerebro_plpy.names import quote_identifier
from cerebro_plpy.platform import Dataset, EvaluateVisit, StateSource, TrainVisit, Worker
from cerebro_plpy.queries import sql
from cerebro_plpy.records import VisitResult
from cerebro_plpy.settings import TrainerRequest

PART_BYTES = 128 << 10  # of a buffer, on its way to the trainer: a backend holds no more of it at a time


def job_result(rows: Rows) -> dict[str, Any]:
    """The JSON that a statement's only row holds; the driver may have parsed it already."""
    return dict(strict_json.restored(rows[0][0]))


class PostgresPlatform:
    """See `platform.Platform` for the laws."""

    def __init__(self, trainers: Sequence[TrainerRequest], cache_bytes: int, note: Callable[[str], None]) -> None:
        """`trainers` says how that of each worker is started, by its number; the cache is that of each trainer.

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
            hello = job_result((yield Statement(sql("visit.trainer_start"), (request,))))
            worker.machine, worker.threads, worker.started = hello["machine"], hello["threads"], True

    def train(self, worker: Worker, visit: TrainVisit) -> Steps[VisitResult]:
        """Train one visit."""
        yield from self._prepare(worker, (visit.dataset,))
        run = (visit.run_id, visit.mst_key, visit.visit_no, visit.attempt)
        begin = (visit.run_id, visit.epoch, visit.mst_key, visit.dataset.segment_id, visit.visit_no, visit.attempt)
        yield Statement(sql("visit.visit_begin"), begin)
        try:
            done = yield from self._job(worker, visit.job, (visit.dataset,), visit.state)
            worker.state = visit.job["result_key"]
            logged = (done["rows"], done["form"], done["threads"], done["loss"], done["seconds"])
            table = yield from self._store(visit, logged, run)
        except CerebroError as error:
            worker.state = ""
            yield Statement(sql("visit.visit_failed"), (error.message, *run))
            raise
        return VisitResult(
            rows=done["rows"], loss=done["loss"], seconds=done["seconds"], state_table=table,
            timings=done["timings"], fallback=done["fallback"],
        )  # fmt: skip

    def _store(
        self, visit: TrainVisit, logged: tuple[object, ...], run: tuple[int, ...]
    ) -> Generator[Statement, Rows, str]:
        """Write the new state and the log row; the table that took the state.

        Someone who reads a state table for long, such as a backup, must not stop the run: after a short
        wait the state goes to a fresh table.
        """

        def store(table: str) -> Statement:
            return Statement(sql("visit.visit_end", state=table), (*logged, table, *run))

        try:
            if visit.replaced_table:
                yield from self._make_table(visit, visit.state_table)
            yield store(visit.state_table)
        except CerebroError as error:
            if error.sqlstate != LOCK_NOT_AVAILABLE:
                raise
            fresh = jobs.spare_table(visit.run_id, visit.mst_key, visit.visit_no, visit.attempt)
            yield from self._make_table(visit, fresh)
            yield store(fresh)
            return fresh
        if visit.replaced_table:
            yield from self._drop_table(visit, visit.replaced_table)
        return visit.state_table

    def _make_table(self, visit: TrainVisit, name: str) -> Generator[Statement, Rows, None]:
        # An earlier attempt may have made it.
        create = f"{sql('run.state_table', state=name)}; {sql('run.add_state_table')}"
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
        self, worker: Worker, state: StateSource, job: dict[str, Any], collect: Statement
    ) -> Generator[Statement, Rows, None]:
        """Open a prediction job, and make the worker ready to collect rows for it."""
        yield from self._prepare(worker, ())
        yield joined(begin(worker, job, (), state))
        yield collect

    def results(self, worker: Worker, request: dict[str, Any]) -> Steps[dict[str, Any]]:
        """Final metrics from sums over segments."""
        yield from self._prepare(worker, ())
        short = without_known_program(worker, request)
        return job_result((yield Statement(sql("visit.metric_results"), (strict_json.dumps(short),))))

    def _prepare(self, worker: Worker, datasets: tuple[Dataset, ...]) -> Generator[Statement, Rows, None]:
        """Start the trainer and load the partitions that it has not seen yet."""
        yield from self.start(worker)
        for dataset in datasets:
            if dataset.key not in worker.datasets:
                loaded = job_result((yield load(dataset, self._cache_bytes)))
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
        parts.append(Statement(sql("visit.job_finish")))
        found = job_result((yield joined(parts)))
        worker.programs.update({job["program_key"]} if "program_key" in job else ())
        return found


def begin(worker: Worker, job: dict[str, Any], datasets: tuple[Dataset, ...], state: StateSource) -> list[Statement]:
    """Open a job in the trainer and give it its state, unless that is there already."""
    source = "kept" if worker.state == state.key and state.source not in ("new", "sealed") else state.source
    spec = {
        **without_known_program(worker, job),
        "state": {"source": source, "key": state.key, "seed": state.seed},
        "datasets": [d.key for d in datasets],
    }
    if source == "sealed":
        return [Statement(state.sql, (json.dumps(spec), *state.values))]
    parts = [Statement(sql("visit.job_begin"), (json.dumps(spec),))]
    if source not in ("kept", "new"):
        parts.append(Statement(sql("visit.state_read", source=state.sql), state.values))
    return parts


def without_known_program(worker: Worker, request: dict[str, Any]) -> dict[str, Any]:
    """The request without a program that the trainer was told already: an architecture may be long."""
    known = request.get("program_key") in worker.programs
    return {name: value for name, value in request.items() if name != "program" or not known}


def joined(parts: Sequence[Statement]) -> Statement:
    """Several statements as one transaction."""
    return Statement("; ".join(part.sql for part in parts), [value for part in parts for value in part.values])


def megabytes(size: int) -> str:
    """Bytes for a message.

    >>> megabytes(3_500_000)
    '3.5'
    """
    return f"{size / 1e6:,.1f}"


def load(dataset: Dataset, cache_bytes: int) -> Statement:
    """Bring a partition into the trainer."""
    values = (dataset.key, cache_bytes, dataset.key, dataset.segment_id, dataset.key)
    return Statement(sql("visit.dataset_load", **reading(dataset)), values)


def stream(dataset: Dataset, number: int) -> Statement:
    """Pass a partition through an open job, for the pass of that number."""
    return Statement(sql("visit.dataset_stream", **reading(dataset)), (dataset.key, number, dataset.segment_id))


def reading(dataset: Dataset) -> dict[str, str]:
    """What reading the buffers of a packed table takes."""
    table = dataset.table
    names = table.independent + table.dependent
    arrays = [f"t.{quote_identifier(name)}" for name in names]
    parts = sql(
        "visit.dataset_parts",
        table=table.relation.quoted,
        key=table.key,
        inputs=str(len(table.independent)),
        arrays=", ".join(f"({number}, {array})" for number, array in enumerate(arrays, 1)),
        shapes=", ".join(f"t.{quote_identifier(name + '_shape')}" for name in names),
        sizes=", ".join(f"pg_catalog.octet_length({array})" for array in arrays),
        part=str(PART_BYTES),
    )
    return {"parts": parts, "part": str(PART_BYTES)}
