"""Columns of arrays of numbers, short or long: how they are read from tables and records."""

from __future__ import annotations

from collections.abc import Sequence

from cerebro_plpy.database.queries import sql
from cerebro_plpy.preprocessing.kinds.feature import Feature
from cerebro_plpy.preprocessing.values.column_values import elements, number_of
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.preprocessing.values.families import ARRAYS, array_type, family_of_array
from cerebro_plpy.records import dataclass, replace

ARRAY_PARTS = ("mean", "range")
"""Parts in a drift profile: of all elements, because one of many elements means little."""


@dataclass(frozen=True)
class NumberArray(Feature):
    """A column of arrays of numbers."""

    family: str  # of the arrays

    @property
    def element_family(self) -> str:
        """The family of an element."""
        return ARRAYS[self.family]

    @property
    def drift_parts(self) -> Sequence[str]:
        return ARRAY_PARTS

    def drift_value(self, part: str) -> Expression:
        value = number_of("e.x", self.element_family)
        array = elements(self.column, self.family)
        return Expression(f"({sql(f'drift.{part}', number=value.text, array=array)})", value.values)

    def over_column(self, column: RawColumn) -> Feature | None:
        return replace(self, family=column.family) if column.family in ARRAYS else None

    @property
    def expected_values(self) -> str:
        return "an array of numbers"

    def record_type(self, source_type: str | None) -> str:
        return array_type(self.family, source_type)

    def over_record(self, record_type: str) -> Feature:
        return replace(self, family=family_of_array(record_type, self.family))
