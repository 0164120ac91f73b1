"""Columns of PNG and JPEG files."""

from __future__ import annotations

from typing import ClassVar

from cerebro_plpy.configs.templates.layers.model_io import IMAGE, Wide
from cerebro_plpy.preprocessing.kinds.feature import MISSING_NOTES, Feature, NetworkInput
from cerebro_plpy.preprocessing.kinds.optional_input import OptionalInput
from cerebro_plpy.preprocessing.values import thumbnails
from cerebro_plpy.preprocessing.values.array_layout import describe_shape
from cerebro_plpy.preprocessing.values.checks import (
    Json,
    check_column,
    check_flag,
    check_whole,
    check_whole_choice,
    wrong,
)
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import DOUBLE, Expression
from cerebro_plpy.preprocessing.values.families import BYTES
from cerebro_plpy.records import dataclass

SIDES = (8, 16, 24, 32, 48, 64)
"""Pixels that a thumbnail may have in height and in width."""
CHANNELS = (1, 3)
"""Grey, or colors."""
MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class ImageFile(OptionalInput):
    """A column of PNG or JPEG files, of which a trainer makes thumbnails of one shape."""

    kind: ClassVar[str] = IMAGE

    shape: tuple[int, int, int]  # height, width, channels
    bytes: int  # nearly all training rows have files of at most this size
    missing: bool

    @classmethod
    def is_stored_as(cls, value: Json) -> bool:
        return "family" not in value  # arrays of pixels have one

    @classmethod
    def from_json(cls, value: Json) -> ImageFile:
        entry = cls.check_fields(value)
        shape = entry["shape"]
        if not isinstance(shape, (list, tuple)) or len(shape) != 3:
            raise wrong("shape", shape, "a list of 3 sizes")
        height, width, channels = (
            check_whole_choice(size, "shape", choices)
            for size, choices in zip(shape, (SIDES, SIDES, CHANNELS))
        )
        size = check_whole(entry["bytes"], "bytes", MOST_BYTES)
        missing = check_flag(entry["missing"])
        return cls(check_column(entry["column"]), (height, width, channels), size, missing)

    @property
    def shape_of_input(self) -> Wide:
        return Wide(self.kind, self.shape)

    @property
    def file_bytes(self) -> int:
        return self.bytes

    def presence(self, row: str) -> Expression:
        return Expression(f"{thumbnails.file_size(self.column, row)} > 0")

    def value(self, row: str) -> Expression:
        header = thumbnails.header(self.column, self.shape)
        return Expression(thumbnails.sent_file(self.column, row), (header,))

    def network_input(self, name: str, row: str) -> NetworkInput:
        return NetworkInput(name, thumbnails.KIND, self.value(row))

    def extent(self, row: str) -> Expression:
        return Expression(f"nullif({thumbnails.file_size(self.column, row)}, 0)::{DOUBLE}")

    def over_column(self, column: RawColumn) -> Feature | None:
        return self if column.family == BYTES else None

    @property
    def expected_values(self) -> str:
        return "a PNG or JPEG image, a bytea"

    def record_type(self, source_type: str | None) -> str:
        return BYTES

    @property
    def description(self) -> str:
        shape = describe_shape(self.shape)
        return f"image of {shape}, made of each file{MISSING_NOTES[self.missing]}"

    @property
    def explanation(self) -> str:
        return "it holds the usual size of the images of a sample, or has the largest one"
