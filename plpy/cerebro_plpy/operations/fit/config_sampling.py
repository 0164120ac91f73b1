"""Configurations that are drawn of a search space: those that a run begins with, and what it draws
others of.

What can be wrong with any of them is checked before the run begins.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from random import Random
from typing import NamedTuple

from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.params.custom_functions import Functions
from cerebro_plpy.configs.params.fit_params import parse_fit_params
from cerebro_plpy.configs.run_spec import Ranking
from cerebro_plpy.configs.search_space.distributions import Choices, Distribution
from cerebro_plpy.configs.search_space.grid import ConfigRow, draw_rows, make_row
from cerebro_plpy.configs.search_space.sampler_space import (
    ParameterSpace,
    Point,
    PointSpace,
    describe_config,
    make_config_row,
)
from cerebro_plpy.configs.search_space.sampling import Sampling, read_space
from cerebro_plpy.configs.search_space.space import Space
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.limits import poll_between
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
from cerebro_plpy.run.loop.replay import Recorded, RunRecord
from cerebro_plpy.run.request.run_request import Drawing
from cerebro_plpy.run.workers.sampler import Sampler, beside, told
from cerebro_plpy.scheduling.search.promotion_rules import Trial
from cerebro_plpy.tables.architectures import StoredModel, read_architectures
from cerebro_plpy.tables.compatibility import check_configs
from cerebro_plpy.tables.model_selection_table import check_callbacks

DECIDING = ("optimizer", "loss", "metrics", "weighted_metrics")
"""Parameters of which each value may fit the data or not; all others are numbers."""
MOST_PROBES = 1000


class SamplingRequest(NamedTuple):
    """What is to be drawn: so many of a space, by a sampler that begins from a seed; `rank` says
    what will rank configurations."""

    space: Space
    sampling: Sampling
    size: int
    seed: int
    rank: Callable[[Sequence[Config]], Ranking]


def make_sampling_request(
    sampling: Sampling,
    models: ModelInputs,
    functions: Functions | None,
    seed: int,
    rank: Callable[[Sequence[Config]], Ranking],
) -> SamplingRequest:
    """What a search wants beside the configurations that there are."""
    space = read_space(sampling.space, {config.model_id for config in models.configs}, functions)
    return SamplingRequest(
        space, sampling, max(0, sampling.configs - len(models.configs)), seed, rank
    )


def sample_configs(
    catalog: Catalog,
    workplace: CallContext,
    models: ModelInputs,
    source: PackedTable,
    wish: SamplingRequest,
) -> tuple[ModelInputs, tuple[Config, ...]]:
    """The models with those that are drawn before the run begins, and configurations that name all
    that may be named.

    All are drawn before by a sampler that does not learn, else as many as keep the segments busy.
    The best of earlier runs come first.
    """
    wish = wish._replace(space=replace(wish.space, poll=workplace.check))
    table, space, learns = models.table, wish.space, wish.sampling.learns
    assert table is not None
    runs = require_prior_runs(catalog.module, workplace.control, wish.sampling.start_from)
    architectures = _architectures(workplace, models, model_ids(space))
    numbered = enumerate(_probes(space), 1)
    probes = check_configs(
        [_config(number, row, space.functions) for number, row in numbered],
        architectures,
        source,
        table,
        workplace.check,
    )
    check_callbacks(catalog.db, (probe.fit for probe in probes))
    points = ParameterSpace(space)
    known = {each.mst_key: points.find_point(describe_config(each)) for each in models.configs}
    ranking = wish.rank([*models.configs, *probes])
    earlier = (
        collect_prior_trials(catalog, runs, points, ranking, models=architectures) if learns else ()
    )
    again = _again(catalog, runs, (points, architectures), known.values())[: wish.size]
    drawing = Drawing(points, wish.sampling.sampler, 0, {}, known, earlier)
    found: list[Point | None] = [*again]
    if learns:
        found += _first(workplace, wish, drawing, again, len(source.segments) + 1)
    rows = [make_config_row(space, point) for point in found if point is not None]
    if not learns:
        rows += _random(catalog, models, wish, rows)
    first = 1 + max((config.mst_key for config in models.configs), default=0)
    keyed = poll_between(enumerate(rows, first), workplace.check)
    drawn = [_config(key, row, space.functions) for key, row in keyed]
    configs = check_configs(
        [*models.configs, *drawn], architectures, source, table, workplace.check
    )
    at = dict(zip((each.mst_key for each in drawn), [*found, *(None for _ in rows)]))
    drawing = drawing._replace(left=wish.size - len(rows) if learns else 0, points=at)
    return models._replace(configs=configs, architectures=architectures, drawing=drawing), probes


def restore_sampling(
    workplace: CallContext,
    models: ModelInputs,
    sampling: Sampling,
    log: Sequence[Row],
    functions: Functions | None,
) -> ModelInputs:
    """The models of an interrupted run that has this log, with what it is still to draw."""
    called = {row["model_id"] for row in log if row["source"] == "call"}
    space = read_space(sampling.space, called, functions)
    architectures = _architectures(workplace, models, model_ids(space))
    return models._replace(architectures=architectures, drawing=_rest(sampling, log, space))


def _rest(sampling: Sampling, log: Sequence[Row], space: Space) -> Drawing:
    drawn = {
        row["mst_key"]: json.loads(row["point"] or "null")
        for row in log
        if row["source"] == "search"
    }
    called = sum(row["source"] in ("call", "search") for row in log)
    left = max(0, sampling.configs - called) if sampling.learns else 0
    points = ParameterSpace(space)
    known = {row["mst_key"]: points.find_point(row) for row in log if has_point(row)}
    return Drawing(points, sampling.sampler, left, drawn, known)


def model_ids(space: Space) -> list[int]:
    """The models that a space names."""
    return [model for model in space.models.values if isinstance(model, int)]


def _architectures(
    workplace: CallContext, models: ModelInputs, wanted: Iterable[int]
) -> dict[int, StoredModel]:
    """Those of the models, and others that are wanted."""
    assert models.table is not None
    fresh = sorted(set(wanted) - models.architectures.keys())
    return {**models.architectures, **read_architectures(workplace.reader, models.table, fresh)}


def choose_added_configs(
    db: Database, models: ModelInputs, recorded: RunRecord, epochs: int
) -> Sequence[Recorded]:
    """Those that have joined the run that is repeated for so many epochs, where all are there that
    its call named.
    """
    keys = {config.mst_key for config in models.configs}
    if not recorded.called <= keys:
        return ()
    able = recorded.repeatable({*keys, *(each.mst_key for each in recorded.joined)}, epochs)
    left = sorted(each.mst_key for each in recorded.joined if each.mst_key not in able | keys)
    if left:
        db.notice(
            f"configurations {left} are not repeated: they began from states of others to which "
            "this call does not come, or of which the log does not tell"
        )
    return [each for each in recorded.joined if each.mst_key in able - keys]


def add_configs(
    workplace: CallContext,
    models: ModelInputs,
    joined: Sequence[Recorded],
    functions: Functions | None,
    source: PackedTable,
) -> ModelInputs:
    """The models with those that have joined."""
    table = models.table
    if table is None or not joined:
        return models
    architectures = _architectures(workplace, models, (each.model_id for each in joined))
    rows = (
        (each.mst_key, ConfigRow(each.model_id, each.compile_params, each.fit_params))
        for each in joined
    )
    configs = [*models.configs, *(_config(key, row, functions) for key, row in rows)]
    checked = check_configs(configs, architectures, source, table, workplace.check)
    return models._replace(configs=checked, architectures=architectures)


def _again(
    catalog: Catalog,
    runs: Sequence[PriorRun],
    space: tuple[PointSpace, Mapping[int, StoredModel]],
    known: Iterable[Point | None],
) -> list[Point]:
    """Where the best of these runs lie in the space, beside those that are known."""
    seen, found = [*known], list[Point]()
    for run in runs:
        best = run.best(*space)
        if not best:
            catalog.db.notice(
                f"no configuration of run {run.run_id} lies in the space: none of it is tried again"
            )
        found += [point for point in best if point not in seen and point not in found]
    return found


def _first(
    workplace: CallContext,
    wish: SamplingRequest,
    drawing: Drawing,
    again: Sequence[Point],
    busy: int,
) -> Sequence[Point]:
    """Points that a sampler suggests before anything is trained, so many that all are busy."""
    count = min(wish.size, busy - len(drawing.known)) - len(again)
    if count < 1:
        return ()
    tried = [
        told(point, Trial(), 1) for point in (*drawing.known.values(), *again) if point is not None
    ]
    with Sampler(
        workplace.settings, workplace.check, drawing.space, drawing.sampler, wish.seed
    ) as sampler:
        return sampler.suggest(beside(drawing.earlier, tried), count)


def _random(
    catalog: Catalog, models: ModelInputs, wish: SamplingRequest, again: Sequence[ConfigRow]
) -> Sequence[ConfigRow]:
    """As many as are wanted beside those that are tried again."""
    existing = [
        ConfigRow(each.model_id, each.compile_text, each.fit_text) for each in models.configs
    ]
    size = wish.size - len(again)
    drawn = draw_rows(wish.space, size, wish.seed, [*existing, *again]) if size else ()
    if len(drawn) < size:
        catalog.db.notice(
            f"{len(drawn)} configurations are drawn, not {size}: the space holds no others"
        )
    return drawn


def _probes(space: Space) -> Iterator[ConfigRow]:
    """Configurations that together have each value that may fit the data or not, and of each other
    one any.
    """
    for alternative in space.alternatives:
        for model, *values in islice(
            product(model_ids(space), *map(_tried, alternative.items())), MOST_PROBES
        ):
            fitted = {key: _any(each) for key, each in space.fit.items()}
            yield make_row(model, dict(zip(alternative, values)), fitted, space.functions)


def _tried(parameter: tuple[str, Distribution]) -> Sequence[object]:
    key, found = parameter
    return found.values if key in DECIDING and isinstance(found, Choices) else [_any(found)]


def _any(found: Distribution) -> object:
    return found.values[0] if isinstance(found, Choices) else found.draw(Random(0))


def _config(mst_key: int, row: ConfigRow, functions: Functions | None) -> Config:
    compiled, fitted = (
        parse_compile_params(row.compile_params, functions),
        parse_fit_params(row.fit_params),
    )
    return Config(mst_key, row.model_id, row.compile_params, row.fit_params, compiled, fitted)
