"""Jobs in a worker's trainer, which is started and receives its partitions first."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence

from cerebro_plpy.database.sessions.async_dispatcher import Rows, Statement, Steps
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.platform.job import Dataset, Job, StateSource
from cerebro_plpy.platform.resource_usage import Cost
from cerebro_plpy.platform.statements import (
    call,
    format_megabytes,
    join,
    load_dataset,
    parse_result,
    stream_dataset,
)
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.records import replace
from cerebro_plpy.trainer_client.settings import TrainerOptions


class TrainerJobs(ABC):
    """The common part of visits and other uses of a trainer.

    Each platform defines how a state passes to the trainer.

    Args:
        trainers: options of each worker's trainer, by its number.
        cache_bytes: cache of each trainer; None for all that its machine allows.
        note: sends a message to the caller.
    """

    def __init__(
        self,
        trainers: Sequence[TrainerOptions],
        cache_bytes: int | None,
        note: Callable[[str], None],
    ) -> None:
        self._trainers = trainers
        self._cache_bytes = cache_bytes
        self._note = note
        self._noted_tables: set[str] = set()
        # Tables that are known to contain frozen weights that states of the run share.
        self._bases: set[str] = set()

    @abstractmethod
    def _pass_state(self, worker: Worker, state: StateSource, is_first: bool) -> list[Statement]:
        """Return the statements that pass a state to the trainer.

        Args:
            is_first: the state is the first one in its transaction.
        """

    def _bring_rows(self, worker: Worker, dataset: Dataset) -> tuple[list[Statement], Dataset]:
        """Return where a worker can read a partition, and the statements that bring it there.

        The statements belong to the transaction that reads the partition.
        """
        return [], dataset

    def start(self, worker: Worker) -> Steps[None]:
        """Start the trainer of a worker, unless it has started."""
        if not worker.memory.started:
            request = json.dumps(
                {**vars(self._trainers[worker.number]), "framework": worker.framework}
            )
            hello = parse_result((yield call(worker, "visit.trainer_start", request)))
            worker.memory.start(hello, self._cache_bytes)
            worker.account.start(hello, _local_processes(worker, hello["pid"]))

    def report_cost(self, worker: Worker) -> Steps[None]:
        """Let a worker report its cost since its last job."""
        yield from self._read_cost(worker)

    def _read_cost(self, worker: Worker) -> Generator[Statement, Rows, Cost]:
        """Return the cost of a worker since its last finished job."""
        cost = parse_result((yield call(worker, "visit.job_cost")))
        return worker.account.report({"cost": cost})

    def stop_trainer(self, worker: Worker) -> Steps[None]:
        """End the trainer of a worker, if it has started: the next visit starts another."""
        if worker.memory.started:
            yield call(worker, "visit.trainer_stop")
            worker.memory.forget()

    def _prepare(
        self, worker: Worker, datasets: Sequence[Dataset]
    ) -> Generator[Statement, Rows, None]:
        """Start the trainer and load the partitions that it has not received yet."""
        yield from self.start(worker)
        for dataset in filter(worker.memory.lacks, datasets):
            bring, rows = self._bring_rows(worker, dataset)
            load = join([*bring, load_dataset(worker, dataset.key, rows)])
            response = parse_result((yield load))
            worker.memory.add_dataset(dataset, response["cached"])
            if not response["cached"]:
                self._note_uncached(dataset, response)

    def _note_uncached(self, dataset: Dataset, response: JsonObject) -> None:
        """Report the first uncached partition of each table, with its size."""
        name = dataset.table.relation.spelling
        if name not in self._noted_tables:
            self._noted_tables.add(name)
            self._note(
                f"segment {dataset.segment_id} of {name} takes "
                f"{format_megabytes(response['bytes'])} MB of memory, of which its trainer has "
                f"{format_megabytes(response['limit'])} MB left for segments. Those that do not "
                "fit are read again at every visit, with the same result. To keep them, raise "
                "cache_mb in cerebro.setting, or use fewer workers."
            )

    def _job(
        self, worker: Worker, job: Job, datasets: Sequence[Dataset], state: StateSource
    ) -> Steps[JsonObject]:
        """Do a whole job in one transaction.

        A sealed state is passed by a function of its owner, which must end before the trainer
        receives any row.
        """
        parts = self._begin(worker, job, datasets, state)
        if state.sealed:
            yield join(parts)
            parts = []
        end = call(worker, "visit.job_finish")
        rows = self._stream_uncached(worker, job, datasets)
        result = parse_result((yield join([*parts, *rows, end])))
        worker.memory.finish_job(job, result.get("lent_base"))
        worker.account.report(result)
        return result

    def _stream_uncached(
        self, worker: Worker, job: Job, datasets: Sequence[Dataset]
    ) -> list[Statement]:
        """Return the statements that pass uncached partitions through an open job."""
        statements = []
        for dataset in datasets:
            passes = worker.memory.count_passes(job, dataset)
            if passes:
                bring, rows = self._bring_rows(worker, dataset)
                statements += bring
                statements += [stream_dataset(dataset.key, rows, n) for n in range(passes)]
        return statements

    def _begin(
        self, worker: Worker, job: Job, datasets: Sequence[Dataset], state: StateSource
    ) -> list[Statement]:
        """Return the statements that open a job, and pass the state unless the trainer has it."""
        spec = worker.memory.job_spec(job, state, datasets)
        source = spec["state"]["source"]
        if source == "sealed":
            return [Statement(state.sql, (json.dumps(spec), *state.values))]
        statements = [call(worker, "visit.job_begin", json.dumps(spec))]
        if source == "averaged":
            for other, _ in state.of:
                statements += self._pass_state(worker, other, is_first=False)
            return statements
        if "base" in spec["state"] and state.stored:
            state = replace(state, stored=state.stored._replace(base=None))
        if source not in ("kept", "new"):
            statements += self._pass_state(worker, state, is_first=True)
        return statements


def _local_processes(worker: Worker, trainer_pid: int) -> tuple[int, ...]:
    """Return the trainer and its backend, if they run on this machine.

    The current process is left out.
    """
    if not worker.is_replaceable:
        return ()
    if worker.session.pid == os.getpid():
        return (trainer_pid,)
    return (trainer_pid, worker.session.pid)
