"""Columns of free text."""

from __future__ import annotations

from base64 import b64decode
from functools import cached_property
from typing import ClassVar

from cerebro_plpy.configs.templates.layers.model_io import TEXT, Wide
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.preprocessing.kinds.feature import Feature, WideFeature
from cerebro_plpy.preprocessing.values import text_hashing
from cerebro_plpy.preprocessing.values.checks import (
    Json,
    check_column,
    check_whole,
    wrong,
)
from cerebro_plpy.preprocessing.values.column_values import distinct_text
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import DOUBLE, Expression
from cerebro_plpy.preprocessing.values.value_texts import WRITTEN
from cerebro_plpy.records import dataclass, replace

MOST_BUCKETS = 1 << 16


@dataclass(frozen=True)
class Text(WideFeature):
    """A column of free text: its first `words`, each hashed to a number from 1 to `buckets`.

    Zeros follow a short text. Only the rarity of words is learned: `rarity` has a byte for each
    number in base64; it is empty if it must not be known.
    """

    kind: ClassVar[str] = TEXT

    words: int
    buckets: int
    rarity: str = ""

    @classmethod
    def from_json(cls, value: Json) -> Text:
        entry = cls.check_fields(value)
        words = check_whole(entry["words"], "words", text_hashing.MOST_WORDS)
        buckets = check_whole(entry["buckets"], "buckets", MOST_BUCKETS)
        column = check_column(entry["column"])
        return cls(column, words, buckets, _check_rarity(entry["rarity"], buckets))

    @cached_property
    def rarities(self) -> bytes:
        """The rarity of each number: RARITIES steps make a word half as frequent."""
        return b64decode(self.rarity)

    @property
    def shape_of_input(self) -> Wide:
        return Wide(self.kind, (self.words,), self.buckets + 1, self.rarities)

    def value(self, row: str) -> Expression:
        text = distinct_text(self.column, row=row).text
        return Expression(text_hashing.numbers(text, self.words, self.buckets))

    def extent(self, row: str) -> Expression:
        text = distinct_text(self.column, row=row).text
        return Expression(f"pg_catalog.length({text})::{DOUBLE}")

    def outline(self) -> Text:
        return replace(self, rarity="")

    def over_column(self, column: RawColumn) -> Feature | None:
        return self if column.family in WRITTEN else None

    @property
    def expected_values(self) -> str:
        return "a text"

    def record_type(self, source_type: str | None) -> str:
        return "text"

    @property
    def description(self) -> str:
        words = count_nouns(self.words, "word")
        numbers = count_nouns(self.buckets, "number")
        return f"text: the first {words}, each as one of {numbers} by a hash"

    @property
    def explanation(self) -> str:
        return "as many words as nearly all training rows have"

    @property
    def shown_constants(self) -> Json:
        return {"words": self.words, "buckets": self.buckets}


def _check_rarity(value: object, buckets: int) -> str:
    try:
        if isinstance(value, str) and len(b64decode(value, validate=True)) in (0, buckets):
            return value
    except ValueError:
        pass
    raise wrong("rarity", value, f"{count_nouns(buckets, 'byte')} in base64, or none")
