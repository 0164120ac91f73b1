"""What becomes of columns of arrays of numbers, by what training rows say of them: their sizes, and
their elements.

An array is a vector, whose elements have nothing to do with each other, or a series, in which they
follow each other, or an image. Its type does not tell; but where elements are like those next to
them, over rows, their order means something. All of it comes of a sample of rows, but for how many
have an array at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isqrt, prod
from typing import Any, NamedTuple

from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.preprocessing.kinds.array import MOST_ELEMENTS, Array
from cerebro_plpy.preprocessing.kinds.feature import Feature
from cerebro_plpy.preprocessing.kinds.image import Image
from cerebro_plpy.preprocessing.kinds.left_out import LeftOut
from cerebro_plpy.preprocessing.kinds.long_vector import LongVector
from cerebro_plpy.preprocessing.kinds.series import Series
from cerebro_plpy.preprocessing.kinds.vector import MOST_NUMBERS, Vector
from cerebro_plpy.preprocessing.learning.type_inference import robust_scale
from cerebro_plpy.preprocessing.rows.statistics import AT_ONCE, SHARES, NumberStatistics, Source
from cerebro_plpy.preprocessing.values import column_values
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.preprocessing.values.families import ARRAYS
from cerebro_plpy.preprocessing.values.scale import Scale
from cerebro_plpy.records import replace

ELEMENTS = 300_000
FEWEST_ROWS, MOST_ROWS = 200, 50_000
"""Rows of a sample: so many that there are about so many elements."""
COMPARED_ROWS, COMPARED_PLACES = 2000, 200
"""That tell whether elements are like those next to them."""
FEWEST_STEPS = 8
"""Fewer elements are no series."""
MOST_STEPS, MOST_CHANNELS = 1024, 64
"""Longer series are cut."""
MOST_PIXELS = 128 * 128
PIECES = 8
"""Of the range of each place of a vector."""
LEAST_RESEMBLANCE = 0.3
MOST_EQUAL = 0.9
"""Of vectors more have the same length."""
HALF = 0.5
"""Of the arrays have a length, if it is the usual one; else most are not longer than it."""
MOST = 0.9


class Shapes(NamedTuple):
    """Sizes of the arrays of a sample, and how many arrays have each, the most frequent first.

    `unknown` is in how many of them no element is a number.
    """

    counts: tuple[tuple[tuple[int, ...], int], ...]
    unknown: int

    @property
    def dimensions(self) -> int:
        """How many the arrays have as a rule."""
        return len(self.counts[0][0])

    @property
    def lengths(self) -> dict[int, int]:
        """How many arrays of as many dimensions have which length in the first of them."""
        found: dict[int, int] = {}
        for sizes, rows in self.counts:
            if len(sizes) == self.dimensions:
                found[sizes[0]] = found.get(sizes[0], 0) + rows
        return found

    @property
    def length(self) -> int:
        """That of most arrays; where none is usual, one that few exceed.

        >>> (Shapes((((3,), 6), ((9,), 4)), 0).length,
        ...  Shapes(tuple(((n,), 1) for n in range(1, 11)), 0).length)
        (3, 9)
        """
        lengths, rows = self.lengths, sum(self.lengths.values())
        usual = max(lengths, key=lambda length: lengths[length])
        if lengths[usual] >= HALF * rows:
            return usual
        below = 0
        for length in sorted(lengths):
            below += lengths[length]
            if below >= MOST * rows:
                return length
        return max(lengths)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The usual ones, of which only the first is no size that there is."""
        return (
            self.length,
            *next(sizes[1:] for sizes, _ in self.counts if len(sizes) == self.dimensions),
        )

    @property
    def equal(self) -> float:
        """The share of arrays that have the most frequent length."""
        return max(self.lengths.values()) / sum(self.lengths.values())


class Sample(NamedTuple):
    """The rows of a source of which so many are looked at, and a column of them."""

    reader: Reader
    source: Source
    rows: int
    column: RawColumn
    size: int

    @property
    def element(self) -> Expression:
        """An element `e.x` as a number, NULL where it is none."""
        return column_values.number_of("e.x", ARRAYS[self.column.family or ""])

    def ask(self, name: str, size: int, **texts: str) -> list[tuple[Any, ...]]:
        """The answer to a question about its arrays."""
        few = self.source.few(self.rows, size)
        return self.reader.run(
            sql(
                f"arrays.{name}",
                array=column_values.elements(self.column.name, self.column.family or ""),
                number=self.element.text,
                source=few.table,
                side=few.side.text,
                **texts,
            ),
            (*self.element.values, *few.side.values),
        )


def infer_arrays(
    reader: Reader, source: Source, columns: Sequence[RawColumn], types: Mapping[str, str]
) -> dict[str, Feature]:
    """The feature of each of these columns, all of which are of arrays; `types` are the kinds that
    the caller wants.
    """
    found: dict[str, Feature] = {}
    for start in range(0, len(columns), AT_ONCE):
        part = columns[start : start + AT_ONCE]
        for column, (rows, present, elements) in zip(part, _present(reader, source, part)):
            if not present:
                found[column.name] = LeftOut(column.name, "it has no element in any row")
                continue
            size = min(MOST_ROWS, max(FEWEST_ROWS, int(ELEMENTS / elements)))
            sample = Sample(reader, source, rows, column, size)
            found[column.name] = _learned(sample, rows - present, types.get(column.name))
    return found


def _present(
    reader: Reader, source: Source, columns: Sequence[RawColumn]
) -> Iterator[tuple[int, int, float]]:
    """How many rows there are, and of each column how many have an element, and how many of
    them.
    """
    arrays = [column_values.elements(column.name, column.family or "") for column in columns]
    aggregates = "".join(
        sql("arrays.counted", array=array, n=f"n{place}") for place, array in enumerate(arrays)
    )
    statement = sql(
        "arrays.present", aggregates=aggregates, source=source.table, side=source.side.text
    )
    ((rows, *told),) = reader.run(statement, source.side.values)
    return ((rows, *told[2 * place : 2 * place + 2]) for place in range(len(columns)))


def _learned(sample: Sample, without: int, wanted: str | None) -> Feature:
    column = sample.column
    if column.key and wanted is None:
        return LeftOut(column.name, "it is of the primary key, and names a row")
    shapes = _shapes(sample)
    if not shapes.counts:
        return LeftOut(column.name, "it has no element in the rows that are looked at")
    kind, sizes = _kind(sample, shapes, wanted), shapes.sizes
    if kind == Vector.kind:
        return _vector(sample, shapes, bool(without or shapes.unknown))
    of, shape = (Series, _steps(sizes)) if kind == Series.kind else (Image, _pixels(sizes))
    if shape is None:
        return LeftOut(column.name, f"no {kind} is made of arrays of {_listed(sizes)} elements")
    return _wide(sample, of, shape, bool(without or shapes.unknown))


def _kind(sample: Sample, shapes: Shapes, wanted: str | None) -> str:
    """What the caller says, or what the elements are like."""
    if wanted is not None:
        return wanted
    if shapes.dimensions > 1:
        return Series.kind if shapes.dimensions == Series.dimensions else Image.kind
    if shapes.length < FEWEST_STEPS:
        return Vector.kind
    return Series.kind if shapes.equal < MOST_EQUAL or _resembling(sample) else Vector.kind


def _resembling(sample: Sample) -> bool:
    ((found,),) = sample.ask("resemblance", COMPARED_ROWS, most=str(COMPARED_PLACES))
    return found is not None and found >= LEAST_RESEMBLANCE


def _steps(sizes: Sequence[int]) -> tuple[int, ...] | None:
    """The shape of a series, which has no more than so many steps."""
    steps, channels = (*sizes, 1)[:2]
    fits = len(sizes) <= Series.dimensions and channels <= MOST_CHANNELS
    return (min(steps, MOST_STEPS), channels) if fits else None


def _pixels(sizes: Sequence[int]) -> tuple[int, ...] | None:
    """The shape of an image; one whose pixels are one behind another is a square.

    >>> _pixels((64,)), _pixels((28, 20)), _pixels((4, 5, 3)), _pixels((50,))
    ((8, 8, 1), (28, 20, 1), (4, 5, 3), None)
    """
    side = isqrt(sizes[0])
    if len(sizes) == 1 and side * side != sizes[0]:
        return None
    shape = (side, side, 1) if len(sizes) == 1 else (*sizes, 1)[:3]
    return shape if len(sizes) <= Image.dimensions and prod(shape) <= MOST_PIXELS else None


def _wide(sample: Sample, of: type[Array], shape: tuple[int, ...], missing: bool) -> Feature:
    name, family = sample.column.name, sample.column.family or ""
    channels = shape[-1] if of.has_channels else 1
    # Of arrays with as many channels, whose elements are in turns of each.
    inner = (
        f"coalesce(pg_catalog.array_length(t.array, 2), 1) = {channels}" if channels > 1 else "true"
    )
    scales = _scales(sample, f"(e.n - 1) % {channels}::bigint", inner)
    if not missing and not any(scales.values()):
        return LeftOut(name, "it has one value only")
    # Of these no network asks in what pieces they are.
    found = tuple(
        replace(scales.get(channel) or Scale(0.0, 1.0), edges=()) for channel in range(channels)
    )
    return of(name, family, shape, found, missing)


def _listed(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))


def _shapes(sample: Sample) -> Shapes:
    rows = sample.ask("shapes", sample.size)
    return Shapes(
        tuple((tuple(sizes), count) for sizes, count, _ in rows), sum(row[2] for row in rows)
    )


def _vector(sample: Sample, shapes: Shapes, missing: bool) -> Feature:
    name, family, length = sample.column.name, sample.column.family or "", shapes.length
    elements = prod(shapes.sizes)
    if shapes.dimensions > 1 or length > MOST_NUMBERS:
        if elements > MOST_ELEMENTS:
            return LeftOut(
                name, f"its arrays have {elements} elements; a vector has at most {MOST_ELEMENTS}"
            )
        return _wide(sample, LongVector, (elements,), missing)
    scales = _scales(sample, "e.n", f"pg_catalog.array_ndims(t.array) = 1 AND e.n <= {length}")
    if not missing and not any(scales.values()):
        return LeftOut(name, "it has one value only")
    found = tuple(scales.get(place) or Scale(0.0, 1.0) for place in range(1, length + 1))
    return Vector(name, family, found, missing)


def _scales(sample: Sample, place: str, within: str) -> dict[int, Scale | None]:
    """Of each place its scale, None where all elements are the same."""
    aggregates = sql(
        "features.sampled_numbers",
        c="x",
        different=sql("features.several_numbers", c="x"),
        shares=SHARES,
    )
    rows = sample.ask("elements", sample.size, place=place, within=within, aggregates=aggregates)
    return {place: robust_scale(_spread(*told).coarser(PIECES)) for place, *told in rows}


def _spread(
    quantiles: Sequence[float] | None,
    count: int,
    different: int,
    low: float | None,
    high: float | None,
) -> NumberStatistics:
    return NumberStatistics(
        count, low, high, None if quantiles is None else tuple(quantiles), count, different
    )
