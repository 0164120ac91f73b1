"""The rates of templates on the rows of a run, measured before the run begins.

Trainers time the first configuration of each template on a few batches. Code that is compiled for
that stays compiled, and the configuration begins where it was timed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.database.sessions.async_dispatcher import Dispatcher, Outcome
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.errors import ConfigFailure, ObjectNotReady, QueryCanceled
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.run.log.form_timings import hash_program, make_compilation_key
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.run.request import visit_jobs
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.run.workers.admission import has_quota, make_slot_request
from cerebro_plpy.run.workers.framework_choice import Probe
from cerebro_plpy.run.workers.tasks import RETRYABLE_ERRORS
from cerebro_plpy.run.workers.workers import WorkerSet, start_workers

NO_RUN = 0  # an id that no run has
LATE = QueryCanceled("the time to measure rates was over")


def measure_rates(
    context: CallContext, request: FitRequest, mst_keys: Sequence[int], until: float
) -> dict[int, float]:
    """Return the seconds per row of configurations; infinite if one cannot be trained, or not soon.

    If trainers wait for slots, or cannot start, nothing is measured: the run will report that.

    Args:
        until: moment at which measuring ends, by time.monotonic().
    """
    if context.is_local or has_quota(context.db):
        return {}
    slot_request = make_slot_request(context, request)
    try:
        worker_set = start_workers(context, request, slot_request.max_slots)
        return _time_configs(context, request, worker_set, mst_keys, until)
    except (ObjectNotReady, *RETRYABLE_ERRORS):
        return {}


def _time_configs(
    context: CallContext,
    request: FitRequest,
    worker_set: WorkerSet,
    mst_keys: Sequence[int],
    until: float,
) -> dict[int, float]:
    configs = [config for config in request.configs if config.mst_key in mst_keys]
    workers = worker_set.workers
    log = RunLog(context.control, NO_RUN)
    probes = [Probe(worker_set.visits, worker, log) for worker in workers]
    rates = {config.mst_key: math.inf for config in configs}
    while configs and time.monotonic() < until:
        timed = configs[: len(workers)]
        configs = configs[len(workers) :]
        for outcome in _run_probes(context, request, probes, timed, until):
            probe = probes[outcome.worker]
            config = timed[outcome.worker]
            if outcome.value is not None:
                probe.log_timings(request, config, outcome.value)
                rates[config.mst_key] = _read_rate(outcome.value)
                _note_compiled(request, config, probe.worker)
            elif outcome.error is LATE:
                probe.worker.memory.forget()  # its trainer has ended
            elif outcome.error is not None and not isinstance(outcome.error, ConfigFailure):
                raise outcome.error
    return rates


def _run_probes(
    context: CallContext,
    request: FitRequest,
    probes: Sequence[Probe],
    configs: Sequence[Config],
    until: float,
) -> Iterator[Outcome[JsonObject]]:
    """Time a configuration on each worker; yield the outcomes, with LATE for what is cancelled."""
    dispatcher: Dispatcher[JsonObject] = Dispatcher(context.check)
    for position, (probe, config) in enumerate(zip(probes, configs)):
        # With more rows, a trainer would also compile and time other execution modes.
        steps = probe.list_steps(request, config, config.fit.batch_size)
        dispatcher.begin(position, probe.worker.session, steps)
    while dispatcher.busy():
        outcomes = dispatcher.wait(until)
        if not outcomes:
            dispatcher.cancel(range(len(configs)), LATE)
            until = math.inf
        yield from outcomes


def _read_rate(timing: Mapping[str, float | None]) -> float:
    seconds = timing["seconds_per_row"]
    return math.inf if seconds is None else seconds


def _note_compiled(request: FitRequest, config: Config, worker: Worker) -> None:
    """Note where the program of a configuration is compiled, so that it begins there."""
    program = hash_program(visit_jobs.describe_program(request, config))
    key = make_compilation_key(program, config.fit.batch_size)
    worker.memory.compilations |= {key}
