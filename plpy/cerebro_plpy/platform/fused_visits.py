"""Visits of several configurations in one job, in which the trainer may train states concurrently.

Like the visits of a batch they are three transactions: the log rows; the job, which reads all
states; the new states and the log rows with their tables. A configuration that cannot be trained is
logged as failed, and the others are stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cerebro_plpy.database.sessions.async_dispatcher import Statement, Steps
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.errors import CerebroError
from cerebro_plpy.platform.resource_usage import Cost, total
from cerebro_plpy.platform.state_writer import (
    StateWriter,
    first_visit,
    list_datasets,
    log_failure,
    visit_results,
)
from cerebro_plpy.platform.statements import call, join, parse_result
from cerebro_plpy.platform.visit_protocol import BatchResult, FusedResult, TrainVisit, Worker
from cerebro_plpy.records import replace

MAX_FUSED_BYTES = 64 << 20
"""Limit of all states of a fusion.

Fusion pays off for small networks, and a trainer temporarily has three copies of the states.
"""

Batches = Sequence[Sequence[TrainVisit]]


class FusedVisits(StateWriter):
    """The part of `visits.Visits` that trains configurations together."""

    def train_fused(self, worker: Worker, batches: Batches) -> Steps[list[FusedResult]]:
        """Train several configurations of one program on the same segments in one job; store them.

        No visit is done if not all segments are cached in the trainer's memory, or if the states
        are too large.
        """
        partitions = list_datasets(batches[0])
        yield from self._prepare(worker, partitions)
        if not worker.memory.has_cached(partitions):
            return []
        worker.memory.lose_state()
        begin, *pass_state = self._open_fusion(worker, batches[0], batches[0])
        if parse_result((yield begin))["state_bytes"] * len(batches) > MAX_FUSED_BYTES:
            return []
        yield join([self._log_start(worker, visits[0]) for visits in batches])
        cost = Cost()
        try:
            others = [
                statement
                for visits in batches[1:]
                for statement in self._open_fusion(worker, visits, batches[0])
            ]
            finish = call(worker, "visit.job_finish")
            result = parse_result((yield join([*pass_state, *others, finish])))
            cost = worker.account.report(result)
            fused = [*_split_result(batches, result)]
            successful = [batch.batch for batch in fused if not batch.error]
            stored = iter((yield from self._store(worker, successful, [*_log_failures(fused)])))
        except CerebroError as error:
            worker.memory.lose_state()
            cost = worker.account.charge(total((cost, (yield from self._read_cost(worker)))))
            shares = divide_cost(cost, len(batches))
            pairs = zip(batches, shares)
            yield join([log_failure(visits[0], error.message, share) for visits, share in pairs])
            raise
        worker.memory.lose_state()
        worker.account.charge(cost)
        for number, batch in enumerate(fused):
            if not batch.error:
                fused[number] = batch._replace(results=visit_results(batch.batch, next(stored)))
        return fused

    def _open_fusion(
        self, worker: Worker, visits: Sequence[TrainVisit], first: Sequence[TrainVisit]
    ) -> list[Statement]:
        """Return the statements that open the job with the first state, or add another state."""
        job = replace(
            visits[0].job,
            kind="fusion",
            result_key=visits[-1].job.result_key,
            forms=first[0].job.forms,
            order=None,
            visits=[{"dataset": visit.dataset.key, "order": visit.job.order} for visit in visits],
            beside=visits is not first or None,
        )
        statements = self._begin(worker, job, (), visits[0].state)
        worker.memory.finish_job(job)
        worker.memory.lose_state()
        return statements


def divide_cost(cost: Cost, count: int) -> list[Cost]:
    """Divide the cost of configurations that were trained together; each has the whole peak.

    >>> tuple(divide_cost(Cost(2.0, 1.0, 0.0, 5, 300), 2)[1])
    (1.0, 0.5, 0.0, 2, 300)
    """
    share = Cost(
        cost.trainer_seconds / count,
        cost.backend_seconds / count,
        cost.gpu_seconds / count,
        cost.read_bytes // count,
        cost.peak_memory_bytes,
    )
    first = share._replace(read_bytes=cost.read_bytes - (count - 1) * share.read_bytes)
    return [first, *[share] * (count - 1)]


def _split_result(batches: Batches, result: JsonObject) -> Iterator[FusedResult]:
    """Yield the result of each configuration; its first visit has its share of the cost."""
    shares = divide_cost(Cost.from_result(result), len(batches))
    for visits, state, share in zip(batches, result["states"], shares):
        results = []
        cost = share
        for visit_result in state["visits"]:
            results.append(
                {
                    **visit_result,
                    "warnings": result["warnings"],
                    "room": result["room"],
                    "cost": cost._asdict(),
                }
            )
            cost = Cost()
        error = state["error"] and state["error"]["message"]
        yield FusedResult(BatchResult(visits, results), [], error, share)


def _log_failures(fused: Sequence[FusedResult]) -> Iterator[Statement]:
    for batch, _, error, cost in fused:
        if error:
            yield log_failure(first_visit(batch.visits), error, cost)
