"""The request of a run that trains the members of a version again, on all rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from cerebro_plpy.configs.architecture.boosted_trees import is_boosted_trees
from cerebro_plpy.configs.params.fit_params import parse_fit_params
from cerebro_plpy.configs.run_spec import RunSpec
from cerebro_plpy.configs.train_spec import BaseVersion, Grouping, GroupLayout
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.sessions.spi import Row
from cerebro_plpy.operations.fit.input_tables import ModelInputs
from cerebro_plpy.operations.fit.spec_request import make_request
from cerebro_plpy.operations.live.logged_models import parse_config
from cerebro_plpy.operations.refit.all_rows import PackedRows
from cerebro_plpy.operations.refit.member_params import stretch_schedule
from cerebro_plpy.operations.train.model_lineage import make_warm_states
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.records import replace
from cerebro_plpy.run.request.run_request import Deadline, FitRequest, Replay
from cerebro_plpy.tables.architectures import StoredModel
from cerebro_plpy.tables.compatibility import name_metrics
from cerebro_plpy.tables.outputs.logged_run import LoggedRun
from cerebro_plpy.tables.template_configs import count_steps


class RefitPlan(NamedTuple):
    """The configurations of a run that are trained again."""

    run: LoggedRun
    configs: Mapping[int, Row]  # as the log contains them, by mst_key
    epochs: Mapping[int, int]  # those of the best state of each, by mst_key
    start: BaseVersion | None  # the states that networks of a refreshed version continue from
    folds: int = 0  # each configuration is trained without each of so many parts of the rows, too
    layouts: Mapping[str, GroupLayout] = {}  # the buffers of the folds

    def add_folds(self, layouts: Mapping[str, GroupLayout]) -> RefitPlan:
        """Return the plan with each configuration for each fold."""
        members = sorted(self.epochs)
        configs = dict(self.configs)
        epochs = dict(self.epochs)
        for fold, layout in layouts.items():
            for member, key in zip(members, layout.mst_keys):
                configs[key] = {**self.configs[member], "mst_key": key, "group_value": fold}
                epochs[key] = self.epochs[member]
        return self._replace(configs=configs, epochs=epochs, layouts=layouts)


def make_refit_request(
    catalog: Catalog,
    context: CallContext,
    plan: RefitPlan,
    training: PackedTable,
    rows: PackedRows,
    seconds: float,
) -> FitRequest:
    """Return the request of a run that trains each configuration for as many epochs as before.

    Args:
        training: the packed rows of the first run.
        rows: all rows.
        seconds: time in which the run must end.
    """
    spec = _make_spec(plan, rows)
    models = _make_models(context, plan, training, rows.data.source)
    replay = Replay(max_epochs=plan.epochs, completed_epochs=plan.epochs)
    request = make_request(catalog, context, spec, rows.data, models, replay)
    train_spec = spec.train
    assert train_spec is not None
    return replace(
        request,
        warm_states=make_warm_states(context.platform, train_spec),
        deadline=Deadline(last_visit=seconds, cancel=seconds, end=seconds),
    )


def _make_spec(plan: RefitPlan, rows: PackedRows) -> RunSpec:
    spec = plan.run.spec
    assert spec.train is not None
    train_spec = replace(
        spec.train,
        # The request of the first run lacks configurations that were added while it trained.
        templates={key: plan.configs[key]["template"] for key in plan.epochs},
        params={key: json.loads(plan.configs[key]["params"]) for key in plan.epochs},
        ensemble=1,
        configs=len(plan.epochs),
        start=plan.start,
        may_return=False,
        final_metric=None,
        refit_of=plan.run.run_id,
        grouping=_make_grouping(plan.layouts, rows.data.source),
    )
    tables = {name: table.quoted for name, table in rows.inputs.get_relations().items()}
    arguments = replace(
        spec.arguments,
        name=f"{spec.train.model} on all rows",
        source_table=tables["source"],
        validation_table=None,
        replay_run=None,
        search=None,
        search_params=None,
    )
    return replace(
        spec,
        arguments=arguments,
        epochs=max(plan.epochs.values()),
        evaluate_epochs=(),
        training_epochs=None,
        segments=rows.data.source.segments,
        source=rows.data.source.spec(),
        validation=None,
        tables=tables,
        prior_trials=(),
        train=train_spec,
    )


def _make_grouping(layouts: Mapping[str, GroupLayout], source: PackedTable) -> Grouping:
    """Return the folds as groups; the parts of a buffer are read as one for all rows."""
    if not layouts:
        return Grouping()
    return Grouping(None, layouts, source.buffer_size or None)


def _make_models(
    context: CallContext, plan: RefitPlan, training: PackedTable, source: PackedTable
) -> ModelInputs:
    """Return the configurations with schedules for the steps of all rows."""
    configs = []
    architectures = {}
    backends = {}
    for mst_key in plan.epochs:
        row = plan.configs[mst_key]
        model_id = row["model_id"]
        fit_params = parse_fit_params(row["fit_params"])
        compile_params = row["compile_params"]
        if not is_boosted_trees(row["architecture"]):
            compile_params = stretch_schedule(
                compile_params,
                count_steps(training, fit_params.batch_size),
                _count_steps(source, plan.layouts.get(row["group_value"]), fit_params.batch_size),
            )
        architectures[model_id] = StoredModel(model_id, row["architecture"], False)
        backends[mst_key] = row["backend"]
        configs.append(parse_config({**row, "compile_params": compile_params}, None))
    named_configs = name_metrics(configs, architectures, source, context.check)
    return ModelInputs(named_configs, architectures, None, backends)


def _count_steps(source: PackedTable, fold: GroupLayout | None, batch_size: int) -> int:
    """Return the steps of an epoch over all rows, or over those that are not in a fold."""
    if fold is None:
        return count_steps(source, batch_size)
    return fold.steps(batch_size)
