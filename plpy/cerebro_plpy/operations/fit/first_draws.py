"""The configurations that a run with a sampler begins with, drawn until one can be trained."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.configs.architecture.architecture import read_architecture
from cerebro_plpy.configs.architecture.model_shapes import has_trainable_layers
from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.params.custom_functions import Functions
from cerebro_plpy.configs.params.fit_params import parse_fit_params
from cerebro_plpy.configs.run_spec import Ranking
from cerebro_plpy.configs.search_space.grid import ConfigRow, draw_rows
from cerebro_plpy.configs.search_space.sampler_space import (
    Point,
    describe_config,
    make_config_row,
)
from cerebro_plpy.configs.search_space.sampling import Sampling
from cerebro_plpy.configs.search_space.space import Space
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.operations.fit.input_tables import ModelInputs
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.run.request.run_request import SamplingPlan
from cerebro_plpy.run.workers.sampler import Sampler, add_prior_trials, describe_trial
from cerebro_plpy.scheduling.search.promotion_rules import Trial
from cerebro_plpy.tables.architectures import StoredModel

MAX_DRAWS = 20
"""How often configurations are drawn until one of them can be trained."""
SEED_STEP = 1 << 32
"""The difference of the seeds of two draws, which no two calls have in common."""


class SamplingRequest(NamedTuple):
    """A request to sample configurations."""

    space: Space
    sampling: Sampling
    size: int  # number of configurations to sample
    seed: int
    rank: Callable[[Sequence[Config]], Ranking]  # returns what will rank configurations


class FirstDraw(NamedTuple):
    """The configurations that a run begins with."""

    points: Sequence[Point]  # of the first rows
    rows: Sequence[ConfigRow]


class FirstDraws(NamedTuple):
    """Draws the configurations that a run begins with."""

    catalog: Catalog
    context: CallContext
    models: ModelInputs  # those that the call names
    sampling_plan: SamplingPlan
    prior_points: Sequence[Point]  # the best of earlier runs, which come first
    busy: int  # number of configurations that keep all segments busy

    def draw_trainable(
        self, architectures: Mapping[int, StoredModel], request: SamplingRequest
    ) -> FirstDraw:
        """Draw configurations; draw again if none of them has a layer that can be trained.

        Raises:
            InvalidParameter: no model has such a layer, or none that has one is drawn.
        """
        frozen = {
            model_id
            for model_id, model in architectures.items()
            if not has_trainable_layers(_read_model(model))
        }
        model_ids = ", ".join(map(str, sorted(frozen)))
        existing = {config.model_id for config in self.models.configs}
        attempts = MAX_DRAWS
        if frozen >= existing.union(list_model_ids(request.space)):
            attempts = 0
        for attempt in range(attempts):
            next_request = request._replace(seed=request.seed + attempt * SEED_STEP)
            first_draw = self.draw(next_request, attempt)
            draw_ids = existing.union(row.model_id for row in first_draw.rows)
            if not first_draw.rows or not frozen >= draw_ids:
                return first_draw
            self.catalog.db.notice(
                f"none of {count_nouns(len(first_draw.rows), 'drawn configuration')} has a model "
                f"with trainable layers ({model_ids}): cerebro_db draws again"
            )
        raise InvalidParameter(
            f"{self.catalog.module} error: no configuration that was drawn has a layer that can be "
            f"trained: models {model_ids} have none.",
            hint="Name a model that has a layer with trainable = true, or ask for more "
            "configurations.",
        )

    def draw(self, request: SamplingRequest, attempt: int) -> FirstDraw:
        """Draw configurations; a sampler that learns suggests those of the first attempt."""
        space = request.space
        prior_rows = [make_config_row(space, point) for point in self.prior_points]
        if not request.sampling.learns:
            drawn_rows = _draw_configs(self.catalog, self.models, request, prior_rows)
            return FirstDraw(self.prior_points, [*prior_rows, *drawn_rows])
        if attempt:
            points = self._draw_points(request)
        else:
            points = _suggest_first_points(
                self.context, request, self.sampling_plan, self.prior_points, self.busy
            )
        rows = [make_config_row(space, point) for point in points]
        return FirstDraw([*self.prior_points, *points], [*prior_rows, *rows])

    def _draw_points(self, request: SamplingRequest) -> Sequence[Point]:
        """Draw points at random, in the place of suggestions."""
        count = min(request.size, self.busy)
        rows = enumerate(draw_rows(request.space, count, request.seed))
        configs = parse_configs(rows, request.space.functions)
        points = (
            self.sampling_plan.space.find_point(describe_config(config)) for config in configs
        )
        return [point for point in points if point is not None]


def _read_model(model: StoredModel) -> dict[str, Any]:
    architecture = read_architecture(model.json)
    assert isinstance(architecture, dict)  # it was checked when it was loaded
    return architecture


def list_model_ids(space: Space) -> list[int]:
    """Return the ids of the models that a space names."""
    return [model_id for model_id in space.models.values if isinstance(model_id, int)]


def _suggest_first_points(
    context: CallContext,
    request: SamplingRequest,
    sampling_plan: SamplingPlan,
    prior_points: Sequence[Point],
    busy: int,
) -> Sequence[Point]:
    """Have a sampler that learns suggest points before anything is trained.

    Args:
        prior_points: points from earlier runs that will be trained as well.
        busy: number of configurations that keep all segments busy.
    """
    count = min(request.size, busy - len(sampling_plan.existing_points)) - len(prior_points)
    if count < 1:
        return ()
    points = (*sampling_plan.existing_points.values(), *prior_points)
    trials = [describe_trial(point, Trial(), 1) for point in points if point is not None]
    with Sampler(
        context.settings, context.check, sampling_plan.space, sampling_plan.sampler, request.seed
    ) as sampler:
        return sampler.suggest(add_prior_trials(sampling_plan.prior_trials, trials), count)


def _draw_configs(
    catalog: Catalog,
    models: ModelInputs,
    request: SamplingRequest,
    prior_rows: Sequence[ConfigRow],
) -> Sequence[ConfigRow]:
    """Draw the configurations that the request has in addition to those of earlier runs."""
    size = request.size - len(prior_rows)
    if not size:
        return ()
    existing = [
        ConfigRow(config.model_id, config.compile_text, config.fit_text)
        for config in models.configs
    ]
    rows = draw_rows(request.space, size, request.seed, [*existing, *prior_rows])
    if len(rows) < size:
        catalog.db.notice(
            f"{count_nouns(len(rows), 'configuration', 'is')} drawn, not {size}: the space holds "
            "no others"
        )
    return rows


def parse_configs(
    rows: Iterable[tuple[int, ConfigRow]], functions: Functions | None
) -> list[Config]:
    """Parse the parameters of configurations, given by mst_key."""
    configs = []
    for mst_key, row in rows:
        compiled = parse_compile_params(row.compile_params, functions)
        fitted = parse_fit_params(row.fit_params)
        configs.append(
            Config(mst_key, row.model_id, row.compile_params, row.fit_params, compiled, fitted)
        )
    return configs
