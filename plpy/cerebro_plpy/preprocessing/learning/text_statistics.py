"""Statistics of the words of free text, from a sample of training rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from cerebro_plpy.configs.templates.layers.model_io import RARITIES
from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.preprocessing.kinds.text import MOST_BUCKETS
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.values import column_values, text_hashing
from cerebro_plpy.preprocessing.values.columns import RawColumn

SAMPLED_TEXTS = 10_000
UNCUT_SHARE = 0.95
"""The share of texts that must not be cut."""
FEWEST_BUCKETS = 256
BUCKETS_PER_WORD = 8
"""Hash values for each word that occurs more than once; so few words share one."""
LARGEST_RARITY = 255


class WordStatistics(NamedTuple):
    """Statistics of the words of a column of free text."""

    words: int  # nearly all texts have no more
    repeated: int  # distinct words that occur more than once
    texts: int = 0
    frequencies: Sequence[tuple[int, int]] = ()  # hash from 1 to MOST_BUCKETS, texts that have it

    @property
    def buckets(self) -> int:
        """The number of hash values: a power of two."""
        count = min(max(self.repeated * BUCKETS_PER_WORD, FEWEST_BUCKETS), MOST_BUCKETS)
        return 1 << (count - 1).bit_length()

    @property
    def rarities(self) -> bytes:
        """The rarity of each hash value: RARITIES * log2((1 + texts) / (1 + texts that have it)).

        >>> WordStatistics(8, 2, 7, ((1, 7), (2, 3), (258, 2))).rarities[:3]
        b'\\x00\\x03\\x18'
        """
        buckets = self.buckets
        texts_by_bucket = Counter[int]()
        for number, texts in self.frequencies:
            texts_by_bucket[(number - 1) % buckets] += texts
        return bytes(self._rarity(texts_by_bucket[bucket]) for bucket in range(buckets))

    def _rarity(self, texts: int) -> int:
        share = (1 + min(texts, self.texts)) / (1 + self.texts)
        return min(round(-RARITIES * math.log2(share)), LARGEST_RARITY)


def read_word_statistics(
    reader: Reader, source: Source, column: RawColumn, rows: int
) -> WordStatistics:
    """Return the statistics of a sample of the texts of a number of rows."""
    text = column_values.distinct_text(column.name).text
    sample = source.choose_rows(rows, SAMPLED_TEXTS)
    statement = sql(
        "features.wording",
        words=text_hashing.words_as_rows(text, text_hashing.MOST_WORDS),
        number=text_hashing.number(MOST_BUCKETS),
        source=sample.table,
        side=sample.side.text,
        text=text,
        most=str(text_hashing.MOST_WORDS),
    )
    ((length, texts, repeated, numbers, frequencies),) = reader.run(
        statement, (*sample.side.values, UNCUT_SHARE)
    )
    return WordStatistics(
        length or 0, repeated, texts, tuple(zip(numbers or (), frequencies or ()))
    )
