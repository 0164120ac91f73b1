"""What a run is expected to take, before it begins: by what earlier runs have measured of its programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from statistics import median, median_low
from typing import Any, NamedTuple, Optional

from cerebro_plpy.configs.config import Config
from cerebro_plpy.database.dispatch import Session
from cerebro_plpy.database.queries import sql
from cerebro_plpy.hopping import plans
from cerebro_plpy.hopping.plans import (
    MEASURED,
    MOP,
    PROBED,
    TASK,
    TIMED,
    UNKNOWN,
    WIDE,
    Data,
    Program,
    RunPlan,
    Settled,
    Work,
)
from cerebro_plpy.hopping.plans import Strategy as Way
from cerebro_plpy.hopping.schedule import AVERAGING
from cerebro_plpy.hopping.tours import SHORTEST
from cerebro_plpy.platform.protocol import Worker
from cerebro_plpy.platform.workplace import Workplace
from cerebro_plpy.records import replace
from cerebro_plpy.run import costs, visits, workers
from cerebro_plpy.run.request import FitRequest
from cerebro_plpy.run.timings import Situation, Timings, compilation, digest

Probed = Optional[Mapping[str, Any]]
"""What a trainer says of a program that it was to time; None where it cannot train it."""
MALFORMED = (AttributeError, KeyError, TypeError, ValueError)
"""What a plan may raise that somebody has written into the log."""


class Trainers(NamedTuple):
    """Workers that are about to train, and other numbers of them that there may be, with the threads of each."""

    workers: Sequence[Worker]
    widths: Mapping[int, int]

    @property
    def threads(self) -> int:
        """Those of each trainer."""
        return self.workers[0].memory.threads

    @property
    def room(self) -> int:
        """What each may keep of rows, in bytes."""
        return min(worker.memory.cache_bytes for worker in self.workers)

    def machine(self, framework: str) -> str:
        """The machine, as a trainer with this framework calls it."""
        return next(worker.memory.machine for worker in self.workers if worker.framework == framework)


def trainers_of(workplace: Workplace, request: FitRequest, started: Sequence[Worker]) -> Trainers:
    """The trainers of a run, and what others there might be."""
    segments = len(request.source.segments)
    fixed = workplace.local or request.spec.arguments.workers or request.gpus
    most = min(workplace.platform.most_workers(segments), segments)
    return Trainers(started, {} if fixed else workplace.platform.widths(most))


class Earlier(NamedTuple):
    """A completed run of like programs: its plan, and what it took."""

    run_id: int
    plan: RunPlan
    seconds: float


def foresee(
    control: Session, request: FitRequest, trainers: Trainers, begun: float, probed: Mapping[str, Probed] | None = None
) -> RunPlan | None:
    """The plan of a run whose trainers are there; None where it is of no use.

    `begun` are the seconds that it has taken so far. One that is asked for, and not made where a run begins, has all
    strategies; `probed` are programs that were timed for it.
    """
    if request.spec.schedule == AVERAGING or not trainers.workers[0].memory.started:
        return None
    names = {config.mst_key: digest(visits.program(request, config)) for config in request.configs}
    known = Timings(control.run(sql("run.known_timings"), (sorted({*names.values()}),)))
    programs = list(programs_of(request, names, trainers, known, probed or {}))
    earlier = like_runs(control, programs, trainers.threads)
    programs = measured(control, programs, earlier)
    settled = Settled(work_of(request), request.repeat.orders, workers.compiled(trainers.workers))
    chosen, others = compared(settled, programs, Elsewhere(request, trainers, names, known), every=probed is not None)
    plan = RunPlan(
        work=settled.work,
        programs=tuple(programs),
        chosen=chosen,
        others=tuple(others),
        data=data_of(request, trainers),
        begun=begun,
        compiled={worker: tuple(sorted(found)) for worker, found in settled.compiled.items()},
    )
    return corrected(plan, earlier)


class Elsewhere(NamedTuple):
    """What is known of other numbers of workers."""

    request: FitRequest
    trainers: Trainers
    names: Mapping[int, str]
    known: Timings


def compared(
    settled: Settled, programs: Sequence[Program], elsewhere: Elsewhere, *, every: bool
) -> tuple[Way, Sequence[Way]]:
    """The strategy that a run is to follow, and others, as far as they may be chosen or `every` one is asked for.

    Where configurations may stay they do, unless the run is expected to be over much sooner where they hop, and that by
    what earlier runs have measured. What a search comes to, or a run with a budget, nobody knows beforehand.
    """
    request, trainers = elsewhere.request, elsewhere.trainers
    usual = way(workers.may_stay(request, trainers.workers), request.workers, trainers)
    usual = plans.priced(settled, programs, usual)
    known = all(program.source == MEASURED for program in programs)
    undecided = known and usual.name == TASK and not (request.search or request.spec.train)
    if not every and not (undecided and plans.improvable(settled, programs, usual)):
        return usual, ()
    others = list(alternatives(settled, programs, usual, elsewhere))
    hopping = [each for each in others if each.name == MOP and each.workers == usual.workers]
    chosen = plans.cheapest(usual, hopping if undecided else ())
    return chosen, [each for each in (usual, *others) if each is not chosen]


def way(stays: bool, number: int, trainers: Trainers) -> Way:
    """The strategy that the workers of a run follow."""
    cores = max(trainers.widths.values(), default=trainers.threads)
    wide = number == 1 and trainers.threads == cores > 1
    return Way(WIDE if wide else TASK if stays else MOP, number, trainers.threads)


def work_of(request: FitRequest) -> Work:
    """What there is to do."""
    spec, segments = request.spec, request.source.segments
    evaluated = request.source.rows * spec.training_metrics + (request.validation.rows if request.validation else 0)
    return Work(
        epochs=request.last_epoch,
        evaluate_epochs=tuple(spec.evaluated_until(request.last_epoch)),
        segments=tuple(segments),
        rows={config.mst_key: visit_rows(request, config) for config in request.configs},
        evaluated_rows=evaluated / len(segments),
        schedule=spec.schedule,
        commit_seconds=request.commit_seconds,
        own={key: tuple(sorted(own)) for key, own in request.own_segments.items()},
        sooner=request.search is not None,
    )


def visit_rows(request: FitRequest, config: Config) -> int:
    """The rows that a configuration trains in a visit."""
    fit, segments = config.fit, request.segments_of(config.group)
    rows = request.source.rows if config.group is None else request.groups[config.group].rows
    rows = -(-rows // len(segments))
    if fit.steps_per_epoch is not None:
        rows = min(rows, fit.steps_per_epoch * fit.batch_size)
    return rows * fit.passes


def data_of(request: FitRequest, trainers: Trainers) -> Data:
    """Sizes of what is trained on."""
    rows = request.source.rows + (request.validation.rows if request.validation else 0)
    return Data(request.source.rows, rows, request.decoded_bytes, trainers.room, request.gpus)


def programs_of(
    request: FitRequest, names: Mapping[int, str], trainers: Trainers, known: Timings, probed: Mapping[str, Probed]
) -> Iterator[Program]:
    """What is compiled for the configurations, as far as its forms were timed."""
    groups: dict[tuple[str, int, str], list[int]] = {}
    for config in request.configs:
        key = (names[config.mst_key], config.fit.batch_size, request.backends[config.mst_key])
        groups.setdefault(key, []).append(config.mst_key)
    for (name, batch, backend), configs in groups.items():
        compiled = compilation(name, batch)
        done = probed.get(compiled)
        program = Program(compiled, tuple(configs), backend, batch, UNKNOWN)
        forms: Mapping[str, Mapping[str, Any]] = known.of(
            Situation(trainers.machine(backend), name, batch, trainers.threads)
        )
        if done:
            forms, program = {**forms, done["form"]: done}, replace(program, state_bytes=done["state_bytes"])
        yield costs.timed(program, forms, PROBED if done else TIMED)


def like_runs(control: Session, programs: Sequence[Program], threads: int) -> list[Earlier]:
    """The newest runs with any of these programs, whose trainers had as many threads."""
    found = []
    for run_id, text, seconds in control.run(sql("plan.like_runs"), ([each.name for each in programs],)):
        try:
            plan = RunPlan.from_json(json.loads(text))
        except MALFORMED:
            continue
        if plan.chosen.threads == threads:
            found.append(Earlier(run_id, plan, seconds))
    return found


def measured(control: Session, programs: Sequence[Program], earlier: Sequence[Earlier]) -> list[Program]:
    """The programs with what the newest run that had each has measured. What its own plan knew of compilation holds
    where its trainers did not compile."""
    found = list(programs)
    for each in earlier:
        before = {program.name: program.compile for program in each.plan.programs}
        if not any(program.source != MEASURED and program.name in before for program in found):
            continue
        mapping = costs.named(each.plan.programs)
        trained = control.run(sql("plan.visits"), (mapping, each.run_id, costs.VISITS_READ))
        evaluated = control.run(sql("plan.evaluations"), (mapping, each.run_id))
        log = costs.Log.of(each.plan, trained, evaluated)
        found = [
            program
            if program.source == MEASURED
            else costs.measured(replace(program, compile=before.get(program.name) or program.compile), log)
            for program in found
        ]
    return found


def alternatives(settled: Settled, programs: Sequence[Program], chosen: Way, elsewhere: Elsewhere) -> Iterator[Way]:
    """The strategies that a run does not follow, each with what it would take."""
    size, widths = data_of(elsewhere.request, elsewhere.trainers), elsewhere.trainers.widths
    found = [Way(MOP, chosen.workers, chosen.threads)]
    if size.bytes <= size.room:
        found.append(Way(TASK, chosen.workers, chosen.threads))
    if widths and (cores := max(widths.values())) > 1 and (usual := max(widths)) > 1:
        found += [Way(WIDE, 1, cores), Way(TASK if size.bytes <= size.room else MOP, usual, widths[usual])]
    for each in dict.fromkeys(found):
        if (each.name, each.workers) != (chosen.name, chosen.workers):
            there = programs if each.threads == chosen.threads else at_width(programs, each.threads, elsewhere)
            yield plans.priced(settled._replace(compiled={}), there, each)


def at_width(programs: Sequence[Program], threads: int, elsewhere: Elsewhere) -> list[Program]:
    """The programs with trainers of another number of threads, by forms that were timed with both numbers."""
    found = []
    for program in programs:
        name, batch = elsewhere.names[program.configs[0]], program.batch_size
        speeds = elsewhere.known.speeds(elsewhere.trainers.machine(program.backend), name, batch)
        here, there = speeds.get(elsewhere.trainers.threads, {}), speeds.get(threads, {})
        both = here.keys() & there.keys()
        if both and program.row is not None:
            factor = min(there[form] for form in both) / min(here[form] for form in both)
            found.append(replace(program, row=program.row * factor, evaluated_row=program.evaluated_row * factor))
        else:
            found.append(replace(program, row=None))
    return found


def corrected(plan: RunPlan, earlier: Sequence[Earlier]) -> RunPlan:
    """The plan with what runs of the same work took beside what is known of their visits, and how far their times lie
    apart. Of two the lower: what is odd takes longer."""
    if plan.chosen.seconds is None:
        return plan
    alike = [each for each in earlier if each.plan.work == plan.work and each.plan.chosen.name == plan.chosen.name]
    rests = [rest(plan, each) for each in alike]
    if not rests:
        return plan
    plan = replace(plan, beside=median_low(rests))
    apart = [abs(each - plan.beside) / max(plan.seconds or 0.0, SHORTEST) for each in rests]
    known = [each.spread for each in plan.programs if each.spread is not None]
    return replace(plan, error=median(apart) if len(apart) > 2 else max([*known, *apart]))


def ready(plan: RunPlan) -> int:
    """How many programs of a run its workers have compiled before, each."""
    names = {each.name for each in plan.programs}
    return sum(len(names.intersection(found)) for found in plan.compiled.values())


def rest(plan: RunPlan, earlier: Earlier) -> float:
    """What an earlier run took beside its visits; where it was over sooner than these are expected to be, what part of
    them they took."""
    again, took = plan.chosen.seconds or 0.0, earlier.seconds - earlier.plan.begun
    if ready(earlier.plan) != ready(plan):
        found = plans.outcome(Settled(earlier.plan.work, {}, earlier.plan.compiled), plan.programs, earlier.plan.chosen)
        again = found.seconds if found else again
    if took >= again:
        return took - again
    return (plan.chosen.seconds or 0.0) * (took / again - 1)
