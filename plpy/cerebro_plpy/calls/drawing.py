"""Configurations that are drawn of a search space: those that a run begins with, and what it draws others of.

What can be wrong with any of them is checked before the run begins.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product
from random import Random
from typing import NamedTuple

from cerebro_plpy.calls.inputs import Models
from cerebro_plpy.configs.compile_params import parse_compile_params
from cerebro_plpy.configs.config import Config
from cerebro_plpy.configs.custom_functions import Functions
from cerebro_plpy.configs.draws import Choices, Draw
from cerebro_plpy.configs.fit_params import parse_fit_params
from cerebro_plpy.configs.grid import ConfigRow, draw_rows, made_row
from cerebro_plpy.configs.points import ParameterSpace, Point, config_row
from cerebro_plpy.configs.sampling import Sampling, read_space
from cerebro_plpy.configs.space import Space
from cerebro_plpy.database.caller import Database, Row
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.platform.workplace import Workplace
from cerebro_plpy.run.replay import Recorded, RunRecord
from cerebro_plpy.run.request import Drawing
from cerebro_plpy.run.sampler import Sampler
from cerebro_plpy.tables.architectures import StoredModel, read_architectures
from cerebro_plpy.tables.compatibility import check_configs
from cerebro_plpy.tables.selection import check_callbacks

DECIDING = ("optimizer", "loss", "metrics", "weighted_metrics")
"""Parameters of which each value may fit the data or not; all others are numbers."""
MOST_PROBES = 1000


class Wish(NamedTuple):
    """What is to be drawn: so many of a space, by a sampler that begins from a seed."""

    space: Space
    sampling: Sampling
    size: int
    seed: int


def wish_of(sampling: Sampling, models: Models, functions: Functions | None, seed: int) -> Wish:
    """What a search wants beside the configurations that there are."""
    space = read_space(sampling.space, {config.model_id for config in models.configs}, functions)
    return Wish(space, sampling, max(0, sampling.configs - len(models.configs)), seed)


def with_draws(
    catalog: Catalog, workplace: Workplace, models: Models, source: PackedTable, wish: Wish
) -> tuple[Models, tuple[Config, ...]]:
    """The models with those that are drawn before the run begins, and configurations that name all that may be named.

    All are drawn before by a sampler that does not learn, else as many as keep the segments busy.
    """
    table, space = models.table, wish.space
    assert table is not None
    architectures = _architectures(workplace, models, model_ids(space))
    numbered = enumerate(_probes(space), 1)
    probes = check_configs(
        [_config(number, row, space.functions) for number, row in numbered], architectures, source, table
    )
    check_callbacks(catalog.db, (probe.fit for probe in probes))
    points, rows = _first(workplace, models, wish, len(source.segments) + 1)
    if len(rows) < wish.size and not wish.sampling.learns:
        catalog.db.notice(f"{len(rows)} configurations are drawn, not {wish.size}: the space holds no others")
    first = 1 + max((config.mst_key for config in models.configs), default=0)
    drawn = [_config(key, row, space.functions) for key, row in enumerate(rows, first)]
    configs = check_configs([*models.configs, *drawn], architectures, source, table)
    left = wish.size - len(rows) if wish.sampling.learns else 0
    drawing = Drawing(
        ParameterSpace(space), wish.sampling.sampler, left, {each.mst_key: point for each, point in zip(drawn, points)}
    )
    return models._replace(configs=configs, architectures=architectures, drawing=drawing), probes


def with_rest(
    workplace: Workplace, models: Models, sampling: Sampling, log: Sequence[Row], functions: Functions | None
) -> Models:
    """The models of an interrupted run that has this log, with what it is still to draw."""
    called = {row["model_id"] for row in log if row["source"] == "call"}
    space = read_space(sampling.space, called, functions)
    architectures = _architectures(workplace, models, model_ids(space))
    return models._replace(architectures=architectures, drawing=_rest(sampling, log, space))


def _rest(sampling: Sampling, log: Sequence[Row], space: Space) -> Drawing:
    drawn = {row["mst_key"]: json.loads(row["point"] or "null") for row in log if row["source"] == "search"}
    called = sum(row["source"] in ("call", "search") for row in log)
    left = max(0, sampling.configs - called) if sampling.learns else 0
    return Drawing(ParameterSpace(space), sampling.sampler, left, drawn)


def model_ids(space: Space) -> list[int]:
    """The models that a space names."""
    return [model for model in space.models.values if isinstance(model, int)]


def _architectures(workplace: Workplace, models: Models, wanted: Iterable[int]) -> dict[int, StoredModel]:
    """Those of the models, and others that are wanted."""
    assert models.table is not None
    fresh = sorted(set(wanted) - models.architectures.keys())
    return {**models.architectures, **read_architectures(workplace.reader, models.table, fresh)}


def joining(db: Database, models: Models, recorded: RunRecord, epochs: int) -> Sequence[Recorded]:
    """Those that have joined the run that is repeated for so many epochs, where all are there that its call named."""
    keys = {config.mst_key for config in models.configs}
    if not recorded.called <= keys:
        return ()
    able = recorded.repeatable({*keys, *(each.mst_key for each in recorded.joined)}, epochs)
    left = sorted(each.mst_key for each in recorded.joined if each.mst_key not in able | keys)
    if left:
        db.notice(
            f"configurations {left} are not repeated: they began from states of others to which this call does not"
            " come, or of which the log does not tell"
        )
    return [each for each in recorded.joined if each.mst_key in able - keys]


def with_joined(
    workplace: Workplace,
    models: Models,
    joined: Sequence[Recorded],
    functions: Functions | None,
    source: PackedTable,
) -> Models:
    """The models with those that have joined."""
    table = models.table
    if table is None or not joined:
        return models
    architectures = _architectures(workplace, models, (each.model_id for each in joined))
    rows = ((each.mst_key, ConfigRow(each.model_id, each.compile_params, each.fit_params)) for each in joined)
    configs = [*models.configs, *(_config(key, row, functions) for key, row in rows)]
    checked = check_configs(configs, architectures, source, table)
    return models._replace(configs=checked, architectures=architectures)


def _first(
    workplace: Workplace, models: Models, wish: Wish, busy: int
) -> tuple[Sequence[Point | None], Sequence[ConfigRow]]:
    if not wish.sampling.learns:
        existing = [ConfigRow(each.model_id, each.compile_text, each.fit_text) for each in models.configs]
        rows = draw_rows(wish.space, wish.size, wish.seed, existing) if wish.size else ()
        return [None] * len(rows), rows
    count = min(wish.size, busy - len(models.configs))
    if count < 1:
        return (), ()
    with Sampler(
        workplace.settings, workplace.check, ParameterSpace(wish.space), wish.sampling.sampler, wish.seed
    ) as sampler:
        points = sampler.suggest([], count)
    return points, [config_row(wish.space, point) for point in points]


def _probes(space: Space) -> Iterator[ConfigRow]:
    """Configurations that together have each value that may fit the data or not, and of each other one any."""
    for alternative in space.alternatives:
        for model, *values in islice(product(model_ids(space), *map(_tried, alternative.items())), MOST_PROBES):
            fitted = {key: _any(each) for key, each in space.fit.items()}
            yield made_row(model, dict(zip(alternative, values)), fitted, space.functions)


def _tried(parameter: tuple[str, Draw]) -> Sequence[object]:
    key, found = parameter
    return found.values if key in DECIDING and isinstance(found, Choices) else [_any(found)]


def _any(found: Draw) -> object:
    return found.values[0] if isinstance(found, Choices) else found.draw(Random(0))


def _config(mst_key: int, row: ConfigRow, functions: Functions | None) -> Config:
    compiled, fitted = parse_compile_params(row.compile_params, functions), parse_fit_params(row.fit_params)
    return Config(mst_key, row.model_id, row.compile_params, row.fit_params, compiled, fitted)
