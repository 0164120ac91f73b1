"""The features of columns of files, inferred from the headers of a sample of the files.

A header contains the format and the size of an image; no pixel is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median_high
from typing import NamedTuple

from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.preprocessing.kinds.feature import Feature
from cerebro_plpy.preprocessing.kinds.image_file import CHANNELS, MOST_BYTES, SIDES, ImageFile
from cerebro_plpy.preprocessing.kinds.left_out import LeftOut
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.values import thumbnails
from cerebro_plpy.preprocessing.values.columns import RawColumn

SAMPLED_FILES = 500
HEADER_BYTES = 1 << 18
"""Bytes that are read from the beginning of a file."""
MOST_SEGMENTS = 100
"""Segments of a JPEG that are read until one declares its size."""
SIZE_SEGMENT = "^ffc[0-35-79-bd-f]"
"""The first hexadecimal digits of such a segment."""
MIN_IMAGE_SHARE = 0.5
"""The least share of files that are images, in a column of images."""
LARGER_SHARE = 0.1
"""The share of files that may be larger than the recorded size."""


class FileCounts(NamedTuple):
    """The number of files of one format and size; the size is 0 if it is unknown."""

    height: int
    width: int
    channels: int
    is_image: bool
    rows: int
    largest: int  # in bytes


def infer_images(
    reader: Reader, source: Source, columns: Sequence[RawColumn], types: Mapping[str, str]
) -> dict[str, Feature]:
    """Return the features of columns of bytes.

    Args:
        types: the kinds of columns that a call names.
    """
    return {
        column.name: _infer_image(reader, source, column, column.name in types)
        for column in columns
    }


def _infer_image(reader: Reader, source: Source, column: RawColumn, is_named: bool) -> Feature:
    """Return the feature of a column; a call may name it as one of images."""
    if column.names_row and not is_named:
        return LeftOut(column.name, "it is of the primary key, and names a row")
    statement = sql(
        "images.present",
        size=thumbnails.file_size(column.name, "t"),
        source=source.table,
        side=source.side.text,
    )
    ((rows, present),) = reader.run(statement, source.side.values)
    if not present:
        return LeftOut(column.name, "it is NULL or empty in all rows")
    sample = source._replace(sample=None).choose_rows(rows, SAMPLED_FILES)
    statement = sql(
        "images.files",
        file=thumbnails.file(column.name, "t"),
        source=sample.table,
        side=sample.side.text,
        most=str(HEADER_BYTES),
        segments=str(MOST_SEGMENTS),
        declaring=SIZE_SEGMENT,
    )
    files = [FileCounts(*cells) for cells in reader.run(statement, sample.side.values)]
    images = [counts for counts in files if counts.is_image]
    if not is_named and (not files or _count(images) < MIN_IMAGE_SHARE * _count(files)):
        return LeftOut(column.name, "its values are no PNG or JPEG images")
    return ImageFile(column.name, choose_shape(images), choose_size(files), present < rows)


def choose_shape(images: Sequence[FileCounts]) -> tuple[int, int, int]:
    """Return the shape of thumbnails: the medians of heights and widths, scaled down to fit.

    >>> choose_shape([FileCounts(28, 20, 1, True, 9, 300), FileCounts(90, 90, 1, True, 2, 900)])
    (32, 24, 1)
    >>> choose_shape([FileCounts(n, 40, 1, True, 1, 1) for n in range(10, 30)])
    (24, 48, 1)
    >>> choose_shape([FileCounts(480, 640, 3, True, 9, 1)])
    (48, 64, 3)
    >>> choose_shape([FileCounts(9, 1000, 1, True, 9, 1)]), choose_shape([])
    ((8, 64, 1), (64, 64, 3))
    """
    images = [image for image in images if min(image.height, image.width) > 0]
    if not images:
        return SIDES[-1], SIDES[-1], CHANNELS[-1]
    height = _median((image.height, image.rows) for image in images)
    width = _median((image.width, image.rows) for image in images)
    longest = max(height, width, SIDES[-1])
    channels = max(image.channels for image in images)
    return _choose_side(height, longest), _choose_side(width, longest), channels


def _choose_side(length: int, longest: int) -> int:
    """Return the smallest side of a thumbnail for a length; the largest is for `longest`."""
    return next(side for side in SIDES if side * longest >= length * SIDES[-1])


def _median(lengths: Iterable[tuple[int, int]]) -> int:
    """Return the median of lengths; a pair has a length and how often it occurs."""
    return median_high([length for length, rows in lengths for _ in range(rows)])


def choose_size(files: Sequence[FileCounts]) -> int:
    """Return a power of two that few files exceed, in bytes.

    >>> few = FileCounts(9, 9, 1, True, 1, 5000)
    >>> choose_size([FileCounts(8, 8, 1, True, 99, 300), few]), choose_size([])
    (512, 1)
    """
    larger_rows = 0
    for counts in sorted(files, key=lambda counts: -counts.largest):
        larger_rows += counts.rows
        if larger_rows > LARGER_SHARE * _count(files):
            return min(1 << (counts.largest - 1).bit_length(), MOST_BYTES)
    return 1


def _count(files: Iterable[FileCounts]) -> int:
    return sum(counts.rows for counts in files)
