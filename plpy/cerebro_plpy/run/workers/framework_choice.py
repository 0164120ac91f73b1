"""Which framework trains which configuration, where the caller leaves the choice: the one that
proves faster.

No framework is best for every network, so one configuration of each architecture is timed on a few
batches by a trainer of each framework that is installed. What was measured serves the run, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.database.sessions.async_dispatcher import drive
from cerebro_plpy.errors import ConfigFailure
from cerebro_plpy.platform.job import Dataset
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.platform.visits import Visits
from cerebro_plpy.records import replace
from cerebro_plpy.run.log.form_timings import TimingKey, hash_program
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.run.request import visit_jobs
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.scheduling.schedule.schedule import Visit


def choose(
    crew: Visits,
    request: FitRequest,
    workers: Sequence[Worker],
    log: RunLog,
    note: Callable[[str], None],
) -> dict[int, str]:
    """Time each architecture on these workers, one per framework, and give each configuration its
    framework.
    """
    found: dict[int, str] = {}
    for group in group_by_architecture(request):
        config = min(group, key=lambda member: member.fit.batch_size)
        rows = (
            sum(c.fit.passes for c in group)
            * request.spec.epochs
            * request.source.rows
            // request.workers
        )
        seconds = {
            w.framework: _seconds(Probe(crew, w, log), request, config, rows) for w in workers
        }
        best = min(seconds, key=lambda name: seconds[name])
        found |= {member.mst_key: best for member in group}
        note(
            f"model_id {config.model_id} trains with {best}; "
            f"expected are {format_estimates(seconds)}"
        )
    return found


def group_by_architecture(request: FitRequest) -> list[list[Config]]:
    """Configurations whose architectures differ in numbers at most."""
    groups: dict[str, list[Config]] = {}
    for config in request.configs:
        groups.setdefault(
            hash_program(visit_jobs.describe_program(request, config)["architecture"]), []
        ).append(config)
    return list(groups.values())


def format_estimates(seconds: dict[str, float]) -> str:
    """The expectations for a message.

    >>> format_estimates({"tensorflow": 2.04, "jax": math.inf})
    '2.0 s with tensorflow, no training with jax'
    """
    return ", ".join(
        f"no training with {name}" if math.isinf(value) else f"{value:.1f} s with {name}"
        for name, value in seconds.items()
    )


class Probe(NamedTuple):
    """What times configurations: the visits of a worker, and the log that keeps what was
    measured.
    """

    visits: Visits
    worker: Worker
    log: RunLog

    def time(self, request: FitRequest, config: Config, rows: int) -> Mapping[str, Any] | None:
        """What a trainer says of a configuration that would train so many rows; None where it
        cannot train it.
        """
        worker, log = self.worker, self.log
        segment = request.source.segments[0]
        visit = Visit(1, config.mst_key, segment, "train")
        attempt = visit_jobs.Attempt(1, 1, rows, {}, 1)
        first = visit_jobs.make_initial_state(request, config, log.run_id)
        job = replace(
            visit_jobs.make_train_visit(request, config, log.run_id, visit, attempt, first).job,
            kind="time",
        )
        try:
            done = drive(
                worker.session,
                self.visits.probe(worker, Dataset(request.source, segment), first, job),
            )
        except ConfigFailure:
            return None  # the run says why, if no framework can
        program, trainer = hash_program(visit_jobs.describe_program(request, config)), worker.memory
        log.log_timings(
            TimingKey(trainer.machine, program, config.fit.batch_size, trainer.threads),
            done["timings"],
        )
        return done


def _seconds(probe: Probe, request: FitRequest, config: Config, rows: int) -> float:
    """What so many rows would take on the framework of a worker; infinite where it cannot train the
    configuration.
    """
    done = probe.time(request, config, rows)
    if done is None or done["seconds_per_row"] is None:
        return math.inf
    return float(done["seconds_per_row"] * rows + done["compile_seconds"])
