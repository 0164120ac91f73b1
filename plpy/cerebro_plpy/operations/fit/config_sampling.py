"""The sampling of configurations from a search space, before a run and while it goes on.

Every value that a sampled configuration may have is checked before the run begins.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from random import Random

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.params.custom_functions import Functions
from cerebro_plpy.configs.run_spec import Ranking
from cerebro_plpy.configs.search_space.distributions import Choices, Distribution
from cerebro_plpy.configs.search_space.grid import ConfigRow, make_row
from cerebro_plpy.configs.search_space.sampler_space import (
    ParameterSpace,
    Point,
    PointSpace,
    describe_config,
)
from cerebro_plpy.configs.search_space.sampling import Sampling, read_space
from cerebro_plpy.configs.search_space.space import Space
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.limits import poll_between
from cerebro_plpy.operations.fit.first_draws import (
    FirstDraws,
    SamplingRequest,
    list_model_ids,
    parse_configs,
)
from cerebro_plpy.operations.fit.input_tables import ModelInputs
from cerebro_plpy.operations.fit.prior_runs import (
    PriorRun,
    collect_prior_trials,
    has_point,
    require_prior_runs,
)
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.records import replace
from cerebro_plpy.run.request.replay import RecordedConfig, RunRecord
from cerebro_plpy.run.request.run_request import SamplingPlan
from cerebro_plpy.tables.architectures import StoredModel, read_architectures
from cerebro_plpy.tables.compatibility import check_configs
from cerebro_plpy.tables.model_selection_table import check_callbacks

CHECKED_PARAMETERS = ("optimizer", "loss", "metrics", "weighted_metrics")
"""Parameters each of whose values may or may not fit the data; all others are numbers."""
MAX_PROBES = 1000


def make_sampling_request(
    sampling: Sampling,
    models: ModelInputs,
    functions: Functions | None,
    seed: int,
    rank: Callable[[Sequence[Config]], Ranking],
) -> SamplingRequest:
    """Return the request for the configurations that a search needs in addition to `models`."""
    space = read_space(sampling.space, {config.model_id for config in models.configs}, functions)
    size = max(0, sampling.configs - len(models.configs))
    return SamplingRequest(space, sampling, size, seed, rank)


def sample_configs(
    catalog: Catalog,
    context: CallContext,
    models: ModelInputs,
    source: PackedTable,
    request: SamplingRequest,
) -> tuple[ModelInputs, tuple[Config, ...]]:
    """Sample the configurations that the run begins with.

    A sampler that does not learn samples all of them; one that learns, as many as keep the segments
    busy. The best configurations of earlier runs come first.

    Returns:
        The models with the sampled configurations, and probes: configurations that together have
        every value that has to be checked.
    """
    space = replace(request.space, poll=context.check)
    request = request._replace(space=space)
    sampling = request.sampling
    table = models.table
    assert table is not None
    prior_runs = require_prior_runs(catalog.module, context.control, sampling.start_from)
    architectures = _read_architectures(context, models, list_model_ids(space))

    def check(configs: Sequence[Config]) -> tuple[Config, ...]:
        return check_configs(configs, architectures, source, table, context.check)

    probes = check(parse_configs(enumerate(_list_probes(space), 1), space.functions))
    check_callbacks(catalog.db, (probe.fit for probe in probes))
    points = ParameterSpace(space)
    known_points = {
        config.mst_key: points.find_point(describe_config(config)) for config in models.configs
    }
    sampling_plan = SamplingPlan(points, sampling.sampler, 0, {}, known_points)
    if sampling.learns:
        ranking = request.rank([*models.configs, *probes])
        prior_trials = collect_prior_trials(
            catalog, prior_runs, points, ranking, models=architectures
        )
        sampling_plan = sampling_plan._replace(prior_trials=prior_trials)
    prior_points = _find_prior_points(catalog, prior_runs, points, architectures, known_points)
    prior_points = prior_points[: request.size]
    draws = FirstDraws(
        catalog, context, models, sampling_plan, prior_points, len(source.segments) + 1
    )
    first_points, rows = draws.draw_trainable(architectures, request)
    remaining = request.size - len(first_points) if sampling.learns else 0
    first_key = 1 + max((config.mst_key for config in models.configs), default=0)
    keyed_rows = poll_between(enumerate(rows, first_key), context.check)
    sampled = parse_configs(keyed_rows, space.functions)
    keys = [config.mst_key for config in sampled]
    point_of: dict[int, Point | None] = {**dict.fromkeys(keys), **dict(zip(keys, first_points))}
    models = models._replace(
        configs=check([*models.configs, *sampled]),
        architectures=architectures,
        sampling=sampling_plan._replace(remaining=remaining, points=point_of),
    )
    return models, probes


def restore_sampling(
    context: CallContext,
    models: ModelInputs,
    sampling: Sampling,
    log: Sequence[Row],
    functions: Functions | None,
) -> ModelInputs:
    """Return the models of an interrupted run with the sampling that remains to be done.

    Args:
        log: the logged configurations of the run.
    """
    called_models = {row["model_id"] for row in log if row["source"] == "call"}
    space = read_space(sampling.space, called_models, functions)
    points = ParameterSpace(space)
    remaining = 0
    if sampling.learns:
        sources = [row["source"] for row in log]
        requested = sources.count("call") + sources.count("search")
        remaining = max(0, sampling.configs - requested)
    sampling_plan = SamplingPlan(
        points,
        sampling.sampler,
        remaining,
        points={
            row["mst_key"]: json.loads(row["point"] or "null")
            for row in log
            if row["source"] == "search"
        },
        existing_points={row["mst_key"]: points.find_point(row) for row in log if has_point(row)},
    )
    architectures = _read_architectures(context, models, list_model_ids(space))
    return models._replace(architectures=architectures, sampling=sampling_plan)


def _read_architectures(
    context: CallContext, models: ModelInputs, model_ids: Iterable[int]
) -> dict[int, StoredModel]:
    """Return the architectures of the models and of further model ids."""
    assert models.table is not None
    missing = sorted(set(model_ids) - models.architectures.keys())
    return {**models.architectures, **read_architectures(context.reader, models.table, missing)}


def choose_added_configs(
    db: Database, models: ModelInputs, recorded: RunRecord, epochs: int
) -> Sequence[RecordedConfig]:
    """Return the configurations that were added to a run while it was live, for its replay.

    They are only repeated if the replay has all configurations that the original call named.
    """
    keys = {config.mst_key for config in models.configs}
    if not recorded.call_keys <= keys:
        return ()
    added_keys = {config.mst_key for config in recorded.added_configs}
    repeatable = recorded.find_repeatable(keys | added_keys, epochs)
    skipped = sorted(added_keys - repeatable - keys)
    if skipped:
        db.notice(
            f"configurations {skipped} are not repeated: they began from states of others to which "
            "this call does not come, or of which the log does not tell"
        )
    return [config for config in recorded.added_configs if config.mst_key in repeatable - keys]


def add_configs(
    context: CallContext,
    models: ModelInputs,
    added_configs: Sequence[RecordedConfig],
    functions: Functions | None,
    source: PackedTable,
) -> ModelInputs:
    """Return the models with configurations that were added to the original run."""
    table = models.table
    if table is None or not added_configs:
        return models
    architectures = _read_architectures(
        context, models, (config.model_id for config in added_configs)
    )
    rows = [
        (config.mst_key, ConfigRow(config.model_id, config.compile_params, config.fit_params))
        for config in added_configs
    ]
    configs = [*models.configs, *parse_configs(rows, functions)]
    checked = check_configs(configs, architectures, source, table, context.check)
    return models._replace(configs=checked, architectures=architectures)


def _find_prior_points(
    catalog: Catalog,
    runs: Sequence[PriorRun],
    space: PointSpace,
    models: Mapping[int, StoredModel],
    known_points: Mapping[int, Point | None],
) -> list[Point]:
    """Return the points of the best configurations of earlier runs, except known points."""
    excluded = list(known_points.values())
    points: list[Point] = []
    for run in runs:
        best = run.find_best_points(space, models)
        if not best:
            catalog.db.notice(
                f"no configuration of run {run.run_id} lies in the space: none of it is tried again"
            )
        points += [point for point in best if point not in excluded and point not in points]
    return points


def _list_probes(space: Space) -> Iterator[ConfigRow]:
    """Yield configurations that together have every value that has to be checked."""
    fit_values = {name: _pick_value(values) for name, values in space.fit.items()}
    model_ids = list_model_ids(space)
    for alternative in space.alternatives:
        choices = [_list_probe_values(*parameter) for parameter in alternative.items()]
        for model_id, *values in islice(product(model_ids, *choices), MAX_PROBES):
            yield make_row(model_id, dict(zip(alternative, values)), fit_values, space.functions)


def _list_probe_values(name: str, distribution: Distribution) -> Sequence[object]:
    if name in CHECKED_PARAMETERS and isinstance(distribution, Choices):
        return distribution.values
    return [_pick_value(distribution)]


def _pick_value(distribution: Distribution) -> object:
    if isinstance(distribution, Choices):
        return distribution.values[0]
    return distribution.draw(Random(0))
