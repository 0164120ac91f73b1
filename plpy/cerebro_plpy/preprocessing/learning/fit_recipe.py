"""From the rows of a table to the recipe of its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.preprocessing.kinds.category import Category
from cerebro_plpy.preprocessing.learning import array_inference, image_inference, type_inference
from cerebro_plpy.preprocessing.learning.text_statistics import read_word_statistics
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.rows import statistics
from cerebro_plpy.preprocessing.rows.statistics import AT_ONCE, Source
from cerebro_plpy.preprocessing.values import json_scalars
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.families import ARRAYS, BYTES, JSON, TEXT


def fit_recipe(
    reader: Reader, source: Source, columns: Sequence[RawColumn], types: Mapping[str, str]
) -> Recipe:
    """What the training rows of a source say about these columns."""
    scalar = {column.name for column in columns if column.family == JSON}
    columns, types = _of_json(reader, source, columns, types)
    whole = [column for column in columns if column.family in ARRAYS]
    files = [column for column in columns if column.family == BYTES]
    simple = [column for column in columns if column.family not in (*ARRAYS, BYTES)]
    known = statistics.gather_statistics(reader, source, simple)
    chosen = type_inference.choose(simple, known, types)
    values = statistics.read_categories(reader, source, chosen.categories, known.rows)
    features = {
        **chosen.features,
        **array_inference.learn(reader, source, whole, types),
        **image_inference.learn(reader, source, files, types),
    }
    for column in chosen.categories:
        texts, present = values[column.name], known.present(column.name)
        if column.name in scalar and json_scalars.NULL in texts:
            # Without it not all rows have a value.
            texts, present = tuple(text for text in texts if text != json_scalars.NULL), present - 1
        features[column.name] = type_inference.category(column, texts, known.rows, present)
    for column in chosen.texts:
        features[column.name] = type_inference.text(
            column, read_word_statistics(reader, source, column, known.rows)
        )
    return Recipe(tuple(features[column.name] for column in columns))


def _of_json(
    reader: Reader, source: Source, columns: Sequence[RawColumn], types: Mapping[str, str]
) -> tuple[Sequence[RawColumn], Mapping[str, str]]:
    """The columns and their types, where those of JSON are settled: numbers if all values are, and
    else categories.
    """
    asked = [
        column.name for column in columns if column.family == JSON and column.name not in types
    ]
    wanted = dict(types)
    for start in range(0, len(asked), AT_ONCE):
        names = asked[start : start + AT_ONCE]
        # SPI knows columns of a result by their names.
        others = ", ".join(
            f"{json_scalars.has_other(f't.{quote_identifier(name)}')} AS o{n}"
            for n, name in enumerate(names)
        )
        (found,) = reader.run(
            sql("features.scalars", others=others, source=source.table, side=source.side.text),
            source.side.values,
        )
        wanted |= {name: Category.kind for name, other in zip(names, found) if other}
    texts = {
        column.name
        for column in columns
        if column.family == JSON and wanted.get(column.name) == Category.kind
    }
    return [
        column._replace(family=TEXT) if column.name in texts else column for column in columns
    ], wanted
