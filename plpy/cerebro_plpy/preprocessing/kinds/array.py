"""Columns of arrays that are an input of their own: the base of long vectors, series and images."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar, TypeVar

from cerebro_plpy.configs.templates.layers.model_io import Wide
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.preprocessing.kinds.feature import LENGTH, MISSING_NOTES, Feature, NetworkInput
from cerebro_plpy.preprocessing.kinds.number_array import ARRAY_PARTS, NumberArray
from cerebro_plpy.preprocessing.kinds.optional_input import OptionalInput
from cerebro_plpy.preprocessing.values import array_layout
from cerebro_plpy.preprocessing.values.array_layout import Shape
from cerebro_plpy.preprocessing.values.checks import (
    Json,
    check_choice,
    check_column,
    check_flag,
    check_whole,
    wrong,
)
from cerebro_plpy.preprocessing.values.column_values import elements, number_of
from cerebro_plpy.preprocessing.values.expression import DOUBLE, Expression
from cerebro_plpy.preprocessing.values.families import ARRAYS, WHOLE
from cerebro_plpy.preprocessing.values.scale import (
    Scale,
    read_scales,
    scale_constants,
    unknown_scales,
)
from cerebro_plpy.records import dataclass, replace

MOST_ELEMENTS = 1 << 16
NOT_A_NUMBER = f"'NaN'::{DOUBLE}"
ArrayType = TypeVar("ArrayType", bound="Array")


@dataclass(frozen=True)
class Array(NumberArray, OptionalInput):
    """A column of arrays of one shape: each is cut, or filled with zeros, in each dimension.

    There is one scale for all elements, or one for each channel, which is the last dimension.
    """

    shape: Shape
    scales: tuple[Scale, ...]
    missing: bool

    dimensions: ClassVar[int]
    has_channels: ClassVar[bool] = False

    @classmethod
    def from_json(cls: type[ArrayType], value: Json) -> ArrayType:
        entry = cls.check_fields(value)
        family = check_choice(entry["family"], "family", tuple(ARRAYS))
        shape = entry["shape"]
        if not isinstance(shape, (list, tuple)) or len(shape) != cls.dimensions:
            raise wrong("shape", shape, f"a list of {count_nouns(cls.dimensions, 'size')}")
        sizes = tuple(check_whole(size, "a size", MOST_ELEMENTS) for size in shape)
        if prod(sizes) > MOST_ELEMENTS:
            raise wrong("shape", shape, f"one of at most {MOST_ELEMENTS} elements")
        scales = read_scales(entry["scales"], MOST_ELEMENTS)
        if cls.has_channels and len(scales) != sizes[-1]:
            raise wrong("scales", scales, "one for each channel")
        if not cls.has_channels and len(scales) != 1:
            raise wrong("scales", scales, "one")
        missing = check_flag(entry["missing"])
        return cls(check_column(entry["column"]), family, sizes, scales, missing)

    @property
    def shape_of_input(self) -> Wide:
        return Wide(self.kind, self.shape)

    def presence(self, row: str) -> Expression:
        value = number_of("e.x", self.element_family)
        array = elements(self.column, self.family, row)
        numbers = f"SELECT FROM pg_catalog.unnest({array}) AS e (x) WHERE {value.text} IS NOT NULL"
        return Expression(f"EXISTS ({numbers})", value.values)

    def value(self, row: str) -> Expression:
        value = number_of(array_layout.ELEMENT, self.element_family)
        has_channels = len(self.scales) > 1
        columns: list[Any] = [list(column) for column in zip(*self._constants)]
        if not has_channels:
            columns = [column[0] for column in columns]
        center, low, high, width, padding = columns

        def scaled(channel: str) -> str:
            constant = f"%s::{DOUBLE}"
            if has_channels:
                constant = f"(%s::{DOUBLE}[])[{channel}]"
            bounded = f"least(greatest(coalesce({value.text}, {constant}), {constant}), {constant})"
            return f"(({bounded} - {constant} + {constant} - {constant}) / {constant})::real"

        layout = self._lay_out(scaled, "'0'::real", row)
        values = (*value.values, center, low, high, center, padding, padding, width)
        return Expression(layout.text, values * layout.elements)

    def _lay_out(self, element: Any, filling: str, row: str) -> array_layout.Layout:
        array = elements(self.column, self.family, row)
        return array_layout.lay_out(array, self.shape, element, filling)

    @property
    def _constants(self) -> list[tuple[float, ...]]:
        """For each scale: center, low bound, high bound, width, padding."""
        constants = (scale_constants(scale, self.family in WHOLE) for scale in self.scales)
        return [(scale.center, *scale.bounds, scale.width, padding) for scale, padding in constants]

    def extent(self, row: str) -> Expression:
        count = f"pg_catalog.cardinality({elements(self.column, self.family, row)})"
        return Expression(f"nullif({count}, 0)::{DOUBLE}")

    def outline(self) -> Feature:
        return replace(self, scales=unknown_scales(self.scales))

    def raw_network_input(self, name: str, row: str) -> NetworkInput:
        value = number_of(array_layout.ELEMENT, self.element_family)
        number = f"coalesce({value.text}, {NOT_A_NUMBER})"
        layout = self._lay_out(lambda channel: number, NOT_A_NUMBER, row)
        return NetworkInput(
            name, "float64", Expression(layout.text, value.values * layout.elements)
        )

    def input_constants(self, name: str) -> Json:
        scales = [
            [low, high, center, width, padding]
            for center, low, high, width, padding in self._constants
        ]
        return {"kind": "float64", "scales": scales}

    @property
    def drift_parts(self) -> Sequence[str]:
        return (*ARRAY_PARTS, LENGTH)

    def drift_value(self, part: str) -> Expression:
        if part == LENGTH:
            return self.extent("t")
        return super().drift_value(part)

    @property
    def description(self) -> str:
        shape = array_layout.describe_shape(self.shape)
        return f"{self.kind} of {shape}{MISSING_NOTES[self.missing]}"
