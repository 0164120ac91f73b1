"""Columns that are an input of their own, and a number that shows whether the value is absent."""

from __future__ import annotations

from collections.abc import Sequence

from cerebro_plpy.preprocessing.kinds.feature import WideFeature
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.preprocessing.values.scale import UNKNOWN, ScaleConstants

ABSENT = "absent"
"""The part that is 1 if an array has no element that is a number, or a file no bytes; else 0."""


class OptionalInput(WideFeature):
    """A column that is an input of its own; if values may be absent, a number shows it."""

    missing: bool  # values may be absent; a field of every kind

    def presence(self, row: str) -> Expression:
        """Return the condition that the value is not absent."""
        raise NotImplementedError

    @property
    def number_parts(self) -> Sequence[str]:
        return (ABSENT,) * self.missing

    def numbers(self, row: str) -> list[Expression]:
        if not self.missing:
            return []
        is_present = self.presence(row)
        text = f"CASE WHEN {is_present.text} THEN '0'::real ELSE '1'::real END"
        return [Expression(text, is_present.values)]

    def raw_numbers(self, row: str) -> list[Expression]:
        return self.numbers(row)

    @property
    def scale_constants(self) -> list[ScaleConstants]:
        return [ScaleConstants(UNKNOWN, 0.0)] * self.missing
