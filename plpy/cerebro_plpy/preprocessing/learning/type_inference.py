"""The kind of feature of each raw column, inferred from statistics, or why it is left out.

The rules for categories and for columns that only name a row are AutoGluon's and Ludwig's, those
for scales RealMLP's (arXiv 2407.04491, section 3).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.database.platform_protocol import Table
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.preprocessing.kinds.category import Category
from cerebro_plpy.preprocessing.kinds.feature import Feature
from cerebro_plpy.preprocessing.kinds.image import Image
from cerebro_plpy.preprocessing.kinds.left_out import ALL_NULL, ONE_VALUE, LeftOut
from cerebro_plpy.preprocessing.kinds.moment import Moment
from cerebro_plpy.preprocessing.kinds.number import Number
from cerebro_plpy.preprocessing.kinds.series import Series
from cerebro_plpy.preprocessing.kinds.text import Text
from cerebro_plpy.preprocessing.kinds.vector import Vector
from cerebro_plpy.preprocessing.learning.text_statistics import WordStatistics
from cerebro_plpy.preprocessing.remarks.columns_ahead import AHEAD, describe_column_ahead
from cerebro_plpy.preprocessing.remarks.nested_values import describe_unusable
from cerebro_plpy.preprocessing.remarks.row_names import MIN_ROWS, all_differ, has_naming_name
from cerebro_plpy.preprocessing.rows.sampled_texts import TextStatistics
from cerebro_plpy.preprocessing.rows.statistics import (
    PIECES,
    NumberStatistics,
    Statistics,
)
from cerebro_plpy.preprocessing.values.column_hints import suggest_kind, suggest_types
from cerebro_plpy.preprocessing.values.column_values import LARGEST
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.families import (
    ARRAYS,
    BYTES,
    JSON,
    MOMENTS,
    NUMBERS,
    POINTS,
    TEXT,
    TEXT_NUMBERS,
    TEXT_POINTS,
    TEXTS,
)
from cerebro_plpy.preprocessing.values.scale import Scale
from cerebro_plpy.preprocessing.values.text_hashing import MOST_WORDS
from cerebro_plpy.preprocessing.values.value_texts import WRITTEN, find_form
from cerebro_plpy.records import replace

MOST_PIECES = 2048
"""Pieces of the ranges of all columns together."""
FEWEST_PIECES = 4
"""Pieces of each range, however many columns there are."""
NAMES_ROW = "all of its values differ: it names a row"
FREE_WORDS = 3.0
FREE_SHARE = 0.01
"""Text is free text from this mean number of words and this share of distinct values on."""
FEWEST_WORDS = 8
DAY = 86_400.0
CYCLES = {"month": 366.0, "day": 31.0, "dow": 7.0, "hour": 1.0}
"""Parts of times that recur, with the days after which they do."""
FULL_CYCLES = 2
"""Cycles that times must span before a recurring part is learned: one does not show what recurs."""
WORDS_STEP = 8
"""The number of words of a text is a multiple of this."""


class InferredColumns(NamedTuple):
    """Columns by what is still needed for their features."""

    features: Mapping[str, Feature]  # complete
    categories: tuple[RawColumn, ...]  # need their values
    texts: tuple[RawColumn, ...]  # need the statistics of their words


def infer_features(
    columns: Sequence[RawColumn],
    statistics: Statistics,
    types: Mapping[str, str],
    doubtful: Collection[str] = (),
    columns_ahead: Collection[str] = (),
) -> InferredColumns:
    """Infer the features of columns.

    Args:
        types: the kinds that a call names.
        doubtful: columns of texts that look like numbers or dates, and are not read as such.
        columns_ahead: those that run ahead in the rows held back.
    """
    features: dict[str, Feature] = {}
    unfinished: dict[str, list[RawColumn]] = {Category.kind: [], Text.kind: []}
    statistics = statistics.coarser(count_pieces(len(columns)))
    for column in columns:
        if column.name in columns_ahead:
            features[column.name] = _infer_recurring_parts(column, statistics)
            continue
        result = _infer_column(column, statistics, types.get(column.name))
        if column.name in doubtful and result == LeftOut(column.name, NAMES_ROW):
            # Numbers and dates that all differ need not name a row.
            result = LeftOut(column.name, "all of its values differ")
        if isinstance(result, str):
            unfinished[result].append(column)
        else:
            features[column.name] = result
    return InferredColumns(features, tuple(unfinished[Category.kind]), tuple(unfinished[Text.kind]))


def count_pieces(columns: int) -> int:
    """Return how many pieces the range of each of a number of columns has.

    >>> [count_pieces(columns) for columns in (1, 64, 65, 256, 1600)]
    [32, 32, 16, 8, 4]
    """
    return next(
        (count for count in (PIECES, 16, 8) if count * columns <= MOST_PIECES), FEWEST_PIECES
    )


def make_category(column: RawColumn, values: tuple[str, ...], rows: int, present: int) -> Feature:
    """Return the feature of a category from the values that occur more than once."""
    if not values:
        return LeftOut(column.name, "no value is there twice")
    if len(values) == 1 and rows == present:
        return LeftOut(column.name, ONE_VALUE)
    feature = Category(column.name, values, find_form(column))
    return replace(feature, source=feature.read_as(column.family))


def make_text(column: RawColumn, wording: WordStatistics) -> Text:
    """Return the feature of free text from the statistics of its words.

    >>> note = make_text(RawColumn("note", "text", "text", False), WordStatistics(50, 700))
    >>> note.words, note.buckets, len(note.rarities)
    (56, 8192, 8192)
    """
    words = min(max(wording.words, FEWEST_WORDS), MOST_WORDS)
    rarity = b64encode(wording.rarities).decode()
    return Text(column.name, -(-words // WORDS_STEP) * WORDS_STEP, wording.buckets, rarity)


def check_types(
    module: str, columns: Sequence[RawColumn], types: Mapping[str, str], table: Table
) -> None:
    """Raise InvalidParameter for kinds that do not exist, or that a column cannot have."""
    families = {column.name: column.family for column in columns}
    for name, kind in types.items():
        if name not in families:
            raise InvalidParameter(
                f"{module} error: types names column {name!r}, which is not one of the columns "
                "to learn from.",
                hint=suggest_types(types, name, columns),
            )
        possible = possible_kinds(families[name])
        if kind not in possible:
            raise InvalidParameter(
                f"{module} error: types wants column {name!r} to be {kind!r}; expected"
                f" {' or '.join(possible) or 'no entry, for no input can be made of its type'}.",
                hint=suggest_kind(types, name, possible, columns, table),
            )


def possible_kinds(family: str | None) -> tuple[str, ...]:
    """Return the kinds that a call may name for columns of a family."""
    if family == TEXT:
        return (Category.kind, Text.kind, Number.kind, Moment.kind)
    if family in WRITTEN:
        return (Category.kind, Text.kind)
    if family in TEXTS:
        return (Category.kind,)
    if family in MOMENTS:
        return (Moment.kind, Category.kind)
    if family in ARRAYS:
        return (Vector.kind, Series.kind, Image.kind)
    if family == BYTES:
        return (Image.kind,)
    if family is None:
        return ()
    return (Number.kind, Category.kind)


def _infer_column(column: RawColumn, statistics: Statistics, kind: str | None) -> Feature | str:
    """Return the feature of a column, or only its kind if that needs more than statistics."""
    if column.family is None:
        return LeftOut(column.name, describe_unusable(column))
    if column.names_row and kind is None:
        return LeftOut(column.name, "it is of the primary key, and names a row")
    if column.family in TEXTS:
        return _infer_text(column, statistics.texts[column.name], statistics.rows, kind)
    if kind == Category.kind:
        return kind
    if column.family in MOMENTS:
        return _infer_moment(column, statistics)
    return _infer_number(column, statistics, kind)


def _infer_text(
    column: RawColumn, texts: TextStatistics, rows: int, kind: str | None
) -> Feature | str:
    if texts.rows == 0:
        return LeftOut(column.name, ALL_NULL)
    if kind is not None:
        return kind
    if (
        column.family in WRITTEN
        and texts.words >= FREE_WORDS
        and texts.distinct > FREE_SHARE * texts.sampled
        and texts.sampled >= MIN_ROWS
    ):
        return Text.kind
    if texts.sampled >= MIN_ROWS and texts.distinct == texts.sampled:
        return LeftOut(column.name, NAMES_ROW)
    return Category.kind


def _infer_number(column: RawColumn, statistics: Statistics, kind: str | None) -> Feature:
    spread = statistics.spreads[column.name, ""]
    assert column.family in (*NUMBERS, JSON, *TEXT_NUMBERS)
    missing = spread.rows < statistics.rows
    if spread.rows == 0:
        return LeftOut(column.name, ALL_NULL)
    if kind is None and has_naming_name(column.name) and all_differ(column, spread):
        return LeftOut(
            column.name,
            "all of its values differ, and it is called an id or a number: it names a row",
        )
    scale = robust_scale(spread)
    if scale is None and not missing:
        return LeftOut(column.name, ONE_VALUE)
    return Number(
        column.name, column.family, scale or Scale(_bounded(spread.low or 0.0), 1.0), missing
    )


def _infer_recurring_parts(column: RawColumn, statistics: Statistics) -> Feature:
    """Return the feature of a column that runs ahead: the parts of times that recur, or none."""
    if column.family not in (*POINTS, *TEXT_POINTS):
        return LeftOut(column.name, describe_column_ahead(column))
    times = statistics.spreads[column.name, "epoch"]
    seconds = 0.0 if times.low is None or times.high is None else times.high - times.low
    parts = [part for part, cycle in CYCLES.items() if seconds >= FULL_CYCLES * cycle * DAY]
    feature = _infer_moment(column, statistics, parts)
    if feature.is_input:
        return feature
    return LeftOut(column.name, f"{AHEAD}, and nothing of them recurs")


def _infer_moment(
    column: RawColumn, statistics: Statistics, parts: Collection[str] | None = None
) -> Feature:
    """Return the feature of times; only of some parts, if these are given."""
    assert column.family is not None
    spreads = {part: statistics.spreads[column.name, part] for part in MOMENTS[column.family]}
    present = spreads["epoch"].rows
    if present == 0:
        return LeftOut(column.name, ALL_NULL)
    scales = {
        part: scale
        for part, spread in spreads.items()
        if (parts is None or part in parts) and (scale := robust_scale(spread)) is not None
    }
    missing = present < statistics.rows and parts is None
    if not scales and not missing:
        return LeftOut(column.name, ONE_VALUE)
    return Moment(column.name, column.family, scales or {"epoch": Scale(0.0, 1.0)}, missing)


def robust_scale(spread: NumberStatistics) -> Scale | None:
    """Return the scale by the median and the distance of the quartiles; None for a single value.

    Half of the range takes the place of a distance of 0. Edges are the distinct quantiles and ends
    of the range.

    >>> robust_scale(NumberStatistics(9, 0.0, 8.0, (2.0, 4.0, 6.0), 9, 9))
    Scale(center=4.0, width=4.0, edges=(0.0, 2.0, 4.0, 6.0, 8.0))
    >>> robust_scale(NumberStatistics(9, 0.0, 8.0, (4.0, 4.0, 4.0), 9, 3))
    Scale(center=4.0, width=4.0, edges=(0.0, 4.0, 8.0))
    """
    if spread.low is None or spread.high is None or spread.low == spread.high:
        if spread.distinct <= 1:
            return None
        # Infinities of both signs, or next to one finite number, still differ.
        return Scale(_bounded(spread.low or 0.0), 1.0)
    low = _bounded(spread.low)
    high = _bounded(spread.high)
    first, middle, last = map(_bounded, spread.quartiles or (low, low / 2 + high / 2, high))
    width = last - first or high / 2 - low / 2
    edges = sorted({low, high, *map(_bounded, spread.quantiles or ())})
    return Scale(middle, min(max(width, 1 / LARGEST), LARGEST), tuple(edges))


def _bounded(value: float) -> float:
    return min(max(value, -LARGEST), LARGEST)
