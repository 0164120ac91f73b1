"""Checks that a table has enough to learn from: columns, targets, rows on either side."""

from __future__ import annotations

from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.preprocessing.learning.target import CLASSIFICATION
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.rows.class_counts import TargetCounts
from cerebro_plpy.preprocessing.rows.split import Split
from cerebro_plpy.preprocessing.values.columns import RawColumn


def check_inputs(module: str, recipe: Recipe) -> None:
    """Raise InvalidParameter if a recipe has no inputs."""
    if not recipe.inputs:
        reasons = "; ".join(
            f"{feature.column}: {feature.explanation}" for feature in recipe.features
        )
        raise InvalidParameter(
            f"{module} error: no column can be learned from.",
            detail=reasons,
            hint='Name other columns, or say what they are: types => \'{"column": "category"}\'.',
        )


def check_any(module: str, target: RawColumn, rows: TargetCounts) -> None:
    """Raise InvalidParameter if no row has a target."""
    if not rows.present:
        reason = f"is NULL in all {rows.rows} rows" if rows.rows else "has no rows"
        raise InvalidParameter(
            f"{module} error: target {target.name!r} {reason} to learn from.",
            hint="Look at the table.",
        )


def check_rows(module: str, training: int, validation: int, split: Split) -> None:
    """Raise InvalidParameter if a side has too few rows."""
    for purpose, rows, least in (("train on", training, 2), ("compare models by", validation, 1)):
        if rows < least:
            raise InvalidParameter(
                f"{module} error: {split} leaves {rows} rows to {purpose}; expected at least "
                f"{least}.",
                hint="Give more rows, or another split.",
            )


def why_unused(split: Split, task: str) -> str:
    """Return why a row with a target may be on neither side.

    >>> why_unused(Split("column", 0.2, "fold"), "regression")
    'column fold has them on neither side, or their target is no finite number'
    """
    reasons = []
    if split.kind == "column":
        reasons.append(f"column {split.column} has them on neither side")
    if task == CLASSIFICATION:
        reasons.append("no row of their class is trained on")
    else:
        reasons.append("their target is no finite number")
    return ", or ".join(reasons)
