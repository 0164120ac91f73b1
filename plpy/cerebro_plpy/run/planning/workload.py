"""What is known of a run before it begins: its work, and what earlier runs have measured of its
programs.
"""

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
"""What a trainer says of a program that it was to time; None where it cannot train it."""
MALFORMED = (AttributeError, KeyError, TypeError, ValueError)
"""What a plan may raise that somebody has written into the log."""


class TrainerSize(NamedTuple):
    """What each trainer has where there are so many: its threads, and the bytes of rows that it may
    keep.
    """

    threads: int
    cache_bytes: int


class Trainers(NamedTuple):
    """Those of a run: how many train at a time, what each has, how they call their machine by
    framework, and what they have compiled; `apart` they serve a segment each. Of other numbers of
    them that there may be it is known what each would have (`widths`)."""

    worker_count: int
    size: TrainerSize
    machines: Mapping[str, str]
    sizes: Mapping[int, TrainerSize]
    compiled: Mapping[int, frozenset[str]] = {}
    are_segment_bound: bool = False


class PriorRun(NamedTuple):
    """A completed run of like programs: its plan, what it took, and whether it has changed its
    strategy meanwhile.
    """

    run_id: int
    plan: RunPlan
    seconds: float
    has_changed_strategy: bool = False


class ProgramHistory:
    """What the log has of the programs of a request, on machines that are called so by
    framework.
    """

    def __init__(
        self, control: Session, request: FitRequest, machines: Mapping[str, str] | None = None
    ) -> None:
        self._control, self._request = control, request
        self._names = {
            config.mst_key: hash_program(visit_jobs.describe_program(request, config))
            for config in request.configs
        }
        self._timings = Timings(
            control.run(sql("run.known_timings"), (sorted({*self._names.values()}),))
        )
        self._machines = machines or {
            each: self._timings.find_machine(each) for each in {*request.backends.values()}
        }
        self._like: list[PriorRun] | None = None

    def list_programs(self, threads: int, probed: Mapping[str, ProbeResult]) -> Iterator[Program]:
        """What is compiled for the configurations, as far as its forms were timed with so many
        threads.
        """
        request, groups = self._request, dict[tuple[str, int, str], list[int]]()
        for config in request.configs:
            key = (
                self._names[config.mst_key],
                config.fit.batch_size,
                request.backends[config.mst_key],
            )
            groups.setdefault(key, []).append(config.mst_key)
        for (name, batch, backend), configs in groups.items():
            compiled = make_compilation_key(name, batch)
            done = probed.get(compiled)
            program = Program(compiled, tuple(configs), backend, batch, UNKNOWN)
            situation = TimingKey(self._machines[backend], name, batch, threads)
            forms: Mapping[str, Mapping[str, Any]] = self._timings.get(situation)
            if done:
                forms = {done["form"]: done} if done["shards"] else {**forms, done["form"]: done}
                program = replace(
                    program, state_bytes=done["state_bytes"], shards=tuple(done["shards"])
                )
            probed_as = UPPER_BOUND if configs[0] in request.activations else PROBED
            yield program_costs.apply_timings(program, forms, probed_as if done else TIMED)

    def add_lanes(self, program: Program, chosen: Strategy) -> Program:
        """The program with how many of its configurations workers of a strategy train side by
        side.
        """
        lanes = self._alike(program, chosen)
        situation = TimingKey(
            self._machines[program.backend],
            self._names[program.configs[0]],
            program.batch_size,
            chosen.threads,
        )
        known = self._timings.get(situation)
        if lanes < 2 or choose_fused_form(lanes) not in known:
            return replace(program, lanes=lanes)
        lanes = choose_fusion_size(known, lanes)
        return replace(
            program,
            lanes=lanes,
            lane_gain=compute_fusion_saving(known, lanes) / find_single_seconds(known)
            if find_single_seconds(known)
            else None,
        )

    def _alike(self, program: Program, chosen: Strategy) -> int:
        """How many configurations a worker may train side by side: see `run/loop/fusion.py`."""
        request = self._request
        configs = [config for config in request.configs if config.mst_key in program.configs]
        able = [
            each.fit
            for each in configs
            if each.group is None and each.fit.callbacks.tensorboard is None
        ]
        if not able or program.shards or not chosen.is_stationary:
            return 1
        most = max(sum(fit == other for other in able) for fit in able)
        return min(choose_max_lanes(request.gpus), -(-most // chosen.workers))

    def read_prior_runs(self, programs: Sequence[Program], threads: int) -> list[PriorRun]:
        """The newest runs with any of these programs, whose trainers had as many threads."""
        if self._like is None:
            self._like = list(_like_runs(self._control, programs))
        return [each for each in self._like if each.plan.strategy.threads == threads]

    def apply_measurements(self, programs: Sequence[Program], threads: int) -> list[Program]:
        """The programs with what the newest run that had each has measured. What its own plan knew
        of compilation holds where its trainers did not compile."""
        found = list(programs)
        for each in self.read_prior_runs(programs, threads):
            before = {program.name: program.compile for program in each.plan.programs}
            if not any(program.source != MEASURED and program.name in before for program in found):
                continue
            log = program_costs.read_costs(self._control, each.run_id, each.plan)
            found = [
                program
                if program.source == MEASURED
                else program_costs.apply_costs(
                    replace(program, compile=before.get(program.name) or program.compile), log
                )
                for program in found
            ]
        return found

    def convert_threads(self, programs: Sequence[Program], here: int, there: int) -> list[Program]:
        """The programs of trainers with so many threads as those with another number have them: as
        they were measured, where all were with both; else by forms that were timed with both, for a
        form that nobody has tried there yet would look like a matter of the width."""
        if all(program.source == MEASURED for program in programs):
            plain = [replace(program, source=UNKNOWN) for program in programs]
            measured = self.apply_measurements(plain, there)
            if all(program.source == MEASURED for program in measured):
                return measured
        return [self._scaled(program, here, there) for program in programs]

    def _scaled(self, program: Program, here: int, there: int) -> Program:
        name, machine = self._names[program.configs[0]], self._machines[program.backend]
        speeds = self._timings.collect_speeds(machine, name, program.batch_size)
        one, other = speeds.get(here, {}), speeds.get(there, {})
        both = one.keys() & other.keys()
        if not both or program.row_seconds is None:
            return replace(program, row_seconds=None)
        factor = min(other[form] for form in both) / min(one[form] for form in both)
        return replace(
            program,
            row_seconds=program.row_seconds * factor,
            evaluation_row_seconds=program.evaluation_row_seconds * factor,
        )


def _like_runs(control: Session, programs: Sequence[Program]) -> Iterator[PriorRun]:
    for run_id, text, seconds, changed in control.run(
        sql("plan.like_runs"), ([each.name for each in programs],)
    ):
        try:
            plan = RunPlan.from_json(json.loads(text))
        except MALFORMED:
            continue
        yield PriorRun(run_id, plan, seconds, changed)


def describe_work(request: FitRequest) -> Work:
    """What there is to do."""
    spec, segments = request.spec, request.source.segments
    epochs = tuple(spec.list_evaluations_until(request.last_epoch))
    share = sum(map(spec.evaluates_training, epochs)) / max(1, len(epochs))
    evaluated = request.source.rows * share + (request.validation.rows if request.validation else 0)
    return Work(
        epochs=request.last_epoch,
        evaluate_epochs=epochs,
        segments=tuple(segments),
        rows={config.mst_key: count_visit_rows(request, config) for config in request.configs},
        evaluated_rows=evaluated / len(segments),
        schedule=spec.schedule,
        commit_seconds=request.commit_seconds,
        segment_subsets={key: tuple(sorted(own)) for key, own in request.segment_subsets.items()},
        may_end_early=request.search is not None,
        copies=len(request.spec.copy_segments),
    )


def count_visit_rows(request: FitRequest, config: Config) -> int:
    """The rows that a configuration trains in a visit."""
    fit, segments = config.fit, request.segments_of(config.group)
    rows = request.source.rows if config.group is None else request.groups[config.group].rows
    rows = -(-rows // len(segments))
    if fit.steps_per_epoch is not None:
        rows = min(rows, fit.steps_per_epoch * fit.batch_size)
    return rows * fit.passes


def describe_data(request: FitRequest, room: int) -> Data:
    """Sizes of what is trained on, where each trainer has this room for rows."""
    rows = sum(table.rows for table in request.row_tables)
    return Data(request.source.rows, rows, request.decoded_bytes, room, request.gpus)


def list_stored_layers(request: FitRequest, cores: int) -> Iterator[StoredLayer]:
    """What is stored of frozen layers, each that gives the same once, where so many cores compute
    it.
    """
    users: dict[str, list[int]] = {}
    for key, features in sorted(request.activations.items()):
        users.setdefault(features.cut.digest, []).append(key)
    for keys in users.values():
        features, means = request.activations[keys[0]], make_storage(request)
        cut, kept = features.cut, features.exists
        seconds = 0.0 if kept else means.store_seconds(cut) / cores
        yield StoredLayer(cut.layer, tuple(keys), means.rows, means.size_of(cut), seconds, kept)
