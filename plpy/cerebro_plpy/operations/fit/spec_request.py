"""The request of a run from its spec, for every operation that trains."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from cerebro_plpy.configs.params.early_stopping import EarlyStopping
from cerebro_plpy.configs.run_spec import RunSpec
from cerebro_plpy.configs.search_space.search_arguments import read_search_rule
from cerebro_plpy.configs.search_space.search_rules import (
    RuleContext,
    SearchRule,
    make_grouped_rule,
)
from cerebro_plpy.configs.train_spec import GroupLayout
from cerebro_plpy.database.call_checks import read_seconds
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.operations.fit.cost_limits import make_run_limits
from cerebro_plpy.operations.fit.fit_arguments import AUTO
from cerebro_plpy.operations.fit.input_tables import ModelInputs, PackedData
from cerebro_plpy.operations.fit.worker_count import choose_worker_count
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.records import replace
from cerebro_plpy.run.planning import parallelism
from cerebro_plpy.run.request.replay import RunRecord, complete_orders
from cerebro_plpy.run.request.run_request import FitRequest, Replay, SearchRequest
from cerebro_plpy.scheduling.search.promotion_rules import ReplayedEpochs, Rule
from cerebro_plpy.trainer_client import settings

UNGROUPED: Mapping[str, GroupLayout] = {}


def make_request(
    catalog: Catalog,
    context: CallContext,
    spec: RunSpec,
    data: PackedData,
    models: ModelInputs,
    replay: Replay,
) -> FitRequest:
    """Return the request of a spec with its data and models."""
    arguments = spec.arguments
    module = catalog.module
    request = FitRequest(
        spec=spec,
        source=data.source,
        validation=data.validation,
        configs=models.configs,
        architectures=models.architectures,
        architecture_table=models.table,
        workers=choose_worker_count(context, spec, data, models.config_count),
        gpus=settings.choose_gpus(context.settings, arguments.use_gpus),
        backends=models.backends,
        max_runtime=read_seconds(catalog.db, module, "max_runtime", arguments.max_runtime),
        replay=replay,
        commit_seconds=context.settings.commit_seconds,
        search=make_search(module, spec, models, replay),
        patience=replay.patience or _make_early_stopping(module, spec),
        strategy=arguments.strategy if arguments.strategy != AUTO else None,
        cost_limits=make_run_limits(module, context.settings, spec, read_rule(module, spec)),
    )
    if spec.train:
        groups = spec.train.grouping.layouts
        request = replace(request, groups=groups, block_rows=spec.train.grouping.block_rows)
    return replace(request, workers=parallelism.choose_worker_count(context, request))


def make_rule(
    rule: SearchRule | None,
    mst_keys: Mapping[int, str | None],
    context: RuleContext,
    replay: Replay,
    groups: Mapping[str, GroupLayout] = UNGROUPED,
) -> Rule | None:
    """Return the rule that promotes configurations; in a replay, it repeats recorded decisions.

    Args:
        mst_keys: group by mst_key; None for a configuration over all rows.
    """
    if replay.max_epochs:
        return ReplayedEpochs(replay.max_epochs)
    if rule is None:
        return None
    return make_grouped_rule(rule, mst_keys, context, groups)


def make_search(
    module: str,
    spec: RunSpec,
    models: ModelInputs,
    replay: Replay,
    failed: Sequence[tuple[int, str | None]] = (),
) -> SearchRequest | None:
    """Return the search of a run; None if all configurations are trained to the end.

    Args:
        failed: mst_key and group of configurations that have failed.
    """
    search_rule = read_rule(module, spec)
    configs = [(config.mst_key, config.group) for config in models.configs]
    keys = dict(sorted([*failed, *configs]))
    context = RuleContext(
        spec.epochs, spec.evaluate_epochs, spec.ranking.descending, len(spec.segments), spec.seed
    )
    groups = spec.train.grouping.layouts if spec.train else UNGROUPED
    rule = make_rule(search_rule, keys, context, replay, groups)
    if rule is None:
        return None
    return SearchRequest(
        spec.arguments.search or "replay",
        rule,
        tuple(keys),
        models.sampling,
        search_rule.live_states if search_rule else None,
        {key: group for key, group in keys.items() if group is not None},
    )


def _make_early_stopping(module: str, spec: RunSpec) -> EarlyStopping | None:
    """Return the early stopping of a search by patience."""
    rule = read_rule(module, spec)
    if rule is None:
        return None
    return rule.make_early_stopping(spec.ranking)


def read_rule(module: str, spec: RunSpec) -> SearchRule | None:
    """Return the search rule in the spec of a run."""
    arguments = spec.arguments
    return read_search_rule(
        module,
        arguments.search,
        arguments.search_params,
        spec.epochs,
        templates=spec.train is not None,
    )


def make_replay(
    catalog: Catalog,
    recorded: RunRecord,
    epochs: int,
    source: PackedTable,
    mst_keys: Collection[int],
) -> Replay:
    """Return what a run of these configurations takes over from the run that it repeats."""
    orders = complete_orders(catalog.module, recorded, epochs, source.segments, mst_keys)
    return Replay(
        orders=orders,
        forms=recorded.forms,
        threads=recorded.threads,
        endings=recorded.endings,
        max_epochs=recorded.max_epochs,
        added_sources={
            config.mst_key: config.source
            for config in recorded.added_configs
            if config.mst_key in mst_keys
        },
        clone_starts={
            key: start for key, start in recorded.clone_starts.items() if key in mst_keys
        },
        patience=recorded.patience,
        evaluate_epochs=recorded.evaluate_epochs,
        completed_epochs=recorded.completed_epochs,
        cut_layers={key: layer for key, layer in recorded.cut_layers.items() if key in mst_keys},
        copies=recorded.copies,
    )
