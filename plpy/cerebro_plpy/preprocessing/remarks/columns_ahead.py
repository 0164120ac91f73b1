"""Remarks about columns that run ahead, of which most last rows have values beyond all others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from cerebro_plpy.preprocessing.kinds.feature import Feature
from cerebro_plpy.preprocessing.kinds.moment import Moment
from cerebro_plpy.preprocessing.kinds.number import Number
from cerebro_plpy.preprocessing.remarks.column_remarks import ColumnRemark, types_argument
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.families import MOMENTS

AHEAD = "most rows held back have values beyond all that are trained on"


def remark_recurring_parts(
    names: Collection[str], features: Mapping[str, Feature]
) -> Iterator[ColumnRemark]:
    """Yield the remarks about columns that run ahead and are inputs by what recurs."""
    for name in features:
        if name in names and features[name].is_input:
            parts = ", ".join(features[name].number_parts)
            advice = types_argument(name, Moment.kind)
            yield ColumnRemark(
                name, f"only its {parts} are learned from: {AHEAD}. {advice} takes all parts"
            )


def describe_column_ahead(column: RawColumn) -> str:
    """Return why a column that runs ahead is left out, and how to learn from it."""
    kind = Moment.kind if column.family in MOMENTS else Number.kind
    return f"{AHEAD}; {types_argument(column.name, kind)} takes it as an input"
