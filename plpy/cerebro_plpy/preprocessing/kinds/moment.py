"""Columns of points and spans of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.preprocessing.kinds.feature import MISSING_NOTES, ROBUST_SCALE, Feature
from cerebro_plpy.preprocessing.values.checks import (
    Json,
    check_choice,
    check_column,
    check_flag,
    wrong,
)
from cerebro_plpy.preprocessing.values.column_values import date_part, unread_text
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.preprocessing.values.families import (
    MOMENTS,
    TEXT,
    TEXT_POINTS,
    family_over,
    interchangeable,
)
from cerebro_plpy.preprocessing.values.scale import (
    UNKNOWN,
    Scale,
    ScaleConstants,
    scale_constants,
    scaled,
    scaled_within,
)
from cerebro_plpy.preprocessing.values.text_formats import describe_format
from cerebro_plpy.preprocessing.values.value_texts import zone_cast
from cerebro_plpy.records import dataclass, replace

SECONDS = "epoch"
MICROSECONDS = "microseconds"
LARGEST_PARTS = {"month": 12, "day": 31, "dow": 6, "hour": 23}
"""Parts that are whole numbers from 0 to these, or NULL."""


@dataclass(frozen=True)
class Moment(Feature):
    """A column of points or spans of time: a scaled number for each of some parts."""

    kind: ClassVar[str] = "moment"
    is_time: ClassVar[bool] = True

    family: str
    parts: Mapping[str, Scale]
    missing: bool

    @classmethod
    def from_json(cls, value: Json) -> Moment:
        entry = cls.check_fields(value)
        family = check_choice(entry["family"], "family", tuple(MOMENTS))
        parts = entry["parts"]
        if not isinstance(parts, dict) or not parts or not set(parts) <= set(MOMENTS[family]):
            raise wrong("parts", parts, f"an object with some of {', '.join(MOMENTS[family])}")
        # jsonb does not keep the order of keys.
        scales = {part: Scale.from_json(parts[part]) for part in MOMENTS[family] if part in parts}
        return cls(check_column(entry["column"]), family, scales, check_flag(entry["missing"]))

    @property
    def number_parts(self) -> Sequence[str]:
        return tuple(self.parts)

    @property
    def number_pieces(self) -> Sequence[tuple[float, ...]]:
        return tuple(scale.pieces for scale in self.parts.values())

    @property
    def has_missing_flag(self) -> bool:
        return self.missing

    def numbers(self, row: str) -> list[Expression]:
        return [self._scaled(part, scale, row) for part, scale in self.parts.items()]

    def _scaled(self, part: str, scale: Scale, row: str) -> Expression:
        value = date_part(self.column, self.family, part, row)
        if _is_within(part, scale):
            return scaled_within(value, scale)
        return scaled(value, scale, False)

    def any_value(self, row: str) -> Expression:
        return date_part(self.column, self.family, SECONDS, row)

    def unknown_value(self, row: str) -> Expression | None:
        if self.family in TEXT_POINTS:
            return unread_text(self.column, self.family, row)
        return None

    def outline(self) -> Moment:
        return replace(self, parts=dict.fromkeys(self.parts, UNKNOWN))

    def raw_numbers(self, row: str) -> list[Expression]:
        return [date_part(self.column, self.family, part, row) for part in self._raw_moment]

    @property
    def scale_constants(self) -> list[ScaleConstants]:
        return [
            scale_constants(scale, _is_within(part, scale)) for part, scale in self.parts.items()
        ]

    @property
    def raw_parts(self) -> list[Sequence[str]]:
        return [self.number_parts, *[()] * (len(self._raw_moment) - 1)]

    @property
    def _raw_moment(self) -> tuple[str, ...]:
        """The parts that a trainer computes all others from.

        Seconds have 53 bits, which a point in time in the far future does not fit into; so families
        with hours send microseconds of the minute, too.
        """
        if "hour" in MOMENTS[self.family]:
            return (SECONDS, MICROSECONDS)
        return (SECONDS,)

    @property
    def drift_parts(self) -> Sequence[str]:
        return self.number_parts

    def drift_value(self, part: str) -> Expression:
        return date_part(self.column, self.family, part)

    def over_column(self, column: RawColumn) -> Feature | None:
        family = family_over(self.family, column.family)
        return None if family is None else replace(self, family=family)

    @property
    def expected_values(self) -> str:
        return f"a {' or '.join(interchangeable(self.family))}"

    def suggest_cast(self, column: RawColumn) -> str | None:
        return zone_cast(quote_identifier(column.name), column.family, self.family)

    def record_type(self, source_type: str | None) -> str:
        return TEXT if self.family in TEXT_POINTS else self.family

    @property
    def description(self) -> str:
        return f"moment: {', '.join(self.parts)}{MISSING_NOTES[self.missing]}"

    @property
    def explanation(self) -> str:
        if self.family in TEXT_POINTS:
            return f"{describe_format(self.family)}; {ROBUST_SCALE}"
        return ROBUST_SCALE


def _is_within(part: str, scale: Scale) -> bool:
    """Return whether all values of a part lie within the bounds of a scale."""
    largest = LARGEST_PARTS.get(part)
    low, high = scale.bounds
    return largest is not None and low <= 0 and largest <= high and scale.is_coarse
