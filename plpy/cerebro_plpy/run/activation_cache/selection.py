"""The choice of frozen layers whose outputs a run stores.

Trainers return where networks can be cut, and `scheduling.planning.activation_cuts` chooses by the
estimated time of the run. A run that is resumed or replayed has the cuts that its log names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar, cast

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.database.sessions.async_dispatcher import Steps
from cerebro_plpy.errors import ConfigFailure, ObjectNotReady
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.platform.job import Job, StateSource
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.run.log.form_timings import hash_program
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.run.request import visit_jobs
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.run.state.config_state import ConfigHistory, ConfigState
from cerebro_plpy.run.workers.workers import WorkerSet, run_steps
from cerebro_plpy.scheduling.planning.activation_cuts import ConfigCuts, Cut, Storage, choose_cuts

T = TypeVar("T")
FROZEN_LAYER = re.compile(r'"trainable"\s*:\s*false')
MEGABYTE = 1 << 20
MAX_BUFFER_BYTES = 256 << 20
"""Limit of the outputs for one buffer, which a backend has in memory several times."""


class BuildContext(NamedTuple):
    """The call, the workers and the log of a run that stores layer outputs."""

    call: CallContext
    worker_set: WorkerSet
    log: RunLog


class Candidate(NamedTuple):
    """A configuration with frozen layers."""

    config: Config
    state: StateSource  # the state that it continues from
    cuts: tuple[Cut, ...] = ()  # layers whose outputs can be stored


class Selection(NamedTuple):
    """The cuts of a run."""

    cuts: Mapping[int, Cut]  # by mst_key; empty if none is worth it
    candidates: Sequence[Candidate]
    existing: frozenset[str] = frozenset()  # digests of cuts whose outputs earlier runs have stored
    reason: str = ""  # why no cut is chosen


IsCached = Callable[[Candidate, Cut], bool]
"""Returns True if an earlier run has stored the outputs of a layer for all rows of a config."""


def select_cuts(
    build: BuildContext,
    request: FitRequest,
    histories: Mapping[int, ConfigHistory],
    is_cached: IsCached,
) -> Selection:
    """Choose where the networks of a run are cut: as its log says, or else by estimates."""
    logged_layers = request.replay.cut_layers
    if logged_layers is None and request.spec.arguments.feature_budget == 0:
        return Selection({}, ())
    candidates = [
        candidate
        for candidate in _list_candidates(build, request, histories)
        if logged_layers is None or candidate.config.mst_key in logged_layers
    ]
    obstacle = _find_obstacle(build, candidates)
    cuttable = [] if obstacle else _find_cuts(build, request, candidates)
    existing = frozenset(
        cut.digest for candidate in cuttable for cut in candidate.cuts if is_cached(candidate, cut)
    )
    if logged_layers is None:
        cuts = _choose_cuts(request, cuttable, existing)
    else:
        mst_keys = [candidate.config.mst_key for candidate in candidates]
        layers = {mst_key: logged_layers[mst_key] for mst_key in mst_keys}
        cuts = _find_logged_cuts(cuttable, layers, obstacle)
    return Selection(cuts, cuttable, existing, obstacle or _explain_no_choice(cuttable))


def _find_obstacle(build: BuildContext, candidates: Sequence[Candidate]) -> str:
    """Return why nothing can be stored, or an empty text."""
    if not candidates:
        return "no configuration has layers that are not trained"
    if build.call.is_local:
        return "the tables are seen only by the caller's own session"
    if not build.call.platform.stores_features:
        return f"{build.call.platform.name} stores nothing that a trainer gives"
    return ""


def _explain_no_choice(candidates: Sequence[Candidate]) -> str:
    if any(candidate.cuts for candidate in candidates):
        return "the run would take no less time by what fits into it"
    return "no network can be cut behind layers that are not trained, nor random"


def _list_candidates(
    build: BuildContext, request: FitRequest, histories: Mapping[int, ConfigHistory]
) -> Iterator[Candidate]:
    """Yield the configurations that have frozen layers and are still to be trained."""
    for config in request.configs:
        has_frozen_layers = FROZEN_LAYER.search(request.architectures[config.model_id].json)
        shows_network = config.fit.callbacks.tensorboard  # TensorBoard is shown whole networks
        is_clone = config.mst_key in request.replay.clone_starts
        if not has_frozen_layers or shows_network or is_clone:
            continue
        history = histories.get(config.mst_key, ConfigHistory())
        state = ConfigState.restore(history, request, config, build.log.run_id)
        if not (state.released or state.is_completed):
            yield Candidate(config, state.state)


def _find_cuts(
    build: BuildContext, request: FitRequest, candidates: Sequence[Candidate]
) -> list[Candidate]:
    """Return the candidates with their cuts.

    Trainers find them, for equal networks with equal states only once.
    """
    keys = [_make_network_key(request, candidate) for candidate in candidates]
    first_candidates: dict[object, Candidate] = {}
    for key, candidate in zip(keys, candidates):
        first_candidates.setdefault(key, candidate)
    assigned: dict[Worker, list[tuple[object, Candidate]]] = {
        worker: [] for worker in build.worker_set.workers
    }
    by_mst_key = sorted(first_candidates.items(), key=lambda item: item[1].config.mst_key)
    for number, (key, candidate) in enumerate(by_mst_key):
        workers = build.worker_set.list_with(request.backends[candidate.config.mst_key])
        assigned[workers[number % len(workers)]].append((key, candidate))
    steps = {
        worker: _inspect_networks(build, request, worker, networks)
        for worker, networks in assigned.items()
    }
    cuts = dict(pair for pairs in run_concurrently(build, steps) for pair in pairs)
    return [candidate._replace(cuts=cuts[key]) for key, candidate in zip(keys, candidates)]


def _make_network_key(request: FitRequest, candidate: Candidate) -> object:
    """Return everything that decides the cuts of a network and the outputs of its layers."""
    state = candidate.state
    seed = state.seed if state.source == "new" else None
    program = hash_program(visit_jobs.describe_whole_program(request, candidate.config))
    return program, state.source, state.sql, state.values, state.stored, seed


def _inspect_networks(
    build: BuildContext,
    request: FitRequest,
    worker: Worker,
    networks: Sequence[tuple[object, Candidate]],
) -> Steps[list[tuple[object, tuple[Cut, ...]]]]:
    """Let a worker find the cuts of networks; return them with the keys of the networks."""
    cuts_by_key: list[tuple[object, tuple[Cut, ...]]] = []
    for key, candidate in networks:
        program = visit_jobs.describe_whole_program(request, candidate.config)
        job = Job("cuts", program, candidate.state.key)
        try:
            response = yield from build.worker_set.visits.inspect(worker, candidate.state, job)
        except ConfigFailure:  # its first visit reports the reason
            cuts_by_key.append((key, ()))
            continue
        cuts = tuple(
            Cut(cut["layer"], cut["digest"], tuple(cut["shape"]), cut["flops"])
            for cut in response["cuts"]
        )
        cuts_by_key.append((key, cuts))
    return cuts_by_key


def run_concurrently(build: BuildContext, steps: Mapping[Worker, Steps[T]]) -> list[T]:
    """Run the steps of each worker and return their results.

    If one of them fails, its error is raised after the others have ended.
    """
    results = list[T]()
    errors = []
    for outcome in run_steps(build.call, [*steps], steps.values()):
        if outcome.error is None:
            results.append(cast(T, outcome.value))
        else:
            errors.append(outcome.error)
    if errors:
        raise errors[0]
    return results


def make_storage(request: FitRequest) -> Storage:
    """Return the size of the rows of a run, and the limit for stored outputs."""
    rows = sum(table.rows for table in request.row_tables)
    decoded_bytes = sum(table.decoded_bytes for table in request.row_tables)
    budget = request.spec.arguments.feature_budget
    if budget is None:
        return Storage(rows, decoded_bytes // rows, decoded_bytes)
    # The user accepts any overhead by naming a budget.
    return Storage(rows, decoded_bytes // rows, budget * MEGABYTE, overhead=0)


def _choose_cuts(
    request: FitRequest, candidates: Sequence[Candidate], existing: frozenset[str]
) -> dict[int, Cut]:
    """Choose the cuts with which the run is expected to take the least time."""
    max_row_bytes = MAX_BUFFER_BYTES // max(table.buffer_size for table in request.row_tables)
    evaluations = len(request.spec.evaluate_epochs)
    options = []
    for candidate in candidates:
        config = candidate.config
        cuts = tuple(cut for cut in candidate.cuts if cut.nbytes <= max_row_bytes)
        passes = request.spec.epochs * config.fit.passes + evaluations
        if cuts:
            options.append(ConfigCuts(config.mst_key, cuts, passes))
    return choose_cuts(options, make_storage(request)._replace(existing=existing))


def _find_logged_cuts(
    candidates: Sequence[Candidate], layers: Mapping[int, str], obstacle: str
) -> dict[int, Cut]:
    """Return the cuts at the layers that the log names, by mst_key.

    Raises:
        ObjectNotReady: a network cannot be cut there.
    """
    cuts = {
        (candidate.config.mst_key, cut.layer): cut
        for candidate in candidates
        for cut in candidate.cuts
    }
    missing = sorted(mst_key for mst_key, layer in layers.items() if (mst_key, layer) not in cuts)
    if missing:
        raise ObjectNotReady(
            f"configurations {missing} were trained on outputs of frozen layers, which cannot "
            f"be stored now: {obstacle or 'their networks cannot be cut there'}",
            hint="COMMIT the transaction that made the tables, or train again.",
        )
    return {mst_key: cuts[mst_key, layer] for mst_key, layer in layers.items()}
