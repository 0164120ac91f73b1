"""A recipe over another table than the one that it was learned from.

Columns are found by name, and must be of a type that the kind of the column accepts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.errors import DatatypeMismatch, UndefinedColumn
from cerebro_plpy.preprocessing.kinds.feature import Feature
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.values.checks import Json
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.records import replace


def match_recipe(
    module: str,
    recipe: Recipe,
    columns: Sequence[RawColumn],
    spelling: str,
    from_item: str | None = None,
) -> Recipe:
    """Return the recipe over a table with these columns; `spelling` names it in errors.

    Args:
        from_item: the table in FROM of a hint; by default its spelling.

    Raises:
        UndefinedColumn: columns are missing.
        DatatypeMismatch: the type of a column does not fit.
    """
    columns_by_name = {column.name: column for column in columns}
    missing = [feature for feature in recipe.inputs if feature.column not in columns_by_name]
    if missing:
        names = ", ".join(repr(feature.column) for feature in missing)
        nulls = ", ".join(
            f"NULL::{feature.record_type(None)} AS {quote_identifier(feature.column)}"
            for feature in missing
        )
        raise UndefinedColumn(
            f"{module} error: {spelling} has no column {names}, which the model needs.",
            detail=f"The model expects {', '.join(map(describe_column, recipe.inputs))}.",
            hint="Name a view that has all of these. If nothing is known of them: SELECT "
            f"t.*, {nulls} FROM {from_item or spelling} t;",
        )
    features = (
        _over_table(module, feature, columns_by_name, spelling) for feature in recipe.features
    )
    return replace(recipe, features=tuple(features))


def have_same_inputs(first: Recipe, second: Recipe) -> bool:
    """Return whether two recipes compute the same inputs, whatever the types of the columns are."""
    return _inputs_without_types(first) == _inputs_without_types(second)


def _inputs_without_types(recipe: Recipe) -> list[tuple[str, Json]]:
    return [feature.without_type() for feature in recipe.inputs]


def _over_table(
    module: str, feature: Feature, columns: Mapping[str, RawColumn], spelling: str
) -> Feature:
    """Return a feature over the columns of another table; raises DatatypeMismatch."""
    if not feature.is_input:
        return feature
    column = columns[feature.column]
    result = feature.over_column(column)
    if result is None:
        cast = feature.suggest_cast(column)
        hint = "Cast it in a view, and name that."
        if cast is not None:
            name = quote_identifier(column.name)
            hint = f"Name a view that has {cast} AS {name} in its place."
        raise DatatypeMismatch(
            f"{module} error: column {column.name!r} of {spelling} has type {column.type}; the "
            f"model expects {feature.expected_values}.",
            hint=hint,
        )
    return result


def describe_column(feature: Feature) -> str:
    """Return a column that a model takes, for messages."""
    return f"{feature.column!r} ({feature.expected_values})"
