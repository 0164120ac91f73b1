"""Which outputs of frozen layers at the front of networks a run stores: trainers tell where
networks can be cut, and `hopping.cuts` chooses, by what the run would take. A run that goes on, or
is repeated, has the cuts that its log names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar, cast

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.database.sessions.async_dispatcher import Dispatcher, Steps
from cerebro_plpy.errors import ConfigFailure, ObjectNotReady
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.platform.job import Job, StateSource
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.run.log.form_timings import hash_program
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.run.request import visit_jobs
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.run.state.config_state import ConfigHistory, ConfigState
from cerebro_plpy.run.workers.workers import WorkerSet
from cerebro_plpy.scheduling.planning.activation_cuts import ConfigCuts, Cut, Storage, choose_cuts

T = TypeVar("T")
FROZEN = re.compile(r'"trainable"\s*:\s*false')
MEGABYTE = 1 << 20
LARGEST_VALUE = 256 << 20
"""Bytes of a buffer's features: a value of the table, which a backend holds several times."""


class BuildContext(NamedTuple):
    """Where features are computed: the workers of a run, and its log."""

    context: CallContext
    worker_set: WorkerSet
    log: RunLog


class Candidate(NamedTuple):
    """A configuration with frozen layers, and the state from which it goes on."""

    config: Config
    state: StateSource
    cuts: tuple[Cut, ...] = ()


class Selection(NamedTuple):
    """The cut of each configuration that is to have one, of all that were `found`; those that are
    `kept` from earlier runs, by their digests; and `why` there are none."""

    chosen: Mapping[int, Cut]
    found: Sequence[Candidate]
    kept: frozenset[str] = frozenset()
    why: str = ""


Has = Callable[[Candidate, Cut], bool]
"""Whether what a layer gives for a configuration's rows is there from an earlier run."""


def select(
    site: BuildContext, request: FitRequest, past: Mapping[int, ConfigHistory], has: Has
) -> Selection:
    """Where the networks of a run are cut: as its log says, or by the estimate."""
    repeated = request.replay.cut_layers
    if repeated is None and request.spec.arguments.feature_budget == 0:
        return Selection({}, ())
    wanted = [
        each
        for each in _candidates(site, request, past)
        if repeated is None or each.config.mst_key in repeated
    ]
    why = _obstacle(site, wanted)
    found = [] if why else _cut(site, request, wanted)
    kept = frozenset(cut.digest for each in found for cut in each.cuts if has(each, cut))
    chosen = (
        _chosen(request, found, kept)
        if repeated is None
        else _repeated(found, wanted, repeated, why)
    )
    return Selection(chosen, found, kept, why or _reason(found))


def _obstacle(site: BuildContext, wanted: Sequence[Candidate]) -> str:
    """Why nothing can be stored; empty where something may be."""
    if not wanted:
        return "no configuration has layers that are not trained"
    if site.context.is_local:
        return "the tables are seen only by the caller's own session"
    if not site.context.platform.stores_features:
        return f"{site.context.platform.name} stores nothing that a trainer gives"
    return ""


def _reason(found: Sequence[Candidate]) -> str:
    """Why nothing was chosen."""
    if any(each.cuts for each in found):
        return "the run would take no less time by what fits into it"
    return "no network can be cut behind layers that are not trained, nor random"


def _candidates(
    site: BuildContext, request: FitRequest, past: Mapping[int, ConfigHistory]
) -> Iterator[Candidate]:
    """The configurations that have frozen layers, and something left to do; TensorBoard is shown
    whole networks.
    """
    for config in request.configs:
        frozen = FROZEN.search(request.architectures[config.model_id].json)
        if (
            not frozen
            or config.fit.callbacks.tensorboard
            or config.mst_key in request.replay.clone_starts
        ):
            continue
        history = past.get(config.mst_key, ConfigHistory())
        state = ConfigState.restore(history, request, config, site.log.run_id)
        if not (state.released or state.is_completed):
            yield Candidate(config, state.state)


def _cut(site: BuildContext, request: FitRequest, wanted: Sequence[Candidate]) -> list[Candidate]:
    """The candidates with their cuts; trainers tell them, of each state and network once."""
    keys = [_key(request, each) for each in wanted]
    first = dict(reversed([*zip(keys, wanted)]))
    asked: dict[Worker, list[tuple[object, Candidate]]] = {
        worker: [] for worker in site.worker_set.workers
    }
    for number, (key, each) in enumerate(
        sorted(first.items(), key=lambda item: item[1].config.mst_key)
    ):
        able = able_workers(site, request, each)
        asked[able[number % len(able)]].append((key, each))
    told = side_by_side(
        site, {worker: _told(site, request, worker, some) for worker, some in asked.items()}
    )
    known = {key: cuts for some in told for key, cuts in some}
    return [each._replace(cuts=known[key]) for key, each in zip(keys, wanted)]


def _key(request: FitRequest, candidate: Candidate) -> object:
    """What decides where a network can be cut, and what its layers give."""
    state = candidate.state
    seed = state.seed if state.source == "new" else None
    program = hash_program(visit_jobs.describe_whole_program(request, candidate.config))
    return program, state.source, state.sql, state.values, state.stored, seed


def _told(
    site: BuildContext,
    request: FitRequest,
    worker: Worker,
    asked: Sequence[tuple[object, Candidate]],
) -> Steps[list[tuple[object, tuple[Cut, ...]]]]:
    """What a worker tells of networks."""
    found = []
    for key, each in asked:
        job = Job("cuts", visit_jobs.describe_whole_program(request, each.config), each.state.key)
        try:
            told = (yield from site.worker_set.visits.inspect(worker, each.state, job))["cuts"]
        except ConfigFailure:
            told = []  # its first visit says why
        cuts = (Cut(cut["layer"], cut["digest"], tuple(cut["shape"]), cut["flops"]) for cut in told)
        found.append((key, tuple(cuts)))
    return found


def able_workers(site: BuildContext, request: FitRequest, candidate: Candidate) -> list[Worker]:
    """The workers that have the framework of a configuration."""
    framework = request.backends[candidate.config.mst_key]
    return [worker for worker in site.worker_set.workers if worker.framework == framework]


def side_by_side(site: BuildContext, steps: Mapping[Worker, Steps[T]]) -> list[T]:
    """What the steps of workers come to; where one fails the others come to their ends before that
    is raised.
    """
    dispatcher: Dispatcher[T] = Dispatcher(site.context.check)
    for number, (worker, its) in enumerate(steps.items()):
        dispatcher.begin(number, worker.session, its)
    found, errors = list[T](), []
    while dispatcher.busy():
        for outcome in dispatcher.wait():
            if outcome.error is None:
                found.append(cast(T, outcome.value))
            else:
                errors.append(outcome.error)
    if errors:
        raise errors[0]
    return found


def means_of(request: FitRequest) -> Storage:
    """The rows of a run, and what features of them may take."""
    budget, rows = (
        request.spec.arguments.feature_budget,
        sum(table.rows for table in request.row_tables),
    )
    decoded = sum(table.decoded_bytes for table in request.row_tables)
    if budget is None:
        return Storage(rows, decoded // rows, decoded)
    return Storage(
        rows, decoded // rows, budget * MEGABYTE, overhead=0
    )  # who names one says that it is worth a moment


def _chosen(
    request: FitRequest, found: Sequence[Candidate], kept: frozenset[str]
) -> dict[int, Cut]:
    """The cuts that the run takes least with."""
    most = LARGEST_VALUE // max(table.buffer_size for table in request.row_tables)
    evaluations = len(request.spec.evaluate_epochs)
    wishes = [
        ConfigCuts(
            each.config.mst_key, cuts, request.spec.epochs * each.config.fit.passes + evaluations
        )
        for each in found
        if (cuts := tuple(cut for cut in each.cuts if cut.nbytes <= most))
    ]
    return choose_cuts(wishes, means_of(request)._replace(existing=kept))


def _repeated(
    found: Sequence[Candidate], wanted: Sequence[Candidate], repeated: Mapping[int, str], why: str
) -> dict[int, Cut]:
    """The cuts at the layers that the log names."""
    cuts = {each.config.mst_key: {cut.layer: cut for cut in each.cuts} for each in found}
    missing = sorted(
        key
        for key in (each.config.mst_key for each in wanted)
        if repeated[key] not in cuts.get(key, {})
    )
    if missing:
        raise ObjectNotReady(
            f"configurations {missing} were trained on what frozen layers give, which cannot be "
            f"stored now: {why or 'their networks cannot be cut there'}",
            hint="COMMIT what the tables were made by, or train anew.",
        )
    return {key: cuts[key][repeated[key]] for key in cuts}
