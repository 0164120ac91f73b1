"""Columns of arrays that a network takes as they are."""

from __future__ import annotations

import re
from math import prod
from typing import ClassVar

from cerebro_plpy.configs.templates.layers.model_io import Wide
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.preprocessing.kinds.feature import Feature, NetworkInput, WideFeature
from cerebro_plpy.preprocessing.values.array_layout import Shape, describe_shape
from cerebro_plpy.preprocessing.values.checks import (
    Json,
    check_column,
    check_flag,
    check_whole,
    is_finite,
    wrong,
)
from cerebro_plpy.preprocessing.values.column_values import column_name
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import DOUBLE, Expression
from cerebro_plpy.preprocessing.values.families import NUMBERS
from cerebro_plpy.records import dataclass, replace

MOST_DIMENSIONS = 6
MOST_ELEMENTS = 1 << 24
LARGEST_DIVISOR = 1e30
ARRAY_TYPES = re.compile(
    r"(smallint|integer|bigint|real|double precision|numeric(\([-0-9,]+\))?)\[\]"
)


@dataclass(frozen=True)
class PlainArray(WideFeature):
    """A column of arrays of one shape that a network takes as they are, divided by a number.

    If it is `single`, the column has numbers, and each is an array of one element.
    """

    kind: ClassVar[str] = "array"
    type_fields: ClassVar[tuple[str, ...]] = ("single",)

    shape: Shape
    divisor: float
    single: bool

    @classmethod
    def from_json(cls, value: Json) -> PlainArray:
        entry = cls.check_fields(value)
        sizes = entry["shape"]
        if not isinstance(sizes, (list, tuple)) or not 1 <= len(sizes) <= MOST_DIMENSIONS:
            raise wrong("shape", sizes, f"a list of 1 to {MOST_DIMENSIONS} numbers")
        shape = tuple(check_whole(size, "shape", MOST_ELEMENTS) for size in sizes)
        single = check_flag(entry["single"], "single")
        most = 1 if single else MOST_ELEMENTS
        if prod(shape) > most:
            raise wrong("shape", sizes, f"at most {count_nouns(most, 'element')}")
        divisor = entry["divisor"]
        if not is_finite(divisor) or not 0 < divisor <= LARGEST_DIVISOR:
            raise wrong("divisor", divisor, f"a number above 0, at most {LARGEST_DIVISOR:g}")
        return cls(check_column(entry["column"]), shape, float(divisor), single)

    @property
    def shape_of_input(self) -> Wide:
        return Wide(self.kind, self.shape)

    def value(self, row: str) -> Expression:
        name = column_name(self.column, row)
        array = f"ARRAY[{name}]" if self.single else name
        return Expression(f"coalesce({array}::real[], ARRAY[NULL]::real[])")

    def network_input(self, name: str, row: str) -> NetworkInput:
        division = {"column": self.column, "divide": self.divisor}
        return NetworkInput(name, self.shape_of_input.dtype, self.value(row), division)

    def extent(self, row: str) -> Expression:
        return Expression(f"pg_catalog.cardinality({self.value(row).text})::{DOUBLE}")

    def over_column(self, column: RawColumn) -> Feature | None:
        if column.family in NUMBERS and prod(self.shape) == 1:
            return replace(self, single=True)
        if ARRAY_TYPES.fullmatch(column.type):
            return replace(self, single=False)
        return None

    @property
    def expected_values(self) -> str:
        return f"an array of {describe_shape(self.shape)} numbers"

    @property
    def blank_value(self) -> object:
        return 0 if self.single else _fill_with_zeros(self.shape)

    def record_type(self, source_type: str | None) -> str:
        return "real" if self.single else "real[]"

    @property
    def description(self) -> str:
        return self.expected_values

    @property
    def explanation(self) -> str:
        return "as it is"


def _fill_with_zeros(shape: Shape) -> object:
    """Return nested lists of a shape.

    >>> _fill_with_zeros((2, 3))
    [[0, 0, 0], [0, 0, 0]]
    """
    if not shape:
        return 0
    return [_fill_with_zeros(shape[1:])] * shape[0]
