"""Jobs in a worker's trainer: it is started, has its partitions, is told what it does not know, and
gives a result.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from cerebro_plpy.database.sessions.async_dispatcher import Rows, Statement, Steps
from cerebro_plpy.platform.job import Dataset, Job, StateSource
from cerebro_plpy.platform.resource_usage import Cost
from cerebro_plpy.platform.statements import call, job_result, join, load, megabytes, stream
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.records import replace
from cerebro_plpy.trainer_client.settings import TrainerOptions


class TrainerJobs(ABC):
    """What visits and other uses of a trainer have in common; how a state passes to it is left to
    each platform.
    """

    def __init__(
        self,
        trainers: Sequence[TrainerOptions],
        cache_bytes: int | None,
        note: Callable[[str], None],
    ) -> None:
        """`trainers` says how that of each worker is started, by its number; the cache is that of
        each trainer, None for what its machine has room for.

        `note` tells the caller something.
        """
        self._trainers = trainers
        self._cache_bytes = cache_bytes
        self._note = note
        self._noted: set[str] = set()
        self._bases: set[str] = set()
        """Tables that are known to have frozen weights which states of the run share."""

    @abstractmethod
    def _pass_state(self, worker: Worker, state: StateSource, first: bool) -> list[Statement]:
        """Pass a state to the trainer; it is the `first` in its transaction, or comes after another
        one.
        """

    def start(self, worker: Worker) -> Steps[None]:
        """Start the trainer of a worker that has none."""
        if not worker.memory.started:
            request = json.dumps(
                {**vars(self._trainers[worker.number]), "framework": worker.framework}
            )
            hello = job_result((yield call(worker, "visit.trainer_start", request)))
            worker.memory.start(hello, self._cache_bytes)
            backend = () if worker.session.pid == os.getpid() else (worker.session.pid,)
            here = (hello["pid"], *backend) if worker.replaceable else ()
            worker.account.start(hello, here)

    def settle(self, worker: Worker) -> Steps[None]:
        """Let a worker tell what it has cost since its last job."""
        yield from self._spent(worker)

    def _spent(self, worker: Worker) -> Generator[Statement, Rows, Cost]:
        """What a worker has cost since its last job that ended."""
        return worker.account.tell({"cost": job_result((yield call(worker, "visit.job_cost")))})

    def release(self, worker: Worker) -> Steps[None]:
        """End the trainer of a worker, if it has one."""
        if worker.memory.started:
            yield call(worker, "visit.trainer_stop")
            worker.memory.forget()

    def _prepare(
        self, worker: Worker, datasets: Sequence[Dataset]
    ) -> Generator[Statement, Rows, None]:
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
                f"segment {dataset.segment_id} of {name} takes {megabytes(loaded['bytes'])} MB of "
                f"memory, of which its trainer has {megabytes(loaded['limit'])} MB left for "
                "segments. Those that do not fit are read again at every visit, with the same "
                "result. To keep them, raise cache_mb in cerebro.setting, or use fewer workers."
            )

    def _job(
        self, worker: Worker, job: Job, datasets: Sequence[Dataset], state: StateSource
    ) -> Steps[dict[str, Any]]:
        """Do a job from its beginning to its result, in one transaction.

        A sealed state is brought by a function of its owner: no row is read into the trainer before
        that has ended.
        """
        parts = self._begin(worker, job, datasets, state)
        if state.sealed:
            yield join(parts)
            parts = []
        end = call(worker, "visit.job_finish")
        found = job_result((yield join([*parts, *passes(worker, job, datasets), end])))
        worker.memory.did(job, found.get("lent_base"))
        worker.account.tell(found)
        return found

    def _begin(
        self, worker: Worker, job: Job, datasets: Sequence[Dataset], state: StateSource
    ) -> list[Statement]:
        """Open a job in the trainer and give it its state, unless that is there already."""
        spec = worker.memory.spec(job, state, datasets)
        source = spec["state"]["source"]
        if source == "sealed":
            return [Statement(state.sql, (json.dumps(spec), *state.values))]
        begin = call(worker, "visit.job_begin", json.dumps(spec))
        if source in ("averaged", "joined"):
            states = [one for one, _ in state.of]
            return [
                begin,
                *(part for one in states for part in self._pass_state(worker, one, first=False)),
            ]
        if "base" in spec["state"] and state.stored:
            state = replace(state, stored=state.stored._replace(base=None))
        return (
            [begin]
            if source in ("kept", "new")
            else [begin, *self._pass_state(worker, state, first=True)]
        )


def passes(worker: Worker, job: Job, datasets: Sequence[Dataset]) -> list[Statement]:
    """What passes partitions that the trainer does not keep through an open job."""
    return [
        stream(dataset, number)
        for dataset in datasets
        for number in range(worker.memory.passes(job, dataset))
    ]
