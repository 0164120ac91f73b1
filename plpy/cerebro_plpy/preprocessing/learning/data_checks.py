"""Checks that a table has enough to learn from: columns, targets, rows on either side."""

from __future__ import annotations

from collections.abc import Sequence

from cerebro_plpy.database.platform_protocol import Table
from cerebro_plpy.database.sql.spelling import spell_names
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.preprocessing.kinds.category import Category
from cerebro_plpy.preprocessing.kinds.feature import Feature
from cerebro_plpy.preprocessing.kinds.left_out import ALL_NULL, ONE_VALUE
from cerebro_plpy.preprocessing.learning.class_notices import name_few
from cerebro_plpy.preprocessing.learning.fit_recipe import FittedRecipe
from cerebro_plpy.preprocessing.learning.target import CLASSIFICATION
from cerebro_plpy.preprocessing.learning.type_inference import possible_kinds
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.rows.class_counts import TargetCounts
from cerebro_plpy.preprocessing.rows.split import Split
from cerebro_plpy.preprocessing.values.column_hints import (
    input_expressions,
    suggest_view,
    write_types,
)
from cerebro_plpy.preprocessing.values.columns import RawColumn

MAX_EXPRESSIONS = 6
"""Columns of a view that a hint writes at most."""
SPLIT_HINTS = {
    "group": "All rows with the same value are on one side: name a column with more values, or "
    "divide the rows by chance: split => 'random 0.2'.",
    "last": "Divide the rows by chance: split => 'random 0.2'.",
    "table": "Rows with a target are needed on both sides, and a class that is held back must also "
    "be trained on.",
}
"""Hints about too few rows on a side, by the kind of the split."""


def check_inputs(
    module: str, fitted: FittedRecipe, columns: Sequence[RawColumn], table: Table
) -> FittedRecipe:
    """Return a recipe that has inputs.

    Args:
        columns: the columns to learn from.
        table: the source of the call, for the hint.

    Raises:
        InvalidParameter: it has no inputs.
    """
    recipe = fitted.recipe
    if not recipe.inputs:
        reasons = [f"{feature.column}: {feature.explanation}" for feature in recipe.features]
        reasons += [f"{remark.column}: {remark.text}" for remark in fitted.remarks]
        raise InvalidParameter(
            f"{module} error: no column can be learned from.",
            detail="; ".join(reasons),
            hint=_suggest_input(recipe.features, columns, table),
        )
    return fitted


def _suggest_input(features: Sequence[Feature], columns: Sequence[RawColumn], table: Table) -> str:
    """Return a hint for a table whose columns are all left out."""
    columns_by_name = {column.name: column for column in columns}
    varied = [
        columns_by_name[feature.column]
        for feature in features
        if feature.explanation not in (ALL_NULL, ONE_VALUE)
    ]
    expressions: dict[str, str] = {}
    for column in varied:
        if not possible_kinds(column.family) and len(expressions) < MAX_EXPRESSIONS:
            expressions |= input_expressions(column)
    if expressions:
        return suggest_view(table, expressions, {"columns": spell_names(expressions)})
    for column in sorted(varied, key=lambda column: column.key):
        # A category of values that all differ would be left out again.
        kinds = [kind for kind in possible_kinds(column.family) if kind != Category.kind]
        if kinds:
            return f"Name other columns. {write_types({column.name: kinds[0]})}"
    return "Name a table or columns whose values differ: columns => '*' takes all."


def suggest_input_of_kind(kind: str | None, columns: Sequence[RawColumn], recipe: Recipe) -> str:
    """Return a hint for a template that needs a column of a kind, which no column is taken for."""
    learned = {feature.column for feature in recipe.features}
    for column in columns:
        if column.name in learned and kind in possible_kinds(column.family):
            return f"A column can be one: {write_types({column.name: str(kind)})}"
    return "No column has a fitting type. Leave models out."


def check_any(module: str, target: RawColumn, rows: TargetCounts, table: Table) -> None:
    """Raise InvalidParameter if no row has a target."""
    if rows.present:
        return
    if rows.rows:
        reason = f"is NULL in all {count_nouns(rows.rows, 'row')}"
        hint = "Fill it in some rows, or name another target. Rows without one can be predicted."
    else:
        reason = "has no rows"
        hint = f"SELECT count(*) FROM {table.quoted}; counts the rows that you see. Add rows."
    raise InvalidParameter(
        f"{module} error: target {target.name!r} {reason} to learn from.", hint=hint
    )


def check_rows(
    module: str, training: int, validation: int, split: Split, untrained: Sequence[str] = ()
) -> None:
    """Raise InvalidParameter if a side has too few rows.

    Args:
        untrained: classes of which all rows are held back.
    """
    detail = None
    if untrained:
        detail = f"No row of these classes is trained on: {name_few(untrained)}."
    for purpose, rows, least in (("train on", training, 2), ("compare models by", validation, 1)):
        if rows < least:
            raise InvalidParameter(
                f"{module} error: {split} leaves {count_nouns(rows, 'row')} to {purpose}; expected "
                f"at least {least}.",
                detail=detail,
                hint=SPLIT_HINTS.get(split.kind, "Add rows that have a target."),
            )


def why_unused(split: Split, task: str, untrained: Sequence[str] = ()) -> str:
    """Return why a row with a target may be on neither side.

    Args:
        untrained: classes of which all rows are held back.

    >>> why_unused(Split("column", 0.2, "fold"), "regression")
    'column fold has them on neither side, or their target is no finite number'
    >>> why_unused(Split("random", 0.2, None), "classification", ["new"])
    "no row of their class is trained on: 'new'"
    """
    reasons = []
    if split.kind == "column":
        reasons.append(f"column {split.column} has them on neither side")
    if task == CLASSIFICATION:
        class_names = f": {name_few(untrained)}" if untrained else ""
        reasons.append(f"no row of their class is trained on{class_names}")
    else:
        reasons.append("their target is no finite number")
    return ", or ".join(reasons)
