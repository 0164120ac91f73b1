"""Columns of which only equality counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from cerebro_plpy.preprocessing.kinds.feature import Feature
from cerebro_plpy.preprocessing.values.canonical_text import MONEY
from cerebro_plpy.preprocessing.values.checks import (
    Json,
    check_choice,
    check_column,
    check_flag,
    check_record,
    check_text,
    wrong,
)
from cerebro_plpy.preprocessing.values.column_values import distinct_text
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression, combined_values
from cerebro_plpy.preprocessing.values.families import BYTES, JSON, MOMENTS, NUMBERS, TEXT
from cerebro_plpy.records import dataclass, replace

MOST_CATEGORIES = 10_000
OUTLINE_VALUES = ("",)
"""Stand for all values if these must not be known."""
HASH_SEEDS = range(2)
"""Two hashes of 64 bits distinguish the values of a category."""
MOST_SINGLE_BINS = 50
"""The most frequent values have a bin of their own in a drift profile; others share one."""
CODE = "code"
FAMILIES_BY_TYPE = {
    "date": "date",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
    "interval": "interval",
    MONEY: MONEY,
}
"""Families whose texts depend on settings, by the type that a record's value is read as."""


@dataclass(frozen=True)
class Category(Feature):
    """A column of which only equality counts.

    Value number i has code i + 1; code 0 is NULL and every other value. Values are the texts that
    values of the `family` have under the settings of all recipes.
    """

    kind: ClassVar[str] = "category"
    has_edges: ClassVar[bool] = False

    values: tuple[str, ...]
    family: str = TEXT

    @classmethod
    def from_json(cls, value: Json) -> Category:
        is_old = "zoned" in value  # recipes of early 0.3.0 had a flag in place of the family
        entry = check_record(
            value, "feature", "kind", "column", "values", "zoned" if is_old else "family"
        )
        values = entry["values"]
        if not isinstance(values, (list, tuple)) or not 1 <= len(values) <= MOST_CATEGORIES:
            raise wrong("values", values, f"a list of 1 to {MOST_CATEGORIES} texts")
        texts = tuple(check_text(text, "a category") for text in values)
        if len(set(texts)) < len(texts):
            raise wrong("values", values, "no text twice")
        if not is_old:
            family = check_choice(entry["family"], "family", (TEXT, *NUMBERS, JSON, *MOMENTS))
        elif check_flag(entry["zoned"], "zoned"):
            family = "timestamptz"
        else:
            family = TEXT
        return cls(check_column(entry["column"]), texts, family)

    @property
    def cardinality(self) -> int:
        return len(self.values) + 1

    @property
    def code_values(self) -> Sequence[str]:
        return self.values

    def code(self, row: str) -> Expression:
        # A subselect is evaluated once, however many rows there are.
        codes = "pg_catalog.json_object(%s::text[], %s::text[])::jsonb"
        numbers = [str(number) for number in range(1, self.cardinality)]
        value = distinct_text(self.column, self.family, row)
        text = (
            f"coalesce(pg_catalog.jsonb_object_field_text((SELECT {codes}), {value.text})"
            "::integer, 0)"
        )
        return Expression(text, (list(self.values), numbers, *value.values))

    def outline(self) -> Category:
        return replace(self, values=OUTLINE_VALUES)

    def hashes(self, row: str) -> list[Expression]:
        text = distinct_text(self.column, self.family, row).text
        return [Expression(f"pg_catalog.hashtextextended({text}, {seed})") for seed in HASH_SEEDS]

    @property
    def drift_parts(self) -> Sequence[str]:
        return (CODE,)

    def drift_bin(self, part: str, edges: Sequence[float]) -> Expression:
        value = distinct_text(self.column, self.family)
        code = self.code("t")
        text = f"CASE WHEN {value.text} IS NOT NULL THEN least({code.text}, {MOST_SINGLE_BINS}) END"
        return Expression(text, combined_values((value, code)))

    def count_bins(self, edges: Sequence[float]) -> int:
        return min(len(self.values), MOST_SINGLE_BINS) + 1

    def over_column(self, column: RawColumn) -> Feature | None:
        if column.family in (None, BYTES):
            return None
        return replace(self, family=column.family)

    @property
    def expected_values(self) -> str:
        return "a text, or what has one"

    def record_type(self, source_type: str | None) -> str:
        return source_type or TEXT

    def over_record(self, record_type: str) -> Feature:
        return replace(self, family=FAMILIES_BY_TYPE.get(record_type, TEXT))

    @property
    def description(self) -> str:
        return f"category of {len(self.values)} values"

    @property
    def explanation(self) -> str:
        return "values that are there more than once; others count as none"

    @property
    def shown_constants(self) -> Json:
        return {"categories": len(self.values), "some": list(self.values[:10])}
