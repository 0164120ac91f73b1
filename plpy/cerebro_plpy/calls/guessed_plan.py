"""The plan of a run before its rows are packed and its networks are made: by what their size lets one expect."""

from __future__ import annotations

from collections.abc import Sequence

from cerebro_plpy.calls.aim import Aim
from cerebro_plpy.configs.spec import metrics_iterations
from cerebro_plpy.configs.templates.effort import (
    BEGIN_SECONDS,
    FLOPS,
    FLOPS_A_WEIGHT,
    VISIT_SECONDS,
    Effort,
    Workload,
    frequency,
)
from cerebro_plpy.configs.templates.proposals import Proposal
from cerebro_plpy.database.caller import Database
from cerebro_plpy.features.recipe import FLOAT_BYTES
from cerebro_plpy.features.table import RawTable
from cerebro_plpy.hopping import plans
from cerebro_plpy.hopping.plans import GUESSED, MOP, TASK, Data, Program, RunPlan, Settled, Strategy, Work
from cerebro_plpy.hopping.policies import FOREMOST
from cerebro_plpy.run.costs import EVALUATION_SHARE
from cerebro_plpy.trainer import machine, settings

STATE_BYTES = 12  # of a weight: itself, and two numbers of the optimizer


def guessed(
    db: Database, aim: Aim, table: RawTable, planned: tuple[Workload, Effort], tried: Sequence[Proposal]
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
    programs = _programs(aim, load, keys)
    chosen = plans.priced(Settled(work), programs, usual)
    return RunPlan(work, programs, chosen, (), data)


def _programs(aim: Aim, load: Workload, keys: dict[int, Proposal]) -> tuple[Program, ...]:
    """One for each template and size of batches."""
    groups: dict[tuple[str, int], list[int]] = {}
    for key, each in keys.items():
        groups.setdefault((each.template.name, int(each.params.get("batch_size") or 0)), []).append(key)
    row = load.weights * FLOPS_A_WEIGHT / FLOPS / load.share
    hop = VISIT_SECONDS / load.share / 2
    return tuple(
        Program(
            name=f"{template}/{batch}",
            configs=tuple(configs),
            backend=aim.arguments.backend or "fastest",
            batch_size=batch,
            source=GUESSED,
            row=row,
            evaluated_row=row * EVALUATION_SHARE,
            compile=BEGIN_SECONDS / load.share,
            hop=hop,
            store=hop,
            state_bytes=load.weights * STATE_BYTES,
        )
        for (template, batch), configs in groups.items()
    )
