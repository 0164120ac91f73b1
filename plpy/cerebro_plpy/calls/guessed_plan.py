"""The plan of a run before its rows are packed and its networks are made: by what earlier runs over the table have
measured of the same templates, and else by what the size of networks lets one expect."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.calls.aim import Aim
from cerebro_plpy.configs.spec import metrics_iterations
from cerebro_plpy.configs.templates import encoders
from cerebro_plpy.configs.templates.effort import (
    BEGIN_SECONDS,
    FLOPS,
    FLOPS_A_WEIGHT,
    VISIT_SECONDS,
    Effort,
    Workload,
    frequency,
)
from cerebro_plpy.configs.templates.linear import LINEAR
from cerebro_plpy.configs.templates.proposals import Proposal
from cerebro_plpy.configs.templates.template import Template
from cerebro_plpy.database.caller import Database
from cerebro_plpy.database.dispatch import Session
from cerebro_plpy.database.queries import sql
from cerebro_plpy.features.recipe import FLOAT_BYTES
from cerebro_plpy.features.table import RawTable
from cerebro_plpy.hopping import plans
from cerebro_plpy.hopping.plans import (
    GUESSED,
    LIKE,
    MEASURED,
    MOP,
    TASK,
    Data,
    Program,
    RunPlan,
    Settled,
    Strategy,
    Work,
)
from cerebro_plpy.hopping.policies import FOREMOST
from cerebro_plpy.records import replace
from cerebro_plpy.run import costs
from cerebro_plpy.run.costs import EVALUATION_SHARE
from cerebro_plpy.run.estimates import MALFORMED
from cerebro_plpy.trainer import machine, settings

STATE_BYTES = 12  # of a weight: itself, and two numbers of the optimizer


class Kind(NamedTuple):
    """What configurations have in common that a plan takes together: their template, and the rows of a batch."""

    template: str
    batch_size: int


class Measured(NamedTuple):
    """What earlier runs have measured: a program of each kind. The newest has taken so many seconds until its trainers
    were there (`begun`), and so many `beside` its visits."""

    programs: Mapping[Kind, Program]
    begun: float = 0.0
    beside: float = 0.0


def guessed(
    db: Database,
    session: Session,
    aim: Aim,
    table: RawTable,
    planned: tuple[Workload, Effort],
    tried: Sequence[Proposal],
) -> RunPlan:
    """The plan of a call of train; those that are first all see the rows of all groups."""
    load, effort = planned
    keys = dict(enumerate(tried, 1))
    work = Work(
        epochs=effort.epochs,
        evaluate_epochs=metrics_iterations(effort.epochs, frequency(effort.epochs)),
        segments=tuple(range(load.segments)),
        rows=dict.fromkeys(keys, -(-load.training_rows // load.segments)),
        evaluated_rows=load.validation_rows / load.segments,
        schedule=FOREMOST,
        sooner=True,
    )
    row = (table.recipe.table.elements + table.target.head.units) * FLOAT_BYTES
    rows = load.training_rows + load.validation_rows
    room = settings.cache_bytes(settings.read(db), load.workers)
    data = Data(load.training_rows, rows, rows * row, room, ())
    stays = data.bytes <= room and bool(db.platform.widths(1))
    usual = Strategy(TASK if stays else MOP, load.workers, machine.width(load.workers))
    known = _measured(session, aim, table, usual.threads)
    programs = tuple(_programs(aim, table, load, keys, known.programs))
    chosen = plans.priced(Settled(work), programs, usual)
    return RunPlan(work, programs, chosen, (), data, begun=known.begun, beside=known.beside)


def weights(template: Template, load: Workload, table: RawTable) -> int:
    """About how many weights the networks of a template have."""
    inputs, units = table.recipe.table, table.target.head.units
    if template is LINEAR:
        columns = inputs.columns + sum(inputs.cardinalities)
        return units * columns + sum(encoders.weights_of_line(each, units) for each in inputs.wide)
    return load.weights + sum(encoders.weights(each) - encoders.work(each) for each in inputs.wide)


def _programs(
    aim: Aim, table: RawTable, load: Workload, keys: Mapping[int, Proposal], known: Mapping[Kind, Program]
) -> Iterator[Program]:
    """One for each kind of configurations."""
    groups: dict[Kind, list[int]] = {}
    templates = {each.template.name: each.template for each in keys.values()}
    for key, each in keys.items():
        groups.setdefault(Kind(each.template.name, int(each.params.get("batch_size") or 0)), []).append(key)
    hop = VISIT_SECONDS / load.share / 2
    for kind, configs in groups.items():
        name = f"{kind.template}/{kind.batch_size}"
        if kind in known:
            yield replace(known[kind], name=name, configs=tuple(configs))
            continue
        count = weights(templates[kind.template], load, table)
        row = min(load.weights, count) * FLOPS_A_WEIGHT / FLOPS / load.share
        yield Program(
            name=name,
            configs=tuple(configs),
            backend=aim.arguments.backend or "fastest",
            batch_size=kind.batch_size,
            source=GUESSED,
            row=row,
            evaluated_row=row * EVALUATION_SHARE,
            compile=BEGIN_SECONDS / load.share,
            hop=hop,
            store=hop,
            state_bytes=count * STATE_BYTES,
        )


def _measured(session: Session, aim: Aim, table: RawTable, threads: int) -> Measured:
    """What the newest run of the caller that had each kind has measured of it."""
    measured = Measured({})
    runs = session.run(sql("plan.trained"), (aim.source.quoted, table.target.column.name, threads))
    for run_id, text, seconds, templates in reversed(runs):
        try:
            plan = RunPlan.from_json(json.loads(text))
            named = {int(key): str(name) for key, name in json.loads(templates or "{}").items()}
        except MALFORMED:
            continue
        log = costs.logged(session, run_id, plan)
        programs = [costs.measured(each, log) for each in plan.programs]
        kinds: dict[Kind, list[Program]] = {}
        for program in programs:
            wanted = program.source == MEASURED and aim.arguments.backend in (None, program.backend)
            template = named.get(program.configs[0])
            if wanted and template:
                kinds.setdefault(Kind(template, program.batch_size), []).append(program)
        found = {**measured.programs, **{kind: _usual(each) for kind, each in kinds.items()}}
        again = plans.outcome(Settled(plan.work, {}, plan.compiled), programs, plan.chosen)
        # One that was over before all of its visits were made tells nothing of what comes beside them.
        beside = max(0.0, seconds - plan.begun - again.seconds) if again else 0.0
        measured = Measured(found, plan.begun, beside)
    return measured


def _usual(programs: Sequence[Program]) -> Program:
    """What each configuration of these programs is expected to take: as they did in the mean."""
    count = sum(len(each.configs) for each in programs)

    def mean(name: str) -> float:
        return sum((getattr(each, name) or 0.0) * len(each.configs) for each in programs) / count

    forms = {each.form for each in programs}
    return replace(
        programs[0],
        source=LIKE,
        row=mean("row"),
        evaluated_row=mean("evaluated_row"),
        compile=mean("compile"),
        hop=mean("hop"),
        store=mean("store"),
        form=programs[0].form if len(forms) == 1 else None,
        state_bytes=max(each.state_bytes or 0 for each in programs),
        spread=None,
        lanes=None,
        gained=None,
    )
