"""Costs of templates, as earlier runs of `cerebro.train` over the same table measured them.

They are used for networks that were never compiled, from other networks of the same template.
"""

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
    """The table and the target that runs have in common."""

    relation: str  # quoted name
    target: str


class TemplateBatch(NamedTuple):
    """The template and the batch size of configurations whose costs are averaged."""

    template: str
    batch_size: int


class TemplateCosts(NamedTuple):
    """Costs that earlier runs measured."""

    programs: Mapping[TemplateBatch, Program]  # one for all configurations, with mean costs
    networks: Mapping[TemplateBatch, float] = {}  # number of networks per configuration, at most 1
    startup_seconds: float = 0.0  # of the newest run, until its trainers had started
    extra_seconds: float = 0.0  # of the newest run, in addition to its visits


def read_template_costs(
    session: Session, task: TrainingTask, threads: int, required: Collection[TemplateBatch]
) -> TemplateCosts:
    """Return costs from the newest runs of the caller that had each template and batch size.

    Older runs are not read if newer ones have measured everything that is required.

    Args:
        threads: threads of each trainer of these runs.
    """
    costs: TemplateCosts | None = None
    for run_id, text, seconds, templates in session.run(sql("plan.trained"), (*task, threads)):
        try:
            plan = RunPlan.from_json(json.loads(text))
            names = {int(key): str(name) for key, name in json.loads(templates or "{}").items()}
        except MALFORMED:
            continue
        log = program_costs.read_costs(session, run_id, plan)
        programs = [program_costs.apply_costs(program, log) for program in plan.programs]
        groups = _group_measured(programs, names)
        means = {key: _average(group) for key, group in groups.items()}
        networks = {key: len(group) / len(means[key].configs) for key, group in groups.items()}
        if costs is None:
            extra_seconds = _compute_extra_seconds(plan, programs, seconds)
            costs = TemplateCosts(means, networks, plan.startup_seconds, extra_seconds)
        else:
            costs = costs._replace(
                programs={**means, **costs.programs}, networks={**networks, **costs.networks}
            )
        if costs.programs.keys() >= set(required):
            break
    return costs or TemplateCosts({})


def _group_measured(
    programs: Sequence[Program], templates: Mapping[int, str]
) -> dict[TemplateBatch, list[Program]]:
    groups: dict[TemplateBatch, list[Program]] = {}
    for program in programs:
        template = templates.get(program.configs[0])
        if program.source == MEASURED and template:
            groups.setdefault(TemplateBatch(template, program.batch_size), []).append(program)
    return groups


def _compute_extra_seconds(plan: RunPlan, programs: Sequence[Program], seconds: float) -> float:
    """Return what a run took in addition to its visits; 0 if it ended before its last visit."""
    inputs = PlanInputs(plan.work, {}, plan.compiled)
    outcome = run_plan.estimate_outcome(inputs, programs, plan.strategy)
    if outcome is None:
        return 0.0
    return max(0.0, seconds - plan.startup_seconds - outcome.seconds)


def _average(programs: Sequence[Program]) -> Program:
    """Return a program for all configurations of these programs, with their mean costs."""
    configs = tuple(mst_key for program in programs for mst_key in program.configs)

    def average(field: str) -> float:
        total = sum((getattr(program, field) or 0.0) * len(program.configs) for program in programs)
        return total / len(configs)

    forms = {program.form for program in programs}
    return replace(
        programs[0],
        configs=configs,
        source=SAME_TEMPLATE,
        row_seconds=average("row_seconds"),
        evaluation_row_seconds=average("evaluation_row_seconds"),
        compile=average("compile"),
        hop=average("hop"),
        store=average("store"),
        form=programs[0].form if len(forms) == 1 else None,
        state_bytes=max(program.state_bytes or 0 for program in programs),
        spread=None,
        lanes=None,
        lane_gain=None,
    )


def read_request_costs(
    session: Session, request: FitRequest, programs: Sequence[Program], threads: int
) -> TemplateCosts:
    """Return costs of templates for a request of `cerebro.train`; none for other requests."""
    train = request.spec.train
    if train is None:
        return TemplateCosts({})
    required = {_make_key(train, program) for program in programs if program.row_seconds is None}
    task = TrainingTask(train.relation, train.target)
    return read_template_costs(session, task, threads, required)


def apply_template_costs(
    request: FitRequest, programs: Sequence[Program], costs: TemplateCosts
) -> list[Program]:
    """Return the programs, those without timings with the costs of their template."""
    train = request.spec.train
    if train is None:
        return list(programs)
    updated = []
    for program in programs:
        mean = costs.programs.get(_make_key(train, program))
        if program.row_seconds is None and mean and mean.backend == program.backend:
            program = replace(mean, name=program.name, configs=program.configs)
        updated.append(program)
    return updated


def _make_key(train: TrainSpec, program: Program) -> TemplateBatch:
    return TemplateBatch(train.templates.get(program.configs[0], ""), program.batch_size)
