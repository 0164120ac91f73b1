"""The configurations of a run as rows of its log, with their origins."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.search_space.sampler_space import Point
from cerebro_plpy.platform import state_tables
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.run.request.state_routing import count_state_tables

Row = Sequence[object]
"""The parameters of a statement."""


class Origin(NamedTuple):
    """The origin of configurations that were added to a run."""

    source: str  # search, act or clone
    cloned_from: int | None = None  # mst_key
    warm_started_from: int | None = None  # mst_key of the configuration whose state they start from
    warm_started_visits: int | None = None  # visits that led to that state
    points: Mapping[int, Point | None] = {}  # points of a search space, by mst_key


def make_config_row(run_id: int, config: Config, request: FitRequest) -> Row:
    """Return the parameters of `run.config`."""
    tables = state_tables.state_tables(run_id, config.mst_key, count_state_tables(request))
    segments = None if config.group is None else list(request.segments_of(config.group))
    return (
        run_id,
        config.mst_key,
        tables,
        config.model_id,
        config.compile_text,
        config.fit_text,
        request.architectures[config.model_id].json,
        request.backends.get(config.mst_key),
        config.template,
        None if config.params is None else json.dumps(config.params),
        config.group,
        segments,
    )


def make_origin_row(run_id: int, origin: Origin, mst_keys: Sequence[int]) -> Row:
    """Return the parameters of `run.origin`."""
    *origins, points = origin
    return (*origins, json.dumps(points), run_id, list(mst_keys))


def make_first_origin_rows(run_id: int, request: FitRequest) -> list[Row]:
    """Return the parameters of `run.origin` for configurations that the call did not name."""
    replay = request.replay
    rows = []
    if request.sampling and request.sampling.points:
        points = request.sampling.points
        rows.append(make_origin_row(run_id, Origin("search", points=points), [*points]))
    keys_by_source: dict[str, list[int]] = {}
    for mst_key, source in replay.added_sources.items():
        if mst_key not in replay.clone_starts:
            keys_by_source.setdefault(source, []).append(mst_key)
    for source, mst_keys in keys_by_source.items():
        rows.append(make_origin_row(run_id, Origin(source), mst_keys))
    for mst_key, start in replay.clone_starts.items():
        # The visits of the parent are logged when the clone begins.
        origin = Origin(replay.added_sources[mst_key], start.parent, start.parent)
        rows.append(make_origin_row(run_id, origin, [mst_key]))
    return rows
