"""Columns that are not an input."""

from __future__ import annotations

from typing import Any, ClassVar

from cerebro_plpy.preprocessing.kinds.feature import Feature
from cerebro_plpy.preprocessing.values.checks import check_column, check_record, check_text
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.records import dataclass


@dataclass(frozen=True)
class LeftOut(Feature):
    """A column that is not an input, with the reason."""

    kind: ClassVar[str] = "left out"
    is_input: ClassVar[bool] = False

    reason: str

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> LeftOut:
        entry = check_record(value, "feature", "kind", "column", "reason")
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
    def shown_constants(self) -> dict[str, Any]:
        return {}
