"""Visits of several configurations in one job of a trainer, which may train their states side by
side.

Like the visits of a tour they are three transactions: the log rows; the job, which reads all
states; the new states with the log rows that say where they lie. Who cannot be trained is logged as
failed, and the others are stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cerebro_plpy.database.sessions.async_dispatcher import Statement, Steps
from cerebro_plpy.errors import CerebroError
from cerebro_plpy.platform.resource_usage import Cost, total
from cerebro_plpy.platform.state_writer import Storing, completed, datasets_of, failed, first_visit
from cerebro_plpy.platform.statements import call, job_result, join
from cerebro_plpy.platform.visit_protocol import Fused, Trained, TrainVisit, Worker
from cerebro_plpy.records import replace

FUSED_BYTES = 64 << 20
"""What the states of a fusion may take: it pays for small networks, and a trainer has them three
times meanwhile.
"""

Tours = Sequence[Sequence[TrainVisit]]


class FusedVisits(Storing):
    """See `protocol.Visits` for the laws."""

    def train_fused(self, worker: Worker, tours: Tours) -> Steps[list[Fused]]:
        """See `Visits.train_fused`."""
        partitions = datasets_of(tours[0])
        yield from self._prepare(worker, partitions)
        if not worker.memory.keeps(partitions):
            return []
        worker.memory.lost_state()
        begin, *state = self._fused(worker, tours[0], tours[0])
        if job_result((yield begin))["state_bytes"] * len(tours) > FUSED_BYTES:
            return []
        yield join([self._running(worker, tour[0]) for tour in tours])
        cost = Cost()
        try:
            others = [part for tour in tours[1:] for part in self._fused(worker, tour, tours[0])]
            found = job_result((yield join([*state, *others, call(worker, "visit.job_finish")])))
            cost = worker.account.tell(found)
            made = [*_made(tours, found)]
            trained = [each.trained for each in made if not each.error]
            stored = iter((yield from self._store(worker, trained, [*_failures(made)])))
        except CerebroError as error:
            worker.memory.lost_state()
            cost = worker.account.charge(total((cost, (yield from self._spent(worker)))))
            yield join(
                [
                    failed(tour[0], error.message, share)
                    for tour, share in zip(tours, shares(cost, len(tours)))
                ]
            )
            raise
        worker.memory.lost_state()
        worker.account.charge(cost)
        return [
            each if each.error else each._replace(results=completed(each.trained, next(stored)))
            for each in made
        ]

    def _fused(
        self, worker: Worker, tour: Sequence[TrainVisit], first: Sequence[TrainVisit]
    ) -> list[Statement]:
        """What opens the job on the first state, and passes that; or has it take another one."""
        job = replace(
            tour[0].job,
            kind="fusion",
            result_key=tour[-1].job.result_key,
            forms=first[0].job.forms,
            order=None,
            visits=[{"dataset": visit.dataset.key, "order": visit.job.order} for visit in tour],
            beside=None if tour is first else True,
        )
        begun = self._begin(worker, job, (), tour[0].state)
        worker.memory.did(job)
        worker.memory.lost_state()
        return begun


def shares(cost: Cost, count: int) -> list[Cost]:
    """What each of so many has cost that were trained together; all of them had the memory.

    >>> tuple(shares(Cost(2.0, 1.0, 0.0, 5, 300), 2)[1])
    (1.0, 0.5, 0.0, 2, 300)
    """
    trainer, backend, gpu, read, peak = cost
    first = Cost(
        trainer / count, backend / count, gpu / count, read - (count - 1) * (read // count), peak
    )
    return [first, *[first._replace(read_bytes=read // count)] * (count - 1)]


def _made(tours: Tours, found: Mapping[str, Any]) -> Iterator[Fused]:
    """What the job has told of each configuration; its first visit has its share of the cost."""
    costs = shares(Cost.of(found), len(tours))
    for tour, told, cost in zip(tours, found["states"], costs):
        results = []
        for number, result in enumerate(told["visits"]):
            charged = cost if number == 0 else Cost()
            results.append(
                {
                    **result,
                    "warnings": found["warnings"],
                    "room": found["room"],
                    "cost": charged._asdict(),
                }
            )
        error = told["error"] and told["error"]["message"]
        yield Fused(Trained(tour, results), [], error, cost)


def _failures(made: Sequence[Fused]) -> Iterator[Statement]:
    for each in made:
        if each.error:
            yield failed(first_visit(each.trained.visits), each.error, each.cost)
