"""The conditions under which boosted trees can be trained, checked before work starts.

Trees grow over all rows at once, so a trainer must be able to hold them, or a sample of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from cerebro_plpy.configs.search_space.search_rules import PBT, SearchRule
from cerebro_plpy.configs.templates.registry import TEMPLATES
from cerebro_plpy.configs.templates.template import Template
from cerebro_plpy.configs.templates.trees.boosting import TreesTemplate
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import (
    CerebroError,
    FeatureNotSupported,
    ObjectNotReady,
    OutOfMemory,
    quote_text,
)
from cerebro_plpy.packing.buffer_sizes import choose_buffer_rows
from cerebro_plpy.preprocessing.learning.raw_table import RawTable
from cerebro_plpy.preprocessing.recipe.recipe import FLOAT_BYTES
from cerebro_plpy.run.request.visit_jobs import SHARE_BESIDE_SAMPLE
from cerebro_plpy.tables.models.model_versions import Version
from cerebro_plpy.trainer_client import settings
from cerebro_plpy.trainer_client.process.installed_modules import has_module
from cerebro_plpy.trainer_client.settings import TrainerOptions

LIBRARY = "lightgbm"
REQUIREMENT = "lightgbm>=4.5"
MIN_SAMPLE_ROWS = 10_000
"""Fewer rows are not worth it: other templates learn from all rows."""
MORE_MEMORY = "An administrator raises cache_mb in cerebro.setting; or use fewer workers."
WITHOUT_TREES = "Leave boosting out of models."


class Obstacle(NamedTuple):
    """A reason why trees cannot be trained: others leave them out, a call that names them fails."""

    error: type[CerebroError]
    reason: str
    remedy: str = ""

    def to_error(self, module: str, alternative: str = WITHOUT_TREES) -> CerebroError:
        """Return the error of a call that needs trees.

        Args:
            alternative: advice for a caller who does without trees.
        """
        hint = f"{self.remedy} {alternative}".strip()
        return self.error(f"{module} error: {self.reason}.", hint=hint)


class TreeSupport(NamedTuple):
    """The answer whether trees can be trained by the trainers of a call."""

    obstacle: Obstacle | None = None  # why not, whatever the table is
    cache_bytes: int = 0  # memory of a trainer for rows
    may_sample: bool = True  # trees may learn from a part of the rows

    def find_obstacle(self, table: RawTable) -> Obstacle | None:
        """Return why trees cannot learn from a table; None if they can."""
        if self.obstacle is not None:
            return self.obstacle
        period = self.choose_period(table)
        if period == 1 or (self.may_sample and table.rows // period >= MIN_SAMPLE_ROWS):
            return None
        return Obstacle(
            OutOfMemory, f"boosted trees learn from {self._describe_size(table)}", MORE_MEMORY
        )

    def choose_period(self, table: RawTable) -> int:
        """Return the period of the buffers from which trees learn: 1 if a trainer holds all rows.

        Otherwise the sample leaves room for other rows, see `SHARE_BESIDE_SAMPLE`.
        """
        if _count_bytes(table) <= self.cache_bytes:
            return 1
        row_bytes = _count_row_bytes(table)
        buffer_rows = choose_buffer_rows(table.recipe.room + table.target.head.units)
        sample_bytes = self.cache_bytes * (1 - SHARE_BESIDE_SAMPLE) - buffer_rows * row_bytes
        if sample_bytes <= 0:
            return max(2, table.rows)
        return max(2, math.ceil(table.rows * row_bytes / sample_bytes))

    def describe_sample(self, table: RawTable) -> str | None:
        """Return the message that trees learn from a sample; None if they learn from all rows."""
        period = self.choose_period(table)
        if period == 1:
            return None
        return (
            f"template boosting learns from 1/{period} of the rows, because boosted trees learn "
            f"from {self._describe_size(table)}. {MORE_MEMORY}"
        )

    def _describe_size(self, table: RawTable) -> str:
        return (
            f"all rows at once, which take {_count_bytes(table) / 1e6:.0f} MB; a trainer has "
            f"{self.cache_bytes / 1e6:.0f} MB for rows"
        )


def _count_row_bytes(table: RawTable) -> int:
    return (table.recipe.table.elements + table.target.head.units) * FLOAT_BYTES


def _count_bytes(table: RawTable) -> int:
    return (table.rows + table.validation_rows) * _count_row_bytes(table)


NO_TREES = TreeSupport()
"""For a call that tries no trees."""


def has_trees(templates: Sequence[Template]) -> bool:
    """Return whether any of the templates is one of trees."""
    return any(isinstance(template, TreesTemplate) for template in templates)


def read_tree_support(
    db: Database, templates: Sequence[Template], rule: SearchRule | None, workers: int | None
) -> TreeSupport:
    """Return whether the trainers of a call can train trees.

    Args:
        templates: those that the call may try.
        rule: its search.
        workers: the number of workers that it requests.
    """
    if not has_trees(templates):
        return NO_TREES
    call_settings = settings.read(db)
    obstacle = _find_obstacle(db, call_settings, rule)
    if obstacle is not None:
        return TreeSupport(obstacle)
    segments = db.platform.choose_distribution(db, "train", None, None).keys
    count = min(workers or db.platform.default_workers(len(segments)), len(segments))
    trainers = len(db.platform.assign_segments(segments, count))
    trainers_of_machine = math.ceil(trainers / db.platform.count_machines(db))
    return TreeSupport(None, settings.cache_bytes(call_settings, trainers_of_machine))


def _find_obstacle(
    db: Database, call_settings: settings.Settings, rule: SearchRule | None
) -> Obstacle | None:
    if rule is not None and rule.name == PBT:
        return Obstacle(
            FeatureNotSupported,
            f"search is {PBT!r}, which changes fields of a model in training; boosted trees keep "
            "theirs",
            "Take another search, such as 'asha'.",
        )
    spec = settings.trainer_spec(call_settings, TrainerOptions())
    if not has_module(spec, LIBRARY):
        return Obstacle(
            ObjectNotReady,
            f"boosted trees need LightGBM, which {spec.python} does not have",
            f"An administrator installs it: {spec.python} -m pip install '{REQUIREMENT}'.",
        )
    return None


def check_members(db: Database, module: str, version: Version) -> None:
    """Check that the trees of a version, if it has any, can be grown again.

    Raises:
        FeatureNotSupported, ObjectNotReady: they cannot be grown.
    """
    names = {member.template for member in version.members}
    templates = [template for template in TEMPLATES if template.name in names]
    obstacle = read_tree_support(db, templates, None, None).obstacle
    if obstacle is not None:
        model = quote_text(version.model)
        alternative = f"Or train a version without them: cerebro.train with model => {model}."
        raise obstacle.to_error(module, alternative)
