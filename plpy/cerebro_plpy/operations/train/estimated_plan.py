"""Estimate of a run's plan before its rows are packed and its networks are built.

Earlier runs over the table may have measured the same templates; otherwise, the sizes of the
networks decide.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.configs.params.fit_params import FitParams
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
from cerebro_plpy.configs.templates.trees import boosting
from cerebro_plpy.configs.templates.trees.boosting import TreesTemplate
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.operations.train.run_results import select_unusual
from cerebro_plpy.operations.train.train_request import TrainRequest
from cerebro_plpy.preprocessing.learning.raw_table import SETTINGS, RawTable
from cerebro_plpy.preprocessing.recipe.recipe import FLOAT_BYTES
from cerebro_plpy.records import replace
from cerebro_plpy.run.log.program_costs import EVALUATION_SHARE
from cerebro_plpy.run.planning import explain_output, explain_tree
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
from cerebro_plpy.scheduling.quota.cost_limits import Prices
from cerebro_plpy.scheduling.schedule.scheduling_policies import FOREMOST
from cerebro_plpy.trainer_client import settings
from cerebro_plpy.trainer_client.process import host_resources

VALUES_WIDTH = 55
"""The most characters of the values of a configuration in a plan, which has all of them in data."""
STATE_BYTES = 12
"""Bytes of a state for each weight: the weight, and two numbers of the optimizer."""


class PlannedTraining(NamedTuple):
    """The training that a call of train would request."""

    request: TrainRequest
    table: RawTable
    load: Workload
    effort: Effort
    proposals: Sequence[Proposal]  # including those of groups

    @property
    def rows(self) -> int:
        """The number of rows, those held back included."""
        return self.table.rows + self.table.validation_rows

    @property
    def row_bytes(self) -> int:
        """The bytes of a packed row."""
        return (self.table.recipe.table.elements + self.table.target.head.units) * FLOAT_BYTES

    def estimate_state_bytes(self, proposal: Proposal) -> int:
        """Return about how large a state of a configuration is."""
        if isinstance(proposal.template, TreesTemplate):
            return boosting.estimate_state_bytes(self.table.target.head, proposal.params)
        return self.count_weights(proposal.template) * STATE_BYTES

    def estimate_row_seconds(self, proposal: Proposal) -> float:
        """Return about how long a core trains a row in an epoch."""
        if isinstance(proposal.template, TreesTemplate):
            rows = self.load.training_rows
            inputs = self.table.recipe.table
            head = self.table.target.head
            seconds = boosting.estimate_seconds(inputs, head, proposal.params, rows)
            return seconds / (rows * self.effort.epochs)
        weights = min(self.load.weights, self.count_weights(proposal.template))
        return weights * FLOPS_PER_WEIGHT / FLOPS

    def count_weights(self, template: Template) -> int:
        """Return about how many weights the networks of a template have."""
        inputs = self.table.recipe.table
        units = self.table.target.head.units
        if template is LINEAR:
            columns = inputs.columns + sum(inputs.cardinalities)
            return units * columns + sum(
                encoders.count_linear_weights(wide, units) for wide in inputs.wide
            )
        return self.load.weights + sum(
            encoders.estimate_weights(wide) - encoders.estimate_work(wide) for wide in inputs.wide
        )


def estimate_plan(db: Database, planned: PlannedTraining) -> RunPlan:
    """Estimate the plan of a run, as if each configuration trained on the rows of all groups."""
    load = planned.load
    effort = planned.effort
    proposals = dict(enumerate(planned.proposals, 1))
    work = Work(
        epochs=effort.epochs,
        evaluate_epochs=list_metric_epochs(effort.epochs, choose_frequency(effort.epochs)),
        segments=tuple(range(load.segments)),
        rows=dict.fromkeys(proposals, -(-load.training_rows // load.segments)),
        evaluated_rows=load.validation_rows / load.segments,
        schedule=FOREMOST,
        may_end_early=True,
    )
    rows = load.training_rows + load.validation_rows
    data = Data(
        training_rows=load.training_rows,
        rows=rows,
        bytes=rows * planned.row_bytes,
        capacity_bytes=settings.cache_bytes(settings.read(db), load.workers),
    )
    usual = _choose_strategy(db, load, data, len(proposals))
    costs = read_template_costs(
        LocalSession(db, **SETTINGS),
        TrainingTask(planned.request.source.quoted, planned.table.target.column.name),
        usual.threads,
        {_get_batch(proposal) for proposal in planned.proposals},
    )
    programs = tuple(_estimate_programs(planned, proposals, costs))
    return RunPlan(
        work=work,
        programs=programs,
        strategy=run_plan.estimate_strategy(PlanInputs(work), programs, usual),
        alternatives=(),
        data=data,
        startup_seconds=costs.startup_seconds,
        extra_seconds=costs.extra_seconds,
    )


def describe_values(proposal: Proposal, table: RawTable) -> str:
    """Return the template of a configuration, and the first of its values that are not usual."""
    template = proposal.template
    usual = template.params(table.target.head, table.rows, {})
    unusual = select_unusual(proposal.params, usual)
    return shorten_values(template.name, [f"{name} {value}" for name, value in unusual.items()])


def shorten_values(template: str, values: Sequence[str]) -> str:
    """Return a template with as many of its values as fit, and the number of the others.

    >>> shorten_values("linear", [])
    'linear: usual values'
    >>> shorten_values("realmlp", ["lr 0.04", "width 128"])
    'realmlp: lr 0.04, width 128'
    >>> shorten_values("realmlp", ["lr 0.04", *["weight_decay 0.02"] * 4])
    'realmlp: lr 0.04, weight_decay 0.02, and 3 more'
    """
    text = f"{template}: {', '.join(values) or 'usual values'}"
    count = len(values)
    while len(text) > VALUES_WIDTH and count > 1:
        count -= 1
        text = f"{template}: {', '.join(values[:count])}, and {len(values) - count} more"
    return text


def format_internals(plan: RunPlan, prices: Prices | None) -> Mapping[str, Any]:
    """Return a plan as the JSON that `cerebro.plan_fit` makes of it."""
    tree = explain_tree.build_tree(plan, explain_tree.PlanContext(prices=prices))
    (text,) = explain_output.format_tree(tree, explain_output.JSON)
    internals: Mapping[str, Any] = json.loads(text)[0]
    return internals


def _choose_strategy(db: Database, load: Workload, data: Data, configs: int) -> Strategy:
    """Return the usual strategy: configurations hop unless all rows fit in each trainer."""
    name = MOP
    workers = load.workers
    if data.bytes <= data.capacity_bytes and db.platform.trainer_threads(1):
        name = TASK
        workers = min(workers, configs)
        if workers == 1 < host_resources.threads_per_trainer(1):
            name = WIDE
    return Strategy(name, workers, host_resources.threads_per_trainer(workers))


def _get_batch(proposal: Proposal) -> TemplateBatch:
    batch_size = proposal.params.get("batch_size") or FitParams().batch_size
    return TemplateBatch(proposal.template.name, int(batch_size))


def _estimate_programs(
    planned: PlannedTraining, proposals: Mapping[int, Proposal], costs: TemplateCosts
) -> Iterator[Program]:
    """Yield one program for each template and batch size.

    Its compilation is that of all networks that a worker has of it.
    """
    load = planned.load
    backend = planned.request.arguments.backend
    keys: dict[TemplateBatch, list[int]] = {}
    for key, proposal in proposals.items():
        keys.setdefault(_get_batch(proposal), []).append(key)
    hop = VISIT_SECONDS / load.share / 2
    for batch, configs in keys.items():
        name = f"{batch.template}/{batch.batch_size}"
        networks = max(1.0, len(configs) * costs.networks.get(batch, 1.0) / load.workers)
        measured = costs.programs.get(batch)
        if measured is not None and backend in (None, measured.backend):
            yield replace(
                measured, name=name, configs=tuple(configs), compile=measured.compile * networks
            )
            continue
        proposal = proposals[configs[0]]
        row_seconds = planned.estimate_row_seconds(proposal) / load.share
        start_seconds = 0.0 if isinstance(proposal.template, TreesTemplate) else START_SECONDS
        yield Program(
            name=name,
            configs=tuple(configs),
            backend=backend or "fastest",
            batch_size=batch.batch_size,
            source=GUESSED,
            row_seconds=row_seconds,
            evaluation_row_seconds=row_seconds * EVALUATION_SHARE,
            compile=start_seconds * networks / load.share,
            hop=hop,
            store=hop,
            state_bytes=planned.estimate_state_bytes(proposal),
        )
