"""Columns of arrays of pixels."""

from __future__ import annotations

from typing import ClassVar

from cerebro_plpy.configs.templates.layers.model_io import IMAGE
from cerebro_plpy.preprocessing.kinds.array import Array
from cerebro_plpy.preprocessing.values.checks import Json
from cerebro_plpy.records import dataclass


@dataclass(frozen=True)
class Image(Array):
    """Arrays of height, width and channels."""

    kind: ClassVar[str] = IMAGE
    dimensions: ClassVar[int] = 3

    @classmethod
    def is_stored_as(cls, value: Json) -> bool:
        return "family" in value  # files of images have none
