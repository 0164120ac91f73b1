"""The plan of a run before its rows are packed and its networks are made: by what earlier runs over
the table have measured of the same templates, and else by what the size of networks lets one
expect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cerebro_plpy.configs.run_spec import list_metric_epochs
from cerebro_plpy.configs.templates.budget import (
    FLOPS,
    FLOPS_PER_WEIGHT,
    START_SECONDS,
    VISIT_SECONDS,
    Effort,
    Workload,
    choose_frequency,
)
from cerebro_plpy.configs.templates.candidates import Proposal
from cerebro_plpy.configs.templates.layers import encoders
from cerebro_plpy.configs.templates.networks.linear import LINEAR
from cerebro_plpy.configs.templates.template import Template
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.operations.train.train_request import TrainRequest
from cerebro_plpy.preprocessing.learning.raw_table import SETTINGS, RawTable
from cerebro_plpy.preprocessing.recipe.recipe import FLOAT_BYTES
from cerebro_plpy.records import replace
from cerebro_plpy.run.log.program_costs import EVALUATION_SHARE
from cerebro_plpy.run.planning.template_costs import (
    TemplateBatch,
    TemplateCosts,
    TrainingTask,
    read_template_costs,
)
from cerebro_plpy.scheduling.planning import run_plan
from cerebro_plpy.scheduling.planning.run_plan import (
    GUESSED,
    MOP,
    TASK,
    WIDE,
    Data,
    PlanInputs,
    Program,
    RunPlan,
    Strategy,
    Work,
)
from cerebro_plpy.scheduling.schedule.scheduling_policies import FOREMOST
from cerebro_plpy.trainer_client import settings
from cerebro_plpy.trainer_client.process import host_resources

STATE_BYTES = 12  # of a weight: itself, and two numbers of the optimizer


def estimate_plan(
    db: Database,
    aim: TrainRequest,
    table: RawTable,
    planned: tuple[Workload, Effort],
    tried: Sequence[Proposal],
) -> RunPlan:
    """The plan of a call of train; those that are first all see the rows of all groups."""
    load, effort = planned
    keys = dict(enumerate(tried, 1))
    work = Work(
        epochs=effort.epochs,
        evaluate_epochs=list_metric_epochs(effort.epochs, choose_frequency(effort.epochs)),
        segments=tuple(range(load.segments)),
        rows=dict.fromkeys(keys, -(-load.training_rows // load.segments)),
        evaluated_rows=load.validation_rows / load.segments,
        schedule=FOREMOST,
        may_end_early=True,
    )
    row = (table.recipe.table.elements + table.target.head.units) * FLOAT_BYTES
    rows = load.training_rows + load.validation_rows
    room = settings.cache_bytes(settings.read(db), load.workers)
    data = Data(load.training_rows, rows, rows * row, room, ())
    stays = data.bytes <= room and bool(db.platform.trainer_threads(1))
    workers = min(load.workers, len(keys)) if stays else load.workers
    way = (
        MOP if not stays else WIDE if workers == 1 < host_resources.threads_per_trainer(1) else TASK
    )
    usual = Strategy(way, workers, host_resources.threads_per_trainer(workers))
    kinds = {get_kind(each) for each in tried}
    goal = TrainingTask(aim.source.quoted, table.target.column.name)
    known = read_template_costs(LocalSession(db, **SETTINGS), goal, usual.threads, kinds)
    programs = tuple(_programs(aim, table, load, keys, known))
    chosen = run_plan.estimate_strategy(PlanInputs(work), programs, usual)
    return RunPlan(
        work,
        programs,
        chosen,
        (),
        data,
        startup_seconds=known.startup_seconds,
        extra_seconds=known.extra_seconds,
    )


def get_kind(proposal: Proposal) -> TemplateBatch:
    """What a configuration is planned with."""
    return TemplateBatch(proposal.template.name, int(proposal.params.get("batch_size") or 0))


def count_weights(template: Template, load: Workload, table: RawTable) -> int:
    """About how many weights the networks of a template have."""
    inputs, units = table.recipe.table, table.target.head.units
    if template is LINEAR:
        columns = inputs.columns + sum(inputs.cardinalities)
        return units * columns + sum(
            encoders.count_linear_weights(wide, units) for wide in inputs.wide
        )
    return load.weights + sum(
        encoders.estimate_weights(wide) - encoders.estimate_work(wide) for wide in inputs.wide
    )


def _programs(
    aim: TrainRequest,
    table: RawTable,
    load: Workload,
    keys: Mapping[int, Proposal],
    known: TemplateCosts,
) -> Iterator[Program]:
    """One for each kind of configurations. Its compilation is that of the networks which a worker
    has of it.
    """
    groups: dict[TemplateBatch, list[int]] = {}
    templates = {each.template.name: each.template for each in keys.values()}
    for key, each in keys.items():
        groups.setdefault(get_kind(each), []).append(key)
    hop = VISIT_SECONDS / load.share / 2
    for kind, configs in groups.items():
        name = f"{kind.template}/{kind.batch_size}"
        networks = max(1.0, len(configs) * known.networks.get(kind, 1.0) / load.workers)
        like = known.programs.get(kind)
        if like is not None and aim.arguments.backend in (None, like.backend):
            yield replace(like, name=name, configs=tuple(configs), compile=like.compile * networks)
            continue
        count = count_weights(templates[kind.template], load, table)
        row = min(load.weights, count) * FLOPS_PER_WEIGHT / FLOPS / load.share
        yield Program(
            name=name,
            configs=tuple(configs),
            backend=aim.arguments.backend or "fastest",
            batch_size=kind.batch_size,
            source=GUESSED,
            row_seconds=row,
            evaluation_row_seconds=row * EVALUATION_SHARE,
            compile=START_SECONDS * networks / load.share,
            hop=hop,
            store=hop,
            state_bytes=count * STATE_BYTES,
        )
