"""What templates cost, as earlier runs of `cerebro.train` over the same table have measured: for
networks that nobody has compiled yet, but others of the same template."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.records import replace
from cerebro_plpy.run.log import program_costs
from cerebro_plpy.run.planning.workload import MALFORMED
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.scheduling.planning import run_plan
from cerebro_plpy.scheduling.planning.run_plan import (
    MEASURED,
    SAME_TEMPLATE,
    PlanInputs,
    Program,
    RunPlan,
)


class TrainingTask(NamedTuple):
    """What runs have in common: the quoted name of their table, and their target."""

    relation: str
    target: str


class TemplateBatch(NamedTuple):
    """What configurations have in common that a plan takes together: their template, and the rows
    of a batch.
    """

    template: str
    batch_size: int


class TemplateCosts(NamedTuple):
    """What earlier runs have measured: of each kind a program that has all configurations, and how
    many `networks` each of them is, at most one. The newest has taken so many seconds until its
    trainers were there (`begun`), and so many `beside` its visits."""

    programs: Mapping[TemplateBatch, Program]
    networks: Mapping[TemplateBatch, float] = {}
    startup_seconds: float = 0.0
    extra_seconds: float = 0.0


def read_template_costs(
    session: Session, goal: TrainingTask, threads: int, wanted: Collection[TemplateBatch]
) -> TemplateCosts:
    """What the newest run of the caller that had each kind has measured of it, with trainers of so
    many threads. What the first of these runs tell of all that is `wanted`, older ones are not
    asked."""
    known: TemplateCosts | None = None
    for run_id, text, seconds, templates in session.run(sql("plan.trained"), (*goal, threads)):
        try:
            plan = RunPlan.from_json(json.loads(text))
            named = {int(key): str(name) for key, name in json.loads(templates or "{}").items()}
        except MALFORMED:
            continue
        log = program_costs.read_costs(session, run_id, plan)
        programs = [program_costs.apply_costs(each, log) for each in plan.programs]
        kinds: dict[TemplateBatch, list[Program]] = {}
        for program in programs:
            template = named.get(program.configs[0])
            if program.source == MEASURED and template:
                kinds.setdefault(TemplateBatch(template, program.batch_size), []).append(program)
        found = {kind: _usual(each) for kind, each in kinds.items()}
        networks = {kind: len(each) / len(found[kind].configs) for kind, each in kinds.items()}
        if known is not None:
            known = known._replace(
                programs={**found, **known.programs}, networks={**networks, **known.networks}
            )
        else:
            known = TemplateCosts(
                found, networks, plan.startup_seconds, _beside(plan, programs, seconds)
            )
        if known.programs.keys() >= set(wanted):
            break
    return known or TemplateCosts({})


def _beside(plan: RunPlan, programs: Sequence[Program], seconds: float) -> float:
    """What a run took beside its visits. One that was over before it had made all of them tells
    nothing of that.
    """
    again = run_plan.estimate_outcome(
        PlanInputs(plan.work, {}, plan.compiled), programs, plan.strategy
    )
    return max(0.0, seconds - plan.startup_seconds - again.seconds) if again else 0.0


def _usual(programs: Sequence[Program]) -> Program:
    """What each configuration of these programs is expected to take: as they did in the mean."""
    configs = tuple(key for each in programs for key in each.configs)

    def mean(name: str) -> float:
        return sum((getattr(each, name) or 0.0) * len(each.configs) for each in programs) / len(
            configs
        )

    forms = {each.form for each in programs}
    return replace(
        programs[0],
        configs=configs,
        source=SAME_TEMPLATE,
        row_seconds=mean("row_seconds"),
        evaluation_row_seconds=mean("evaluation_row_seconds"),
        compile=mean("compile"),
        hop=mean("hop"),
        store=mean("store"),
        form=programs[0].form if len(forms) == 1 else None,
        state_bytes=max(each.state_bytes or 0 for each in programs),
        spread=None,
        lanes=None,
        lane_gain=None,
    )


def read_request_costs(
    session: Session, request: FitRequest, programs: Sequence[Program], threads: int
) -> TemplateCosts:
    """What runs before one of `cerebro.train` tell of it, whose programs are these; nothing of
    another one.
    """
    train = request.spec.train
    if train is None:
        return TemplateCosts({})
    wanted = {_kind(train, program) for program in programs if program.row_seconds is None}
    return read_template_costs(session, TrainingTask(train.relation, train.target), threads, wanted)


def apply_template_costs(
    request: FitRequest, programs: Sequence[Program], known: TemplateCosts
) -> list[Program]:
    """The programs of a run, where those that nobody has timed cost what others of their templates
    did.
    """
    train = request.spec.train

    def expected(program: Program) -> Program:
        like = known.programs.get(_kind(train, program)) if train else None
        if program.row_seconds is not None or like is None or like.backend != program.backend:
            return program
        return replace(like, name=program.name, configs=program.configs)

    return [expected(program) for program in programs]


def _kind(train: TrainSpec, program: Program) -> TemplateBatch:
    return TemplateBatch(train.templates.get(program.configs[0], ""), program.batch_size)
