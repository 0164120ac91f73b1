"""What becomes of each raw column: the kind of feature, its constants, or why it is left out. Pure.

The rules are those that other systems have, by their names there: AutoGluon's and Ludwig's for what
is a category and what only names a row, RealMLP's for scales (arXiv 2407.04491, section 3).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.preprocessing.kinds.category import Category
from cerebro_plpy.preprocessing.kinds.feature import Feature
from cerebro_plpy.preprocessing.kinds.image import Image
from cerebro_plpy.preprocessing.kinds.left_out import LeftOut
from cerebro_plpy.preprocessing.kinds.moment import Moment
from cerebro_plpy.preprocessing.kinds.number import Number
from cerebro_plpy.preprocessing.kinds.series import Series
from cerebro_plpy.preprocessing.kinds.text import Text
from cerebro_plpy.preprocessing.kinds.vector import Vector
from cerebro_plpy.preprocessing.learning.text_statistics import WordStatistics
from cerebro_plpy.preprocessing.rows.statistics import (
    PIECES,
    NumberStatistics,
    Statistics,
    TextStatistics,
)
from cerebro_plpy.preprocessing.values.column_values import LARGEST
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.families import ARRAYS, BYTES, JSON, MOMENTS, NUMBERS, TEXT
from cerebro_plpy.preprocessing.values.scale import Scale
from cerebro_plpy.preprocessing.values.text_hashing import MOST_WORDS

FEWEST = 20
"""Of fewer rows it cannot be said that values only name them."""
MOST_PIECES, FEWEST_PIECES = 2048, 4
"""Of all columns together, and of each in spite of that."""
FREE_WORDS = 3.0
FREE_SHARE = 0.01
"""A text is free where it has so many words, and so large a share of all is different."""
FEWEST_WORDS, WORDS_STEP = 8, 8
"""As few words of a text are taken, and by how much that grows."""


class Chosen(NamedTuple):
    """The features whose constants the statistics have; the columns that are categories if they
    have values; texts.
    """

    features: Mapping[str, Feature]
    categories: tuple[RawColumn, ...]
    texts: tuple[RawColumn, ...]


def choose(columns: Sequence[RawColumn], known: Statistics, types: Mapping[str, str]) -> Chosen:
    """What the statistics decide; `types` are the kinds that the caller wants for columns."""
    features: dict[str, Feature] = {}
    others: dict[str, list[RawColumn]] = {Category.kind: [], Text.kind: []}
    known = known.coarser(pieces(len(columns)))
    for column in columns:
        found = _chosen(column, known, types.get(column.name))
        if isinstance(found, str):
            others[found].append(column)
        else:
            features[column.name] = found
    return Chosen(features, tuple(others[Category.kind]), tuple(others[Text.kind]))


def pieces(columns: int) -> int:
    """In how many pieces each of so many columns is divided.

    >>> [pieces(columns) for columns in (1, 64, 65, 256, 1600)]
    [32, 32, 16, 8, 4]
    """
    return next(
        (count for count in (PIECES, 16, 8) if count * columns <= MOST_PIECES), FEWEST_PIECES
    )


def category(column: RawColumn, values: tuple[str, ...], rows: int, present: int) -> Feature:
    """A category of the values that are there more than once."""
    if not values:
        return LeftOut(column.name, "no value is there twice")
    if len(values) == 1 and rows == present:
        return LeftOut(column.name, "it has one value only")
    return Category(column.name, values, column.family or TEXT)


def text(column: RawColumn, wording: WordStatistics) -> Text:
    """Free text, by the words of training rows.

    >>> found = text(RawColumn("note", "text", "text", False), WordStatistics(50, 700))
    >>> found.words, found.buckets, len(found.rarities)
    (56, 8192, 8192)
    """
    words = min(max(wording.words, FEWEST_WORDS), MOST_WORDS)
    rarity = b64encode(wording.rarities).decode()
    return Text(column.name, -(-words // WORDS_STEP) * WORDS_STEP, wording.buckets, rarity)


def check_types(module: str, columns: Sequence[RawColumn], types: Mapping[str, str]) -> None:
    """Raises InvalidParameter for kinds that are none, or that a column cannot have."""
    families = {column.name: column.family for column in columns}
    for name, kind in types.items():
        if name not in families:
            raise InvalidParameter(
                f"{module} error: types names column {name!r}, which is none of those that are "
                "learned from.",
                hint=f"These are: {', '.join(families)}.",
            )
        possible = _kinds(families[name])
        if kind not in possible:
            raise InvalidParameter(
                f"{module} error: types wants column {name!r} to be {kind!r}; expected"
                f" {' or '.join(possible) or 'no entry, for no input can be made of its type'}.",
                hint="Cast the column in a view, and train on that.",
            )


def _kinds(family: str | None) -> tuple[str, ...]:
    if family == TEXT:
        return (Category.kind, Text.kind)
    if family in MOMENTS:
        return (Moment.kind, Category.kind)
    if family in ARRAYS:
        return (Vector.kind, Series.kind, Image.kind)
    if family == BYTES:
        return (Image.kind,)
    return () if family is None else (Number.kind, Category.kind)


def _chosen(column: RawColumn, known: Statistics, wanted: str | None) -> Feature | str:
    """The feature of a column; or only its kind, for a category and a text, of which more is to be
    looked for.
    """
    if column.family is None:
        return LeftOut(column.name, f"no input can be made of type {column.type}")
    if column.key and wanted is None:
        return LeftOut(column.name, "it is of the primary key, and names a row")
    if column.family == TEXT:
        return _text(column, known.texts[column.name], known.rows, wanted)
    if wanted == Category.kind:
        return wanted
    if column.family in MOMENTS:
        return _moment(column, known)
    return _number(column, known, wanted)


def _text(column: RawColumn, texts: TextStatistics, rows: int, wanted: str | None) -> Feature | str:
    if texts.rows == 0:
        return LeftOut(column.name, "it is NULL in all rows")
    if wanted is not None:
        return wanted
    if (
        texts.words >= FREE_WORDS
        and texts.distinct > FREE_SHARE * texts.sampled
        and texts.sampled >= FEWEST
    ):
        return Text.kind
    if texts.sampled >= FEWEST and texts.distinct == texts.sampled:
        return LeftOut(column.name, "all of its values differ: it names a row")
    return Category.kind


def _number(column: RawColumn, known: Statistics, wanted: str | None) -> Feature:
    spread = known.spreads[column.name, ""]
    assert column.family in (*NUMBERS, JSON)
    missing = spread.rows < known.rows
    if spread.rows == 0:
        return LeftOut(column.name, "it is NULL in all rows")
    if wanted is None and _names_rows(column, spread):
        return LeftOut(
            column.name, "all of its values differ, and it is called an id: it names a row"
        )
    scale = scale_of(spread)
    if scale is None and not missing:
        return LeftOut(column.name, "it has one value only")
    return Number(
        column.name, column.family, scale or Scale(_within(spread.low or 0.0), 1.0), missing
    )


def _names_rows(column: RawColumn, spread: NumberStatistics) -> bool:
    called = column.name.lower().rsplit("_", 1)[-1] == "id"
    return (
        called
        and column.family == "integer"
        and spread.sampled >= FEWEST
        and spread.distinct == spread.sampled
    )


def _moment(column: RawColumn, known: Statistics) -> Feature:
    assert column.family is not None
    spreads = {part: known.spreads[column.name, part] for part in MOMENTS[column.family]}
    present = spreads["epoch"].rows
    if present == 0:
        return LeftOut(column.name, "it is NULL in all rows")
    scales = {
        part: scale for part, spread in spreads.items() if (scale := scale_of(spread)) is not None
    }
    missing = present < known.rows
    if not scales and not missing:
        return LeftOut(column.name, "it has one value only")
    return Moment(column.name, column.family, scales or {"epoch": Scale(0.0, 1.0)}, missing)


def scale_of(spread: NumberStatistics) -> Scale | None:
    """The median and the distance of the quartiles, or half of the range where that is none; None
    for a single value.

    Edges are the quantiles and the ends of the range, as far as they differ.

    >>> scale_of(NumberStatistics(9, 0.0, 8.0, (2.0, 4.0, 6.0), 9, 9))
    Scale(center=4.0, width=4.0, edges=(0.0, 2.0, 4.0, 6.0, 8.0))
    >>> scale_of(NumberStatistics(9, 0.0, 8.0, (4.0, 4.0, 4.0), 9, 3))
    Scale(center=4.0, width=4.0, edges=(0.0, 4.0, 8.0))
    """
    if spread.low is None or spread.high is None or spread.low == spread.high:
        # Infinite ones of both signs, or beside a single finite one, still differ.
        return Scale(_within(spread.low or 0.0), 1.0) if spread.distinct > 1 else None
    low, high = _within(spread.low), _within(spread.high)
    first, middle, last = map(_within, spread.quartiles or (low, low / 2 + high / 2, high))
    width = last - first or high / 2 - low / 2
    edges = sorted({low, high, *map(_within, spread.quantiles or ())})
    return Scale(middle, min(max(width, 1 / LARGEST), LARGEST), tuple(edges))


def _within(value: float) -> float:
    return min(max(value, -LARGEST), LARGEST)
