"""Columns of short arrays, each element of which is a number of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.preprocessing.kinds.feature import MISSING_NOTES
from cerebro_plpy.preprocessing.kinds.number_array import NumberArray
from cerebro_plpy.preprocessing.values.checks import (
    Json,
    check_choice,
    check_column,
    check_flag,
)
from cerebro_plpy.preprocessing.values.column_values import element
from cerebro_plpy.preprocessing.values.expression import Expression, combined_values
from cerebro_plpy.preprocessing.values.families import ARRAYS, WHOLE
from cerebro_plpy.preprocessing.values.scale import (
    Scale,
    ScaleConstants,
    read_scales,
    scale_constants,
    scaled,
    unknown_scales,
)
from cerebro_plpy.records import dataclass, replace

MOST_NUMBERS = 64


@dataclass(frozen=True)
class Vector(NumberArray):
    """A column of short one-dimensional arrays: a scaled number for each place.

    Places begin at 1, whatever the lower bound of an array is. Further elements are not used.
    """

    kind: ClassVar[str] = "vector"

    scales: tuple[Scale, ...]
    missing: bool

    @classmethod
    def from_json(cls, value: Json) -> Vector:
        entry = cls.check_fields(value)
        return cls(
            family=check_choice(entry["family"], "family", tuple(ARRAYS)),
            column=check_column(entry["column"]),
            scales=read_scales(entry["scales"], MOST_NUMBERS),
            missing=check_flag(entry["missing"]),
        )

    @property
    def places(self) -> range:
        """The places of the elements."""
        return range(1, len(self.scales) + 1)

    @property
    def number_parts(self) -> Sequence[str]:
        return tuple(map(str, self.places))

    @property
    def number_pieces(self) -> Sequence[tuple[float, ...]]:
        return tuple(scale.pieces for scale in self.scales)

    @property
    def has_missing_flag(self) -> bool:
        return self.missing

    def numbers(self, row: str) -> list[Expression]:
        return [
            scaled(value, scale, self.family in WHOLE)
            for value, scale in zip(self.raw_numbers(row), self.scales)
        ]

    def any_value(self, row: str) -> Expression:
        values = self.raw_numbers(row)
        texts = ", ".join(value.text for value in values)
        return Expression(f"coalesce({texts})", combined_values(values))

    def outline(self) -> Vector:
        return replace(self, scales=unknown_scales(self.scales))

    def raw_numbers(self, row: str) -> list[Expression]:
        return [element(self.column, self.family, place, row) for place in self.places]

    @property
    def scale_constants(self) -> list[ScaleConstants]:
        return [scale_constants(scale, self.family in WHOLE) for scale in self.scales]

    @property
    def deciding_numbers(self) -> int:
        return len(self.scales)

    @property
    def description(self) -> str:
        return f"vector of {count_nouns(len(self.scales), 'number')}{MISSING_NOTES[self.missing]}"
