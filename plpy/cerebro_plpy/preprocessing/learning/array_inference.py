"""The features of columns of arrays of numbers, inferred from the sizes and elements of a sample.

An array is a vector, whose elements are independent, or a series, in which they follow each other,
or an image. The type does not distinguish these. If elements resemble the next ones over many rows,
their order has a meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isqrt, prod
from typing import Any, NamedTuple

from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.preprocessing.kinds.array import MOST_ELEMENTS, Array
from cerebro_plpy.preprocessing.kinds.feature import Feature
from cerebro_plpy.preprocessing.kinds.image import Image
from cerebro_plpy.preprocessing.kinds.left_out import LeftOut
from cerebro_plpy.preprocessing.kinds.long_vector import LongVector
from cerebro_plpy.preprocessing.kinds.series import Series
from cerebro_plpy.preprocessing.kinds.vector import MOST_NUMBERS, Vector
from cerebro_plpy.preprocessing.learning.type_inference import robust_scale
from cerebro_plpy.preprocessing.rows.column_batches import split_batches
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.rows.statistics import SHARES, Range, SampledNumbers
from cerebro_plpy.preprocessing.values import column_values
from cerebro_plpy.preprocessing.values.array_layout import Shape, describe_shape
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.families import ARRAYS
from cerebro_plpy.preprocessing.values.scale import Scale
from cerebro_plpy.records import replace

SAMPLED_ELEMENTS = 300_000
"""About how many elements a sample has, within the limits of its rows."""
FEWEST_ROWS = 200
MOST_ROWS = 50_000
COMPARED_ROWS = 2000
COMPARED_ELEMENTS = 200
"""Rows, and first elements of each, that are compared with the next element."""
FEWEST_STEPS = 8
"""A shorter array is not a series."""
MOST_STEPS = 1024
"""A longer series is cut."""
MOST_CHANNELS = 64
MOST_PIXELS = 128 * 128
PIECES = 8
"""Pieces of the range of each element of a vector."""
LEAST_RESEMBLANCE = 0.3
"""Least correlation of the elements of a series with the next ones."""
MIN_EQUAL_SHARE = 0.9
"""The least share of vectors with the most frequent length."""
MIN_USUAL_SHARE = 0.5
"""The least share of arrays that have a length, if it is the usual one."""
UNCUT_SHARE = 0.9
"""The share of arrays that are not cut if no length is usual."""


class Shapes(NamedTuple):
    """The sizes of the arrays of a sample."""

    counts: tuple[tuple[Shape, int], ...]  # sizes and rows, the most frequent first
    unknown: int  # arrays in which no element is a number

    @property
    def dimensions(self) -> int:
        """The usual number of dimensions."""
        return len(self.counts[0][0])

    @property
    def lengths(self) -> dict[int, int]:
        """The number of arrays of the usual dimensions, by their size in the first one."""
        rows_by_length: dict[int, int] = {}
        for sizes, rows in self.counts:
            if len(sizes) == self.dimensions:
                rows_by_length[sizes[0]] = rows_by_length.get(sizes[0], 0) + rows
        return rows_by_length

    @property
    def length(self) -> int:
        """The length of most arrays; if no length is usual, one that few arrays exceed.

        >>> Shapes((((3,), 6), ((9,), 4)), 0).length
        3
        >>> Shapes(tuple(((n,), 1) for n in range(1, 11)), 0).length
        9
        """
        lengths = self.lengths
        rows = sum(lengths.values())
        usual = max(lengths, key=lambda length: lengths[length])
        if lengths[usual] >= MIN_USUAL_SHARE * rows:
            return usual
        shorter_rows = 0
        for length in sorted(lengths):
            shorter_rows += lengths[length]
            if shorter_rows >= UNCUT_SHARE * rows:
                return length
        return max(lengths)

    @property
    def sizes(self) -> Shape:
        """The length, and the most frequent sizes in the other dimensions."""
        return (self.length, *self.counts[0][0][1:])

    @property
    def equal_share(self) -> float:
        """The share of arrays that have the most frequent length."""
        lengths = self.lengths.values()
        return max(lengths) / sum(lengths)


class ArraySample(NamedTuple):
    """A sample of a column of arrays."""

    reader: Reader
    source: Source
    rows: int  # of the source
    column: RawColumn
    size: int  # about how many rows are chosen

    @property
    def family(self) -> str:
        """The family of the column, which is one of arrays."""
        return self.column.family or ""

    def query(self, name: str, size: int, **texts: str) -> list[tuple[Any, ...]]:
        """Run a query of arrays.sql on about `size` rows."""
        sample = self.source.choose_rows(self.rows, size)
        number = column_values.number_of("e.x", ARRAYS[self.family])
        statement = sql(
            f"arrays.{name}",
            array=column_values.elements(self.column.name, self.family),
            number=number.text,
            source=sample.table,
            side=sample.side.text,
            **texts,
        )
        return self.reader.run(statement, (*number.values, *sample.side.values))


def infer_arrays(
    reader: Reader, source: Source, columns: Sequence[RawColumn], types: Mapping[str, str]
) -> dict[str, Feature]:
    """Return the features of columns of arrays.

    Args:
        types: the kinds of columns that a call names.
    """
    features: dict[str, Feature] = {}
    for batch in split_batches(columns):
        rows, counts = _count_elements(reader, source, batch)
        for column, (present, elements) in zip(batch, counts):
            if not present:
                features[column.name] = LeftOut(column.name, "it has no element in any row")
                continue
            size = min(MOST_ROWS, max(FEWEST_ROWS, int(SAMPLED_ELEMENTS / elements)))
            sample = ArraySample(reader, source, rows, column, size)
            features[column.name] = _infer_array(sample, present < rows, types.get(column.name))
    return features


def _count_elements(
    reader: Reader, source: Source, columns: Sequence[RawColumn]
) -> tuple[int, Iterable[tuple[int, float]]]:
    """Count the rows, and for each column the rows with an element; with the mean of elements."""
    arrays = [column_values.elements(column.name, column.family or "") for column in columns]
    aggregates = "".join(
        sql("arrays.counted", array=array, n=f"n{number}") for number, array in enumerate(arrays)
    )
    statement = sql(
        "arrays.present", aggregates=aggregates, source=source.table, side=source.side.text
    )
    ((rows, *counts),) = reader.run(statement, source.side.values)
    return rows, zip(counts[::2], counts[1::2])


def _infer_array(sample: ArraySample, missing: bool, kind: str | None) -> Feature:
    """Return the feature of a column; `kind` is the one that the call names."""
    column = sample.column
    if column.names_row and kind is None:
        return LeftOut(column.name, "it is of the primary key, and names a row")
    shapes = _read_shapes(sample)
    if not shapes.counts:
        return LeftOut(column.name, "it has no element in the rows that are looked at")
    missing = missing or shapes.unknown > 0
    if kind is None:
        kind = _infer_kind(sample, shapes)
    if kind == Vector.kind:
        return _make_vector(sample, shapes, missing)
    array_class: type[Array] = Series
    shape = _series_shape(shapes.sizes)
    if kind == Image.kind:
        array_class = Image
        shape = _image_shape(shapes.sizes)
    if shape is None:
        sizes = describe_shape(shapes.sizes)
        return LeftOut(column.name, f"no {kind} is made of arrays of the size {sizes}")
    return _make_wide(sample, array_class, shape, missing)


def _infer_kind(sample: ArraySample, shapes: Shapes) -> str:
    """Return the kind that the elements suggest."""
    if shapes.dimensions == Series.dimensions:
        return Series.kind
    if shapes.dimensions > 1:
        return Image.kind
    if shapes.length < FEWEST_STEPS:
        return Vector.kind
    if shapes.equal_share < MIN_EQUAL_SHARE or _resemble_neighbours(sample):
        return Series.kind
    return Vector.kind


def _resemble_neighbours(sample: ArraySample) -> bool:
    ((correlation,),) = sample.query("resemblance", COMPARED_ROWS, most=str(COMPARED_ELEMENTS))
    return correlation is not None and correlation >= LEAST_RESEMBLANCE


def _series_shape(sizes: Sequence[int]) -> Shape | None:
    """Return steps and channels of a series; None if arrays of these sizes are not one."""
    steps, channels = (*sizes, 1)[:2]
    if len(sizes) > Series.dimensions or channels > MOST_CHANNELS:
        return None
    return min(steps, MOST_STEPS), channels


def _image_shape(sizes: Sequence[int]) -> Shape | None:
    """Return the shape of an image; None if arrays of these sizes are not one.

    One-dimensional arrays have the pixels of a square.

    >>> _image_shape((64,)), _image_shape((28, 20)), _image_shape((4, 5, 3)), _image_shape((50,))
    ((8, 8, 1), (28, 20, 1), (4, 5, 3), None)
    """
    if len(sizes) > Image.dimensions:
        return None
    shape = (*sizes, 1)[:3]
    if len(sizes) == 1:
        side = isqrt(sizes[0])
        if side * side != sizes[0]:
            return None
        shape = (side, side, 1)
    return shape if prod(shape) <= MOST_PIXELS else None


def _read_shapes(sample: ArraySample) -> Shapes:
    rows = sample.query("shapes", sample.size)
    counts = tuple((tuple(sizes), count) for sizes, count, _ in rows)
    return Shapes(counts, sum(unknown for _, _, unknown in rows))


def _make_vector(sample: ArraySample, shapes: Shapes, missing: bool) -> Feature:
    name = sample.column.name
    elements = prod(shapes.sizes)
    if elements > MOST_ELEMENTS:
        return LeftOut(
            name,
            f"its arrays have {count_nouns(elements, 'element')}; a vector has at most "
            f"{MOST_ELEMENTS}",
        )
    if shapes.dimensions > 1 or elements > MOST_NUMBERS:
        return _make_wide(sample, LongVector, (elements,), missing)
    within = f"pg_catalog.array_ndims(t.array) = 1 AND e.n <= {elements}"
    scales = _read_scales(sample, "e.n", within)
    if not missing and not any(scales.values()):
        return LeftOut(name, "it has one value only")
    places = range(1, elements + 1)
    known_scales = tuple(scales.get(place) or Scale(0.0, 1.0) for place in places)
    return Vector(name, sample.family, known_scales, missing)


def _make_wide(
    sample: ArraySample, array_class: type[Array], shape: Shape, missing: bool
) -> Feature:
    """Return the feature of arrays that are an input of their own."""
    name = sample.column.name
    channels = 1
    within = "true"
    if array_class.has_channels and shape[-1] > 1:
        channels = shape[-1]
        # In other arrays, elements of a channel do not follow at this distance.
        within = f"coalesce(pg_catalog.array_length(t.array, 2), 1) = {channels}"
    scales = _read_scales(sample, f"(e.n - 1) % {channels}::bigint", within)
    if not missing and not any(scales.values()):
        return LeftOut(name, "it has one value only")
    # Networks take these arrays without pieces of their ranges.
    known_scales = tuple(
        replace(scales.get(channel) or Scale(0.0, 1.0), edges=()) for channel in range(channels)
    )
    return array_class(name, sample.family, shape, known_scales, missing)


def _read_scales(sample: ArraySample, group: str, within: str) -> dict[int, Scale | None]:
    """Return a scale for each group of elements; None if all of its elements are the same.

    Args:
        group: SQL for the number of the group that an element belongs to.
        within: SQL for the condition that an element counts.
    """
    aggregates = sql(
        "features.sampled_numbers",
        c="x",
        different=sql("features.several_numbers", c="x"),
        shares=SHARES,
    )
    rows = sample.query("elements", sample.size, place=group, within=within, aggregates=aggregates)
    scales: dict[int, Scale | None] = {}
    for number, *cells in rows:
        sampled = SampledNumbers(*cells)
        spread = sampled.over(Range(sampled.sampled, sampled.low, sampled.high))
        scales[number] = robust_scale(spread.coarser(PIECES))
    return scales
