"""Columns of which only equality counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.preprocessing.kinds.feature import Feature
from cerebro_plpy.preprocessing.values import value_texts
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
from cerebro_plpy.preprocessing.values.column_values import distinct_text, text_in_form
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression, combined_values
from cerebro_plpy.preprocessing.values.families import BOOLEAN, CITEXT, JSON, SCALAR, TEXT
from cerebro_plpy.records import dataclass, replace

MOST_CATEGORIES = 10_000
OUTLINE_VALUES = ("",)
"""Stand for all values if these must not be known."""
HASH_SEEDS = range(2)
"""Two hashes of 64 bits distinguish the values of a category."""
MOST_SINGLE_BINS = 50
"""The most frequent values have a bin of their own in a drift profile; others share one."""
CODE = "code"
EXPECTED_VALUES = {
    value_texts.NUMBER: "a number",
    value_texts.SINGLE: "a number",
    BOOLEAN: "a boolean: true or false, 1 or 0, yes or no",
    TEXT: "a text",
    CITEXT: "a text",
    SCALAR: "a value of JSON",
}
"""The values of a form, for messages; other forms are called as their type."""
RECORD_TYPES = {
    BOOLEAN: "jsonb",
    SCALAR: "jsonb",
    value_texts.NUMBER: "jsonb",
    value_texts.SINGLE: "jsonb",
    "integer": "jsonb",
    "date": "date",
    "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone",
    "interval": "interval",
}
"""The types that values in a record are read as, by the form of the category."""
PLAIN_TYPES = (TEXT, "character varying", None)
"""Types of texts that are those of JSON; None if the type is not known."""
FAMILIES_OF_RECORDS = {
    "smallint": "integer",
    "integer": "integer",
    "bigint": "integer",
    "numeric": "numeric",
    MONEY: MONEY,
    "real": "real",
    "double precision": "real",
    "boolean": BOOLEAN,
    "jsonb": JSON,
    "json": JSON,
    "date": "date",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
    "time without time zone": "time",
    "time with time zone": "time",
    "interval": "interval",
}
"""The families of types that values in a record are read as; all others are texts."""


@dataclass(frozen=True)
class Category(Feature):
    """A column of which only equality counts.

    Value number i has code i + 1; code 0 is NULL and every other value. Values are texts of one
    form: `value_texts` defines the text of a value.
    """

    kind: ClassVar[str] = "category"
    has_edges: ClassVar[bool] = False
    type_fields: ClassVar[tuple[str, ...]] = ("family", "source")

    values: tuple[str, ...]
    family: str = TEXT  # the form of the values
    source: str | None = None  # the family of the column that is read; not stored

    def to_json(self) -> Json:
        value = super().to_json()
        del value["source"]
        return value

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
            family = check_choice(
                entry["family"], "family", (*value_texts.FORMS, *value_texts.OLD_FORMS)
            )
        elif check_flag(entry["zoned"], "zoned"):
            family = "timestamptz"
        else:
            family = TEXT
        return cls(check_column(entry["column"]), texts, family)

    @property
    def _source(self) -> str:
        return self.source or value_texts.FAMILY_OF_FORM.get(self.family, self.family)

    def _text(self, row: str) -> Expression:
        return text_in_form(self.column, self._source, self.family, row)

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
        value = self._text(row)
        text = (
            f"coalesce(pg_catalog.jsonb_object_field_text((SELECT {codes}), {value.text})"
            "::integer, 0)"
        )
        return Expression(text, (list(self.values), numbers, *value.values))

    def unknown_value(self, row: str) -> Expression:
        code = self.code(row)
        text = distinct_text(self.column, self._source, row).text
        return Expression(f"CASE WHEN {code.text} = 0 THEN {text} END", code.values)

    def outline(self) -> Category:
        return replace(self, values=OUTLINE_VALUES)

    def hashes(self, row: str) -> list[Expression]:
        text = self._text(row).text
        return [Expression(f"pg_catalog.hashtextextended({text}, {seed})") for seed in HASH_SEEDS]

    @property
    def drift_parts(self) -> Sequence[str]:
        return (CODE,)

    def drift_bin(self, part: str, edges: Sequence[float]) -> Expression:
        value = distinct_text(self.column, self._source)
        code = self.code("t")
        text = f"CASE WHEN {value.text} IS NOT NULL THEN least({code.text}, {MOST_SINGLE_BINS}) END"
        return Expression(text, combined_values((value, code)))

    def count_bins(self, edges: Sequence[float]) -> int:
        return min(len(self.values), MOST_SINGLE_BINS) + 1

    def over_column(self, column: RawColumn) -> Feature | None:
        if not value_texts.fits(column.family, self.family, self.values):
            return None
        return replace(self, source=self.read_as(column.family))

    @property
    def expected_values(self) -> str:
        expected = EXPECTED_VALUES.get(self.family, f"a {self.family}")
        if self.family in value_texts.WRITTEN and self.values != OUTLINE_VALUES:
            return f"{expected} such as {self.values[0]!r:.60}"
        return expected

    def suggest_cast(self, column: RawColumn) -> str | None:
        name = quote_identifier(column.name)
        if self.family in value_texts.WRITTEN:
            length = len(self.values[0])
            if column.family == "integer" and all(
                text.isdigit() and len(text) == length for text in self.values
            ):
                return f"lpad({name}::text, {length}, '0')"
            return f"{name}::text"
        return value_texts.zone_cast(name, column.family, self.family)

    def record_type(self, source_type: str | None) -> str:
        return record_type(self.family, source_type)

    def over_record(self, record_type: str) -> Feature:
        if self.family in value_texts.OLD_FORMS:
            return self
        return replace(self, source=self.read_as(family_of_record(record_type)))

    def read_as(self, family: str | None) -> str | None:
        """Return the value of `source` for a column of a family.

        Earlier recipes have the texts of JSON, with quotes.
        """
        has_quotes = self.family == TEXT and any(text.startswith('"') for text in self.values)
        if family == self.family or (family == JSON and has_quotes):
            return None
        return family

    @property
    def has_settings(self) -> bool:
        return self.family == value_texts.SINGLE

    @property
    def description(self) -> str:
        return f"category of {count_nouns(len(self.values), 'value')}"

    @property
    def explanation(self) -> str:
        return "values that are there more than once; others count as none"

    @property
    def shown_constants(self) -> Json:
        return {"categories": len(self.values), "some": list(self.values[:10])}


def record_type(form: str | None, source_type: str | None) -> str:
    """Return the type that a value in a record is read as to be compared with texts of a form.

    Args:
        source_type: the type of the column in the table that the model was trained on.
    """
    if source_type == MONEY:  # JSON has the text of an amount
        return MONEY
    if form in value_texts.WRITTEN and source_type in PLAIN_TYPES:
        return "jsonb"
    return RECORD_TYPES.get(form or TEXT) or source_type or TEXT


def family_of_record(type_: str) -> str:
    """Return the family of a type that values in a record are read as."""
    return FAMILIES_OF_RECORDS.get(type_, TEXT)
