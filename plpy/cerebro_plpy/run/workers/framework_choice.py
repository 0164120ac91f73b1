"""The choice of a framework for each configuration, if the caller leaves it open: the fastest.

No framework is the fastest for every network. A trainer of each installed framework times one
configuration of each architecture on a few batches. The run uses the timings, too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.database.sessions.async_dispatcher import Steps, drive
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.errors import ConfigFailure
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.platform.visits import Visits
from cerebro_plpy.records import replace
from cerebro_plpy.run.log.form_timings import TimingKey, hash_program
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.run.request import visit_jobs
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.scheduling.schedule.schedule import Visit


def choose(
    visits: Visits,
    request: FitRequest,
    workers: Sequence[Worker],
    log: RunLog,
    notify: Callable[[str], None],
) -> dict[int, str]:
    """Return the framework of each configuration, by mst_key.

    Args:
        workers: one for each framework.
    """
    frameworks: dict[int, str] = {}
    tree_keys = request.whole_epoch_keys  # trees are the same in every framework
    for group in group_by_architecture(request):
        if group[0].mst_key in tree_keys:
            continue
        config = min(group, key=lambda member: member.fit.batch_size)
        passes = sum(member.fit.passes for member in group) * request.spec.epochs
        rows = passes * request.source.rows // request.workers
        seconds = {
            worker.framework: _estimate_seconds(Probe(visits, worker, log), request, config, rows)
            for worker in workers
        }
        fastest = min(seconds, key=lambda name: seconds[name])
        frameworks |= {member.mst_key: fastest for member in group}
        notify(
            f"model_id {config.model_id} trains with {fastest}; "
            f"expected are {format_estimates(seconds)}"
        )
    usual = Counter([*frameworks.values(), workers[0].framework]).most_common(1)[0][0]
    return {**dict.fromkeys(tree_keys, usual), **frameworks}


def group_by_architecture(request: FitRequest) -> list[list[Config]]:
    """Return groups of configurations whose architectures differ only in hyperparameters."""
    groups: dict[str, list[Config]] = {}
    for config in request.configs:
        program = visit_jobs.describe_program(request, config)
        groups.setdefault(hash_program(program["architecture"]), []).append(config)
    return list(groups.values())


def format_estimates(seconds: dict[str, float]) -> str:
    """Return estimated durations by framework as text for a message.

    >>> format_estimates({"tensorflow": 2.04, "jax": math.inf})
    '2.0 s with tensorflow, no training with jax'
    """
    return ", ".join(
        f"no training with {name}" if math.isinf(value) else f"{value:.1f} s with {name}"
        for name, value in seconds.items()
    )


class Probe(NamedTuple):
    """Times configurations on a worker."""

    visits: Visits
    worker: Worker
    log: RunLog  # stores the timings

    def list_steps(self, request: FitRequest, config: Config, rows: int) -> Steps[JsonObject]:
        """Return the steps by which the worker times a configuration.

        Args:
            rows: number of rows that the configuration is to train.
        """
        segment = self.worker.segment_id
        if segment is None:
            segment = request.source.segments[0]
        visit = Visit(1, config.mst_key, segment, "train")
        attempt = visit_jobs.Attempt(1, 1, rows, {}, 1)
        run_id = self.log.run_id
        state = visit_jobs.make_initial_state(request, config, run_id)
        training = visit_jobs.make_train_visit(request, config, run_id, visit, attempt, state)
        job = replace(training.job, kind="time")
        return self.visits.probe(self.worker, training.dataset, state, job)

    def time(self, request: FitRequest, config: Config, rows: int) -> Mapping[str, Any] | None:
        """Return a trainer's timing of a configuration, or None if it cannot train it.

        Args:
            rows: number of rows that the configuration is to train.
        """
        try:
            result = drive(self.worker.session, self.list_steps(request, config, rows))
        except ConfigFailure:
            return None  # the run reports the reason if no framework can train it
        self.log_timings(request, config, result)
        return result

    def log_timings(self, request: FitRequest, config: Config, result: JsonObject) -> None:
        """Log the timings of a configuration for the run and for later ones."""
        trainer = self.worker.memory
        program = hash_program(visit_jobs.describe_program(request, config))
        key = TimingKey(trainer.machine, program, config.fit.batch_size, trainer.threads)
        self.log.write(self.log.log_timings(key, result["timings"]))


def _estimate_seconds(probe: Probe, request: FitRequest, config: Config, rows: int) -> float:
    """Return the time for rows with a worker's framework; infinite if it cannot train them."""
    result = probe.time(request, config, rows)
    if result is None or result["seconds_per_row"] is None:
        return math.inf
    return float(result["seconds_per_row"] * rows + result["compile_seconds"])
