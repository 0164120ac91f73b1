"""The work of a run, and the measurements of its programs by earlier runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Optional

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.records import replace
from cerebro_plpy.run.activation_cache.selection import make_storage
from cerebro_plpy.run.log import program_costs
from cerebro_plpy.run.log.form_timings import (
    TimingKey,
    Timings,
    choose_fused_form,
    choose_fusion_size,
    choose_max_lanes,
    compute_fusion_saving,
    find_single_seconds,
    hash_program,
    make_compilation_key,
)
from cerebro_plpy.run.request import visit_jobs
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.scheduling.planning.run_plan import (
    MEASURED,
    PROBED,
    TIMED,
    UNKNOWN,
    UPPER_BOUND,
    Data,
    Program,
    RunPlan,
    StoredLayer,
    Strategy,
    Work,
)

ProbeResult = Optional[Mapping[str, Any]]
"""A trainer's timing of a program; None if it cannot train the program."""
MALFORMED = (AttributeError, KeyError, TypeError, ValueError)
"""Errors of reading a plan that a user has written into the log."""


class TrainerSize(NamedTuple):
    """The resources of each trainer."""

    threads: int
    cache_bytes: int  # memory for rows


class Trainers(NamedTuple):
    """The trainers of a run."""

    worker_count: int  # number of workers that train at a time
    size: TrainerSize
    machines: Mapping[str, str]  # name of the machine by framework
    sizes: Mapping[int, TrainerSize]  # sizes with other numbers of workers, by that number
    compiled: Mapping[int, frozenset[str]] = {}  # compiled programs by worker
    are_segment_bound: bool = False  # each trainer serves one segment only


class PriorRun(NamedTuple):
    """A completed run with some of the same programs."""

    run_id: int
    plan: RunPlan
    seconds: float
    has_changed_strategy: bool = False


class ProgramHistory:
    """The timings and costs of a request's programs in the log."""

    def __init__(
        self, control: Session, request: FitRequest, machines: Mapping[str, str] | None = None
    ) -> None:
        """Read the timings.

        Args:
            machines: name of the machine by framework; if not given, that of the newest timings.
        """
        self._control = control
        self._request = request
        self._names = {
            config.mst_key: hash_program(visit_jobs.describe_program(request, config))
            for config in request.configs
        }
        names = sorted(set(self._names.values()))
        self._timings = Timings(control.run(sql("run.known_timings"), (names,)))
        self._machines = machines or {
            framework: self._timings.find_machine(framework)
            for framework in set(request.backends.values())
        }
        self._prior_runs: list[PriorRun] | None = None

    def list_programs(self, threads: int, probed: Mapping[str, ProbeResult]) -> Iterator[Program]:
        """Yield the programs of the request, with costs from timings of their execution modes.

        Args:
            threads: threads of each trainer.
            probed: timings that were measured just now, by compilation key.
        """
        request = self._request
        groups: dict[tuple[str, int, str], list[int]] = {}
        for config in request.configs:
            mst_key = config.mst_key
            key = (self._names[mst_key], config.fit.batch_size, request.backends[mst_key])
            groups.setdefault(key, []).append(mst_key)
        for (name, batch_size, backend), mst_keys in groups.items():
            compilation = make_compilation_key(name, batch_size)
            program = Program(compilation, tuple(mst_keys), backend, batch_size, UNKNOWN)
            timing_key = TimingKey(self._machines[backend], name, batch_size, threads)
            timings: Mapping[str, Mapping[str, Any]] = self._timings.get(timing_key)
            probe = probed.get(compilation)
            if not probe:
                yield program_costs.apply_timings(program, timings, TIMED)
                continue
            if probe["shards"]:  # a sharded program has no other mode
                timings = {}
            timings = {**timings, probe["form"]: probe}
            shards = tuple(probe["shards"])
            program = replace(program, state_bytes=probe["state_bytes"], shards=shards)
            # Whole networks are timed, because stored layer outputs do not exist yet.
            source = UPPER_BOUND if mst_keys[0] in request.activations else PROBED
            yield program_costs.apply_timings(program, timings, source)

    def add_lanes(self, program: Program, strategy: Strategy) -> Program:
        """Return the program with the number of configurations that a worker trains at once."""
        lanes = self._count_fusable(program, strategy)
        name = self._names[program.configs[0]]
        machine = self._machines[program.backend]
        timings = self._timings.get(TimingKey(machine, name, program.batch_size, strategy.threads))
        if lanes < 2 or choose_fused_form(lanes) not in timings:
            return replace(program, lanes=lanes)
        lanes = choose_fusion_size(timings, lanes)
        single_seconds = find_single_seconds(timings)
        if not single_seconds:
            return replace(program, lanes=lanes, lane_gain=None)
        gain = compute_fusion_saving(timings, lanes) / single_seconds
        return replace(program, lanes=lanes, lane_gain=gain)

    def _count_fusable(self, program: Program, strategy: Strategy) -> int:
        """Return how many configurations a worker may train at once, see `run/loop/fusion.py`."""
        fits = [
            config.fit
            for config in self._request.configs
            if config.mst_key in program.configs
            and config.group is None
            and config.fit.callbacks.tensorboard is None
        ]
        if not fits or program.shards or not strategy.is_stationary:
            return 1
        equal_fits = max(sum(fit == other_fit for other_fit in fits) for fit in fits)
        configs_per_worker = -(-equal_fits // strategy.workers)
        return min(choose_max_lanes(self._request.gpus), configs_per_worker)

    def read_prior_runs(self, programs: Sequence[Program], threads: int) -> list[PriorRun]:
        """Return the newest runs with any of these programs and as many threads per trainer."""
        if self._prior_runs is None:
            self._prior_runs = list(_read_prior_runs(self._control, programs))
        return [run for run in self._prior_runs if run.plan.strategy.threads == threads]

    def apply_measurements(self, programs: Sequence[Program], threads: int) -> list[Program]:
        """Return the programs with the costs that the newest run with each of them measured.

        If its trainers did not compile, the compile time is that of its plan.
        """
        updated = list(programs)
        for run in self.read_prior_runs(programs, threads):
            compile_seconds = {program.name: program.compile for program in run.plan.programs}
            new_positions = [
                position
                for position, program in enumerate(updated)
                if program.source != MEASURED and program.name in compile_seconds
            ]
            if not new_positions:
                continue
            log = program_costs.read_costs(self._control, run.run_id, run.plan)
            for position in new_positions:
                program = updated[position]
                planned_seconds = compile_seconds[program.name] or program.compile
                program = replace(program, compile=planned_seconds)
                updated[position] = program_costs.apply_costs(program, log)
        return updated

    def convert_threads(
        self, programs: Sequence[Program], threads: int, other_threads: int
    ) -> list[Program]:
        """Return programs with their costs in trainers with another number of threads.

        If all are measured with both numbers, the measurements are taken. Otherwise, only modes
        that were timed with both count: an untimed mode would look like an effect of the threads.
        """
        if all(program.source == MEASURED for program in programs):
            unmeasured = [replace(program, source=UNKNOWN) for program in programs]
            measured = self.apply_measurements(unmeasured, other_threads)
            if all(program.source == MEASURED for program in measured):
                return measured
        return [self._scale(program, threads, other_threads) for program in programs]

    def _scale(self, program: Program, threads: int, other_threads: int) -> Program:
        name = self._names[program.configs[0]]
        machine = self._machines[program.backend]
        speeds = self._timings.collect_speeds(machine, name, program.batch_size)
        current = speeds.get(threads, {})
        converted = speeds.get(other_threads, {})
        forms = current.keys() & converted.keys()
        if not forms or program.row_seconds is None:
            return replace(program, row_seconds=None)
        factor = min(converted[form] for form in forms) / min(current[form] for form in forms)
        return replace(
            program,
            row_seconds=program.row_seconds * factor,
            evaluation_row_seconds=program.evaluation_row_seconds * factor,
        )


def _read_prior_runs(control: Session, programs: Sequence[Program]) -> Iterator[PriorRun]:
    names = [program.name for program in programs]
    for run_id, text, seconds, has_changed in control.run(sql("plan.like_runs"), (names,)):
        try:
            plan = RunPlan.from_json(json.loads(text))
        except MALFORMED:
            continue
        yield PriorRun(run_id, plan, seconds, has_changed)


def describe_work(request: FitRequest) -> Work:
    """Return the work of a run."""
    spec = request.spec
    segments = request.source.segments
    epochs = tuple(spec.list_evaluations_until(request.last_epoch))
    training_share = sum(map(spec.evaluates_training, epochs)) / max(1, len(epochs))
    evaluated_rows = request.source.rows * training_share
    if request.validation:
        evaluated_rows += request.validation.rows
    subsets = request.segment_subsets.items()
    return Work(
        epochs=request.last_epoch,
        evaluate_epochs=epochs,
        segments=tuple(segments),
        rows={config.mst_key: count_visit_rows(request, config) for config in request.configs},
        evaluated_rows=evaluated_rows / len(segments),
        schedule=spec.schedule,
        commit_seconds=request.commit_seconds,
        segment_subsets={mst_key: tuple(sorted(subset)) for mst_key, subset in subsets},
        may_end_early=request.search is not None,
        copies=len(spec.copy_segments),
    )


def count_visit_rows(request: FitRequest, config: Config) -> int:
    """Return the rows that a configuration trains in a visit, in all passes."""
    fit = config.fit
    source = request.source if config.group is None else request.groups[config.group]
    rows = -(-source.rows // len(request.segments_of(config.group)))
    if config.mst_key in request.whole_epoch_keys:
        rows = -(-rows // request.spec.tree_period)
    if fit.steps_per_epoch is not None:
        rows = min(rows, fit.steps_per_epoch * fit.batch_size)
    return rows * fit.passes


def describe_data(request: FitRequest, cache_bytes: int) -> Data:
    """Return the sizes of the data if each trainer has this memory for rows."""
    rows = sum(table.rows for table in request.row_tables)
    return Data(request.source.rows, rows, request.decoded_bytes, cache_bytes, request.gpus)


def list_stored_layers(request: FitRequest, cores: int) -> Iterator[StoredLayer]:
    """Yield the layers whose outputs are stored; layers with equal outputs count once.

    Args:
        cores: number of cores that compute the outputs.
    """
    users: dict[str, list[int]] = {}
    for mst_key, activations in sorted(request.activations.items()):
        users.setdefault(activations.cut.digest, []).append(mst_key)
    for mst_keys in users.values():
        storage = make_storage(request)
        cut = request.activations[mst_keys[0]].cut
        exists = request.activations[mst_keys[0]].exists
        seconds = 0.0 if exists else storage.store_seconds(cut) / cores
        size = storage.size_of(cut)
        yield StoredLayer(cut.layer, tuple(mst_keys), storage.rows, size, seconds, exists)
