"""Columns of long arrays whose elements have nothing to do with each other."""

from __future__ import annotations

from typing import ClassVar

from cerebro_plpy.configs.templates.layers.model_io import LONG_VECTOR
from cerebro_plpy.preprocessing.kinds.array import Array
from cerebro_plpy.records import dataclass


@dataclass(frozen=True)
class LongVector(Array):
    """Arrays of any dimensions, whose elements are independent, in the order in which they lie."""

    kind: ClassVar[str] = LONG_VECTOR
    dimensions: ClassVar[int] = 1
