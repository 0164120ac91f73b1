"""The conditions under which boosted trees can be trained, checked before work starts.

Trees grow over all rows at once, so a trainer must be able to read and to hold all of them.
"""

from __future__ import annotations

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
from cerebro_plpy.preprocessing.learning.raw_table import RawTable
from cerebro_plpy.preprocessing.recipe.recipe import FLOAT_BYTES
from cerebro_plpy.tables.models.model_versions import Version
from cerebro_plpy.trainer_client import settings
from cerebro_plpy.trainer_client.process.installed_modules import has_module
from cerebro_plpy.trainer_client.settings import TrainerOptions

LIBRARY = "lightgbm"
REQUIREMENT = "lightgbm>=4.5"
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

    def find_obstacle(self, table: RawTable) -> Obstacle | None:
        """Return why trees cannot learn from a table; None if they can."""
        if self.obstacle is not None:
            return self.obstacle
        row_bytes = (table.recipe.table.elements + table.target.head.units) * FLOAT_BYTES
        size = (table.rows + table.validation_rows) * row_bytes
        if size <= self.cache_bytes:
            return None
        return Obstacle(
            OutOfMemory,
            "boosted trees learn from all rows at once, which take "
            f"{size / 1e6:.0f} MB; a trainer has {self.cache_bytes / 1e6:.0f} MB for rows",
            "An administrator raises cache_mb in cerebro.setting; or use fewer workers.",
        )


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
    segments = len(db.platform.choose_distribution(db, "train", None, None).keys)
    trainers = min(workers or db.platform.default_workers(segments), segments)
    return TreeSupport(None, settings.cache_bytes(call_settings, trainers))


def _find_obstacle(
    db: Database, call_settings: settings.Settings, rule: SearchRule | None
) -> Obstacle | None:
    if not db.platform.trainer_threads(1):
        return Obstacle(
            FeatureNotSupported,
            "boosted trees learn from all rows at once, but on "
            f"{db.platform.name} each trainer has the rows of one segment",
        )
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
