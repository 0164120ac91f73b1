"""Columns that are not an input."""

from __future__ import annotations

from typing import ClassVar

from cerebro_plpy.preprocessing.kinds.feature import Feature
from cerebro_plpy.preprocessing.values.checks import Json, check_column, check_text
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.records import dataclass

ALL_NULL = "it is NULL in all rows"
ONE_VALUE = "it has one value only"
"""Reasons of columns from which nothing can be learned, whatever they are taken for."""


@dataclass(frozen=True)
class LeftOut(Feature):
    """A column that is not an input, with the reason."""

    kind: ClassVar[str] = "left out"
    is_input: ClassVar[bool] = False

    reason: str

    @classmethod
    def from_json(cls, value: Json) -> LeftOut:
        entry = cls.check_fields(value)
        return cls(check_column(entry["column"]), check_text(entry["reason"], "reason"))

    def over_column(self, column: RawColumn) -> Feature:
        return self

    @property
    def description(self) -> str:
        return "left out"

    @property
    def explanation(self) -> str:
        return self.reason

    @property
    def shown_constants(self) -> Json:
        return {}
