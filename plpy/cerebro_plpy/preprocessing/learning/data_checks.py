"""Whether there is enough to learn from: columns, rows that have a target, and rows on either
side.
"""

from __future__ import annotations

from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.preprocessing.learning.target import CLASSIFICATION
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.rows.class_counts import TargetCounts
from cerebro_plpy.preprocessing.rows.split import Split
from cerebro_plpy.preprocessing.values.columns import RawColumn


def check_inputs(module: str, recipe: Recipe) -> None:
    """Raises InvalidParameter where a recipe has no inputs."""
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
    """Raises InvalidParameter where no row has a target."""
    if not rows.present:
        reason = f"is NULL in all {rows.rows} rows" if rows.rows else "has no rows"
        raise InvalidParameter(
            f"{module} error: target {target.name!r} {reason} to learn from.",
            hint="Look at the table.",
        )


def check_rows(module: str, training: int, validation: int, split: Split) -> None:
    """Raises InvalidParameter where a side has too few rows."""
    for what, rows, least in (("train on", training, 2), ("compare models by", validation, 1)):
        if rows < least:
            raise InvalidParameter(
                f"{module} error: {split} leaves {rows} rows to {what}; expected at least {least}.",
                hint="Give more rows, or another split.",
            )


def why_unused(split: Split, task: str) -> str:
    """What may be the reason that a row with a target is neither trained on nor held back.

    >>> why_unused(Split("column", 0.2, "fold"), "regression")
    'column fold has them on neither side, or their target is no finite number'
    """
    aside = [f"column {split.column} has them on neither side"] if split.kind == "column" else []
    odd = (
        "no row of their class is trained on"
        if task == CLASSIFICATION
        else "their target is no finite number"
    )
    return ", or ".join([*aside, odd])
