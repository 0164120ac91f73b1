"""What free texts are made of, by a sample of training rows: as much as it takes to make numbers of their words."""

from __future__ import annotations

from typing import NamedTuple

from cerebro_plpy.database.platform import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.features import encoding, words
from cerebro_plpy.features.columns import RawColumn
from cerebro_plpy.features.statistics import Source

SAMPLED_TEXTS, NEARLY_ALL = 10_000, 0.95
"""How many texts are divided into words, and which share of them is not to be cut off."""


class Wording(NamedTuple):
    """Of a column of free text: as many words as nearly all have, and how many words there are more than once."""

    words: int
    repeated: int


def wording(reader: Reader, source: Source, column: RawColumn, rows: int) -> Wording:
    """What the texts of a sample are made of; there are so many rows."""
    text, few = encoding.category(column.name).text, source.few(rows, SAMPLED_TEXTS)
    statement = sql(
        "features.wording",
        words=words.listed(text, words.MOST_WORDS),
        source=few.table,
        side=few.side.text,
        text=text,
        most=str(words.MOST_WORDS),
    )
    ((length, repeated),) = reader.run(statement, (*few.side.values, NEARLY_ALL))
    return Wording(length or 0, repeated)
