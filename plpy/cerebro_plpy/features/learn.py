"""From the rows of a table to the recipe of its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cerebro_plpy.database.platform import Reader
from cerebro_plpy.features import arrays, images, kinds, statistics
from cerebro_plpy.features.columns import RawColumn
from cerebro_plpy.features.feature import ARRAYS, BYTES
from cerebro_plpy.features.recipe import Recipe
from cerebro_plpy.features.statistics import Source
from cerebro_plpy.features.wording import wording


def learn(reader: Reader, source: Source, columns: Sequence[RawColumn], types: Mapping[str, str]) -> Recipe:
    """What the training rows of a source say about these columns."""
    whole = [column for column in columns if column.family in ARRAYS]
    files = [column for column in columns if column.family == BYTES]
    simple = [column for column in columns if column.family not in (*ARRAYS, BYTES)]
    known = statistics.gather(reader, source, simple)
    chosen = kinds.choose(simple, known, types)
    values = statistics.categories(reader, source, chosen.categories)
    features = {
        **chosen.features,
        **arrays.learn(reader, source, whole, types),
        **images.learn(reader, source, files, types),
    }
    for column in chosen.categories:
        features[column.name] = kinds.category(column, values[column.name], known.rows, known.present(column.name))
    for column in chosen.texts:
        features[column.name] = kinds.text(column, wording(reader, source, column, known.rows))
    return Recipe(tuple(features[column.name] for column in columns))
