"""Columns of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from cerebro_plpy.preprocessing.kinds.feature import MISSING_NOTES, ROBUST_SCALE, VALUE, Feature
from cerebro_plpy.preprocessing.values.canonical_text import MONEY
from cerebro_plpy.preprocessing.values.checks import (
    Json,
    check_choice,
    check_column,
    check_flag,
)
from cerebro_plpy.preprocessing.values.column_values import (
    column_name,
    number,
    unread_text,
)
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import DOUBLE, Expression
from cerebro_plpy.preprocessing.values.families import (
    EXACT_TYPES,
    JSON,
    NUMBERS,
    TEXT_NUMBERS,
    WHOLE,
    family_over,
)
from cerebro_plpy.preprocessing.values.scale import (
    UNKNOWN,
    Scale,
    ScaleConstants,
    scale_constants,
    scaled,
)
from cerebro_plpy.preprocessing.values.text_formats import RECORD, describe_format
from cerebro_plpy.records import dataclass, replace

RECORD_TYPES = {"real": DOUBLE, JSON: "jsonb", **dict.fromkeys(TEXT_NUMBERS, "jsonb")}
"""Types of numbers in JSON records by family; others are numeric, which is exact."""


@dataclass(frozen=True)
class Number(Feature):
    """A column of numbers: one scaled number, and a flag if values may be missing."""

    kind: ClassVar[str] = "number"

    family: str
    scale: Scale
    missing: bool

    @classmethod
    def from_json(cls, value: Json) -> Number:
        entry = cls.check_fields(value)
        return cls(
            family=check_choice(entry["family"], "family", (*NUMBERS, JSON, *TEXT_NUMBERS)),
            column=check_column(entry["column"]),
            scale=Scale.from_json(entry["scale"]),
            missing=check_flag(entry["missing"]),
        )

    @property
    def number_parts(self) -> Sequence[str]:
        return (VALUE,)

    @property
    def number_pieces(self) -> Sequence[tuple[float, ...]]:
        return (self.scale.pieces,)

    @property
    def has_missing_flag(self) -> bool:
        return self.missing

    def numbers(self, row: str) -> list[Expression]:
        return [scaled(self.any_value(row), self.scale, self.family in WHOLE)]

    def any_value(self, row: str) -> Expression:
        return number(self.column, self.family, row)

    def unknown_value(self, row: str) -> Expression | None:
        if self.family in TEXT_NUMBERS or self.family.startswith(RECORD):
            return unread_text(self.column, self.family, row)
        return None

    def outline(self) -> Number:
        return replace(self, scale=UNKNOWN)

    def raw_numbers(self, row: str) -> list[Expression]:
        if self.family == "real":
            # A NaN may stay: it stands for NULL in a trainer.
            return [Expression(f"{column_name(self.column, row)}::{DOUBLE}")]
        return [self.any_value(row)]

    @property
    def scale_constants(self) -> list[ScaleConstants]:
        return [scale_constants(self.scale, self.family in WHOLE)]

    def drift_value(self, part: str) -> Expression:
        return self.any_value("t")

    def over_column(self, column: RawColumn) -> Feature | None:
        family = family_over(self.family, column.family)
        return None if family is None else replace(self, family=family)

    @property
    def expected_values(self) -> str:
        return "a number"

    def record_type(self, source_type: str | None) -> str:
        if source_type in EXACT_TYPES:
            return str(source_type)
        return RECORD_TYPES.get(self.family, "numeric")

    def over_record(self, record_type: str) -> Feature:
        if self.family in TEXT_NUMBERS:
            # A number of JSON is one whatever the format is.
            return replace(self, family=f"{RECORD}{self.family}")
        if record_type in ("numeric", MONEY):
            return replace(self, family=record_type)
        return self

    @property
    def description(self) -> str:
        return f"number{MISSING_NOTES[self.missing]}"

    @property
    def explanation(self) -> str:
        if self.family in TEXT_NUMBERS:
            return f"{describe_format(self.family)}; {ROBUST_SCALE}"
        return ROBUST_SCALE
