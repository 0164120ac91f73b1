"""What free texts are made of, by a sample of training rows: as much as it takes to make numbers of
their words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from cerebro_plpy.configs.templates.layers.model_io import RARITIES
from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.preprocessing.kinds.text import MOST_BUCKETS
from cerebro_plpy.preprocessing.rows.statistics import Source
from cerebro_plpy.preprocessing.values import column_values, text_hashing
from cerebro_plpy.preprocessing.values.columns import RawColumn

SAMPLED_TEXTS, NEARLY_ALL = 10_000, 0.95
"""How many texts are divided into words, and which share of them is not to be cut off."""
FEWEST_BUCKETS, BUCKETS_A_WORD = 256, 8
"""Numbers that words may have; with eight for each word that is there more than once few of all
words share one.
"""
RAREST = 255


class WordStatistics(NamedTuple):
    """Of a column of free text: as many words as nearly all have, and how many words there are more
    than once.

    Of so many `texts`, each number of a word, from 1 to MOST_BUCKETS, is in so many, as (number,
    texts).
    """

    words: int
    repeated: int
    texts: int = 0
    frequencies: Sequence[tuple[int, int]] = ()

    @property
    def buckets(self) -> int:
        """How many numbers words are to have: a power of two."""
        wanted = min(max(self.repeated * BUCKETS_A_WORD, FEWEST_BUCKETS), MOST_BUCKETS)
        return 1 << (wanted - 1).bit_length()

    @property
    def rarities(self) -> bytes:
        """How rare the words of each number are: RARITIES times the binary logarithm of (1 + texts)
        / (1 + having it).

        >>> WordStatistics(8, 2, 7, ((1, 7), (2, 3), (258, 2))).rarities[:3]
        b'\\x00\\x03\\x18'
        """
        buckets, having = self.buckets, Counter[int]()
        for number, texts in self.frequencies:
            having[(number - 1) % buckets] += texts
        return bytes(self._rarity(having[place]) for place in range(buckets))

    def _rarity(self, having: int) -> int:
        share = (1 + min(having, self.texts)) / (1 + self.texts)
        return min(round(-RARITIES * math.log2(share)), RAREST)


def read_word_statistics(
    reader: Reader, source: Source, column: RawColumn, rows: int
) -> WordStatistics:
    """What the texts of a sample are made of; there are so many rows."""
    text, few = column_values.distinct_text(column.name).text, source.few(rows, SAMPLED_TEXTS)
    statement = sql(
        "features.wording",
        words=text_hashing.words_as_rows(text, text_hashing.MOST_WORDS),
        number=text_hashing.number(MOST_BUCKETS),
        source=few.table,
        side=few.side.text,
        text=text,
        most=str(text_hashing.MOST_WORDS),
    )
    ((length, texts, repeated, numbers, frequencies),) = reader.run(
        statement, (*few.side.values, NEARLY_ALL)
    )
    return WordStatistics(
        length or 0, repeated, texts, tuple(zip(numbers or (), frequencies or ()))
    )
