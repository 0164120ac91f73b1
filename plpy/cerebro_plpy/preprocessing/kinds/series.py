"""Columns of arrays whose elements follow each other."""

from __future__ import annotations

from typing import ClassVar

from cerebro_plpy.configs.templates.layers.model_io import SERIES
from cerebro_plpy.preprocessing.kinds.array import Array
from cerebro_plpy.records import dataclass


@dataclass(frozen=True)
class Series(Array):
    """Arrays of steps: one number for each step, or several channels."""

    kind: ClassVar[str] = SERIES
    dimensions: ClassVar[int] = 2
    has_channels: ClassVar[bool] = True
