"""The recipe of the columns of a table, learned from its training rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.preprocessing.kinds.category import Category
from cerebro_plpy.preprocessing.kinds.left_out import LeftOut
from cerebro_plpy.preprocessing.learning import array_inference, image_inference, type_inference
from cerebro_plpy.preprocessing.learning.text_columns import read_formats
from cerebro_plpy.preprocessing.learning.text_statistics import read_word_statistics
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.remarks.column_remarks import ColumnRemark
from cerebro_plpy.preprocessing.remarks.columns_ahead import remark_recurring_parts
from cerebro_plpy.preprocessing.remarks.nested_values import remark_objects
from cerebro_plpy.preprocessing.remarks.number_remarks import remark_numbers
from cerebro_plpy.preprocessing.remarks.spellings import remark_categories
from cerebro_plpy.preprocessing.rows import statistics
from cerebro_plpy.preprocessing.rows.column_batches import split_batches
from cerebro_plpy.preprocessing.rows.later_rows import find_columns_ahead
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.values import json_scalars
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.families import ARRAYS, BYTES, JSON, SCALAR


class FittedRecipe(NamedTuple):
    """A recipe, and remarks about columns that may not be what they are taken for."""

    recipe: Recipe
    remarks: tuple[ColumnRemark, ...]


def fit_recipe(
    reader: Reader, source: Source, columns: Sequence[RawColumn], types: Mapping[str, str]
) -> Recipe:
    """Return the recipe of columns; see `fit_columns`."""
    return fit_columns(reader, source, columns, types).recipe


def fit_columns(
    reader: Reader,
    source: Source,
    columns: Sequence[RawColumn],
    types: Mapping[str, str],
    later_rows: Source | None = None,
) -> FittedRecipe:
    """Return the recipe of columns, and the remarks about them.

    Args:
        types: the kinds of columns that a call names.
        later_rows: the rows held back, if they are the last ones.
    """
    given_types = types
    columns, types = _settle_json(reader, source, columns, types)
    arrays = [column for column in columns if column.family in ARRAYS]
    files = [column for column in columns if column.family == BYTES]
    scalar_columns = [column for column in columns if column.family not in (*ARRAYS, BYTES)]
    stored = statistics.gather_statistics(reader, source, scalar_columns)
    simple, gathered, text_remarks = read_formats(reader, source, scalar_columns, stored, types)
    doubtful = {remark.column for remark in text_remarks}
    free_columns = [column for column in simple if column.name not in types]
    columns_ahead = find_columns_ahead(reader, later_rows, free_columns, gathered)
    inferred = type_inference.infer_features(simple, gathered, types, doubtful, columns_ahead)
    values = statistics.read_categories(reader, source, inferred.categories, gathered.rows)
    features = {
        **inferred.features,
        **array_inference.infer_arrays(reader, source, arrays, types),
        **image_inference.infer_images(reader, source, files, types),
    }
    for column in inferred.categories:
        features[column.name] = type_inference.make_category(
            column, values[column.name], gathered.rows, gathered.present(column.name)
        )
    for column in inferred.texts:
        words = read_word_statistics(reader, source, column, gathered.rows)
        features[column.name] = type_inference.make_text(column, words)
    number_remarks = [
        remark
        for column in simple
        if features[column.name].is_input and column.name not in types
        for remark in remark_numbers(column, gathered)
    ]
    object_remarks = [
        remark
        for column in inferred.categories
        if column.family == SCALAR and column.name not in given_types
        for remark in remark_objects(reader, source, column, gathered.rows)
    ]
    for remark in object_remarks:
        if not features[remark.column].is_input:
            features[remark.column] = LeftOut(remark.column, remark.text)
    spelling_remarks = [
        remark
        for column in inferred.categories
        for remark in remark_categories(column, values[column.name])
    ]
    kept_remarks = [remark for remark in object_remarks if features[remark.column].is_input]
    remarks = (*text_remarks, *number_remarks, *kept_remarks, *spelling_remarks)
    recipe = Recipe(tuple(features[column.name] for column in columns))
    part_remarks = remark_recurring_parts(columns_ahead, features)
    return FittedRecipe(recipe, (*remarks, *part_remarks))


def _settle_json(
    reader: Reader, source: Source, columns: Sequence[RawColumn], types: Mapping[str, str]
) -> tuple[Sequence[RawColumn], Mapping[str, str]]:
    """Return the columns and their kinds, with JSON settled: as numbers, or as categories.

    A column of JSON has numbers if all its values are numbers or null.
    """
    unsettled = [
        column.name for column in columns if column.family == JSON and column.name not in types
    ]
    kinds = dict(types)
    for names in split_batches(unsettled):
        # SPI knows the columns of a result by their names.
        aggregates = ", ".join(
            f"{json_scalars.has_other(f't.{quote_identifier(name)}')} AS o{number}"
            for number, name in enumerate(names)
        )
        statement = sql(
            "features.scalars", others=aggregates, source=source.table, side=source.side.text
        )
        (row,) = reader.run(statement, source.side.values)
        kinds |= {name: Category.kind for name, has_other in zip(names, row) if has_other}
    return [_settle_column(column, kinds.get(column.name)) for column in columns], kinds


def _settle_column(column: RawColumn, kind: str | None) -> RawColumn:
    """Return the column as one of categories if it has JSON that becomes one."""
    if column.family == JSON and kind == Category.kind:
        return column._replace(family=SCALAR)
    return column
