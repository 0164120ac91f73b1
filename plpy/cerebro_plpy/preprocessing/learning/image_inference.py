"""What becomes of columns of files, by what training rows say of them: whether they are images, and
of what sizes.

That stands at the beginning of each file of a sample; no pixel is looked at.
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
from cerebro_plpy.preprocessing.rows.statistics import Source
from cerebro_plpy.preprocessing.values import thumbnails
from cerebro_plpy.preprocessing.values.columns import RawColumn

SAMPLED = 500
MOST_HEAD, MOST_SEGMENTS = 1 << 18, 100
"""Of a file: bytes from its beginning, and segments before the one that declares its size."""
DECLARING = "^ffc[0-35-79-bd-f]"
"""How such a segment of a JPEG begins, in hexadecimal digits."""
HALF = 0.5
"""Of the files are images, if a column has images."""


class Files(NamedTuple):
    """In how many rows files have one height, width and number of channels, which are 0 where they
    are unknown.

    Whether they are images, and how many bytes the longest of them has.
    """

    height: int
    width: int
    channels: int
    image: bool
    rows: int
    bytes: int


def infer_images(
    reader: Reader, source: Source, columns: Sequence[RawColumn], types: Mapping[str, str]
) -> dict[str, Feature]:
    """The feature of each of these columns, all of which have bytes; `types` are the kinds that the
    caller wants.
    """
    return {
        column.name: _learned(reader, source, column, column.name in types) for column in columns
    }


def _learned(reader: Reader, source: Source, column: RawColumn, wanted: bool) -> Feature:
    if column.key and not wanted:
        return LeftOut(column.name, "it is of the primary key, and names a row")
    file = thumbnails.file(column.name, "t")
    statement = sql(
        "images.present",
        size=thumbnails.size(column.name, "t"),
        source=source.table,
        side=source.side.text,
    )
    ((rows, present),) = reader.run(statement, source.side.values)
    if not present:
        return LeftOut(column.name, "it is NULL or empty in all rows")
    few = source._replace(sample=None).few(rows, SAMPLED)
    statement = sql(
        "images.files",
        file=file,
        source=few.table,
        side=few.side.text,
        most=str(MOST_HEAD),
        segments=str(MOST_SEGMENTS),
        declaring=DECLARING,
    )
    found = [Files(*each) for each in reader.run(statement, few.side.values)]
    images = [each for each in found if each.image]
    if not wanted and (not found or _files(images) < HALF * _files(found)):
        return LeftOut(column.name, "its values are no PNG or JPEG images")
    return ImageFile(column.name, shape(images), size(found), present < rows)


def shape(images: Sequence[Files]) -> tuple[int, int, int]:
    """That of the thumbnails of images: it holds the medians of their heights and widths, made
    smaller where need be.

    >>> shape([Files(28, 20, 1, True, 9, 300), Files(90, 90, 1, True, 2, 900)])
    (32, 24, 1)
    >>> shape([Files(n, 40, 1, True, 1, 1) for n in range(10, 30)])
    (24, 48, 1)
    >>> shape([Files(480, 640, 3, True, 9, 1)]), shape([Files(9, 1000, 1, True, 9, 1)]), shape([])
    ((48, 64, 3), (8, 64, 1), (64, 64, 3))
    """
    sized = [each for each in images if min(each.height, each.width) > 0]
    if not sized:
        return SIDES[-1], SIDES[-1], CHANNELS[-1]
    usual = [
        _median((getattr(each, name), each.rows) for each in sized) for name in ("height", "width")
    ]
    longest = max(*usual, SIDES[-1])
    height, width = (
        next(side for side in SIDES if side * longest >= length * SIDES[-1]) for length in usual
    )
    return height, width, max(each.channels for each in sized)


def _median(lengths: Iterable[tuple[int, int]]) -> int:
    """Of lengths, each with how often it is there."""
    return median_high([length for length, rows in lengths for _ in range(rows)])


def size(files: Sequence[Files]) -> int:
    """A power of two that few files exceed, in bytes.

    >>> size([Files(8, 8, 1, True, 99, 300), Files(9, 9, 1, True, 1, 5000)]), size([])
    (512, 1)
    """
    rest = 0.1 * _files(files)
    for each in sorted(files, key=lambda each: -each.bytes):
        rest -= each.rows
        if rest < 0:
            return min(1 << (each.bytes - 1).bit_length(), MOST_BYTES)
    return 1


def _files(some: Iterable[Files]) -> int:
    return sum(each.rows for each in some)
