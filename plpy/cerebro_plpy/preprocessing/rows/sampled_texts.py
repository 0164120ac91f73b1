"""Statistics of a column of texts: words and distinct values in the sample, and shapes of texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from cerebro_plpy.database.queries import sql
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.families import TEXT
from cerebro_plpy.preprocessing.values.text_shapes import is_empty


class SampledTexts(NamedTuple):
    """The columns of `features.sampled_texts`, and of `features.sampled_shapes`."""

    sampled: int
    distinct: int
    words: float | None  # the mean number
    filled: int = 0  # texts with more than blanks; 0 if nobody looked at shapes
    shapes: Mapping[str, int] | None = None  # texts with digits, by shape

    def over(self, rows: int) -> TextStatistics:
        """Return the statistics of a column that has a text in a number of rows."""
        shapes = self.shapes or {}
        return TextStatistics(
            rows, self.sampled, self.distinct, self.words or 0.0, self.filled, shapes
        )


class TextStatistics(NamedTuple):
    """Statistics of a column of texts."""

    rows: int  # that have a text
    sampled: int
    distinct: int  # in the sample
    words: float  # the mean number in the sample
    filled: int  # texts of the sample with more than blanks; 0 if nobody looked at shapes
    shapes: Mapping[str, int]  # texts of the sample with digits, by shape


def has_shapes(column: RawColumn) -> bool:
    """Return whether texts may be numbers or dates; those of enums and the like are not."""
    return column.family == TEXT and column.compared == "text"


def text_aggregates(column: RawColumn, text: str, shape: str) -> str:
    """Return the aggregates of a text, and of its shape, which have these names in the sample."""
    texts = sql("features.sampled_texts", c=text)
    if not has_shapes(column):
        return texts
    shapes = sql("features.sampled_shapes", c=text, s=shape, empty=is_empty(text))
    return f"{texts}, {shapes}"


def read_texts(column: RawColumn, cells: Iterator[Any]) -> SampledTexts:
    """Read the results of the aggregates."""
    sampled = SampledTexts(*islice(cells, 3))
    if not has_shapes(column):
        return sampled
    filled, shapes = islice(cells, 2)
    return sampled._replace(filled=filled, shapes=Counter(shapes))
