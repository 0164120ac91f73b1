"""The terms under which members of a version are trained again on all rows."""

from __future__ import annotations

from typing import NamedTuple

from cerebro_plpy.configs.train_spec import REFIT_ALL, REFIT_AUTO, TrainSpec
from cerebro_plpy.preprocessing.rows.split import Split, read_split

MODULE = "train"
FOLDS = 5
MAX_FOLDED_ROWS = 10_000
"""With more rows, those that were held back are enough to choose and to calibrate by."""


class RefitTerms(NamedTuple):
    """The parts of a call that decide whether members are trained again on all rows.

    >>> plain = RefitTerms("auto", False, False, False, False)
    >>> plain.is_possible, plain._replace(has_groups=True).is_possible
    (True, False)
    >>> plain._replace(has_holdout_table=True).is_wanted
    False
    """

    refit: str  # the argument
    has_holdout_table: bool  # the split names the table of the rows held back
    has_groups: bool
    has_weights: bool
    has_cost_limits: bool

    @classmethod
    def from_spec(cls, train_spec: TrainSpec) -> RefitTerms:
        """Return the terms of a logged call."""
        return cls(
            refit=train_spec.refit,
            has_holdout_table=read_split(MODULE, train_spec.split.rule).table is not None,
            has_groups=train_spec.grouping.column is not None,
            has_weights=train_spec.weight is not None,
            has_cost_limits=train_spec.max_cpu is not None or train_spec.max_cost is not None,
        )

    @property
    def is_wanted(self) -> bool:
        """Return whether the call lets members be trained again on all rows.

        By default, rows of a table of their own stay apart, so that they can measure the model.
        """
        if self.refit == REFIT_AUTO:
            return not self.has_holdout_table
        return self.refit == REFIT_ALL

    @property
    def obstacle(self) -> str | None:
        """Return why no member can be trained again on all rows; None if some can."""
        if self.has_groups:
            return "its rows are packed for models of groups"
        if self.has_weights:
            return "the rows held back are packed without weights"
        if self.has_cost_limits:
            return "the cost of the run is limited"
        return None

    @property
    def is_possible(self) -> bool:
        """Return whether members may be trained again on all rows."""
        return self.is_wanted and self.obstacle is None


def suits_folds(split: Split, rows: int) -> bool:
    """Return whether members are chosen by folds of rows, and not by those held back alone.

    Folds of rows in any order would be predicted from later rows, or from rows of their own group,
    if the split keeps these apart.

    >>> suits_folds(Split("random", 0.2, None), 500), suits_folds(Split("last", 0.2, "day"), 500)
    (True, False)
    """
    return split.kind == "random" and rows < MAX_FOLDED_ROWS
