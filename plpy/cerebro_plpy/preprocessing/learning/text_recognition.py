"""The format of numbers or dates that a column of texts is in, by the shapes of a sample.

A column is read in a format if that is sure: all texts of the sample match, no other format fits
as well, and they are not codes. Whole numbers of one length, or with leading zeros, are codes, such
as those of places. Otherwise a remark shows what the texts look like.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.errors import InvalidParameter, quote_text
from cerebro_plpy.preprocessing.kinds.moment import Moment
from cerebro_plpy.preprocessing.kinds.number import Number
from cerebro_plpy.preprocessing.remarks.column_remarks import types_argument, view_column
from cerebro_plpy.preprocessing.remarks.date_templates import find_templates
from cerebro_plpy.preprocessing.rows.sampled_texts import TextStatistics
from cerebro_plpy.preprocessing.values.text_formats import (
    CURRENCIES,
    MOMENT_FORMATS,
    NUMBER_FORMATS,
    ORDERS,
    PERCENT,
    MomentFormat,
    NumberFormat,
)
from cerebro_plpy.preprocessing.values.text_shapes import DATE_LETTERS, ZERO

FEWEST_NUMBERS = 11
"""With fewer different values, numbers in texts are as good as categories."""
CODE_LENGTH = 4
"""Whole numbers of one length are codes from so many digits on."""
MOST_OTHERS = 0.25
"""The largest share of texts that do not match, for a remark."""
LETTERS_BY_ORDER = {order: letter for letter, order in DATE_LETTERS.items()}
SORTED_ORDERS = ("iso", "compact")
"""Orders of dates whose texts are sorted as the dates are."""
COMMA_CURRENCIES = frozenset(("$", "£", "¥", "₹", "USD", "GBP"))
"""Currencies of which amounts have a comma between thousands."""


class Recognition(NamedTuple):
    """What the texts of a column are taken for."""

    family: str | None = None  # a format, if the column is read in it
    remark: str | None = None  # what the texts look like otherwise
    is_notice: bool = True  # the remark is for training, too


class NumberTexts(NamedTuple):
    """The format of numbers that most texts of a target are in."""

    family: str
    alternative: str | None  # a format that gives other numbers for some texts
    is_sure: bool  # all texts are numbers in one format
    are_numbers: bool  # rather than codes, or a few names


NOTHING = Recognition()


class _Shape(NamedTuple):
    """A shape of texts: see `text_shapes`."""

    letters: str
    text: str
    rows: int  # of the sample that have it

    @property
    def is_whole(self) -> bool:
        """True for digits alone."""
        return self.text.strip().isdigit()

    def matches(self, family: str) -> bool:
        """Return whether the texts are in a format."""
        moment = MOMENT_FORMATS.get(family)
        if moment is None:
            return ZERO not in self.letters and _pattern(family).match(self.text) is not None
        has_time = ":" in self.text
        is_dated = LETTERS_BY_ORDER[moment.order] in self.letters
        return is_dated and (moment.has_time or not has_time)


@cache
def _pattern(family: str) -> re.Pattern[str]:
    return re.compile(NUMBER_FORMATS[family].pattern)


def recognize_texts(column: str, texts: TextStatistics) -> Recognition:
    """Return the format of the texts of a column, or a remark about them."""
    shapes = _read_shapes(texts)
    best = _choose_families(shapes, (*MOMENT_FORMATS, *NUMBER_FORMATS))
    if not best or not texts.filled:
        return _recognize_dates(column, texts, shapes)
    rows = _count_rows(shapes, best[0])
    if rows < texts.filled:
        return _recognize_most(column, texts, best, rows)
    alternative = _find_alternative(best, shapes)
    if alternative is not None:
        return Recognition(None, _describe_two(column, best[0], alternative))
    if best[0] in MOMENT_FORMATS:
        return Recognition(best[0])
    if _look_like_codes(shapes):
        remark = (
            "its texts are whole numbers of one length, as codes are. If they are numbers: "
            f"{types_argument(column, Number.kind)}"
        )
        return Recognition(None, remark)
    if texts.distinct < FEWEST_NUMBERS:
        remark = f"its texts are numbers; {types_argument(column, Number.kind)} reads them so"
        return Recognition(None, remark, is_notice=False)
    return Recognition(best[0])


def find_number_texts(texts: TextStatistics) -> NumberTexts | None:
    """Return the format of numbers that most texts are in; None for texts of other kinds."""
    shapes = _read_shapes(texts)
    best = _choose_families(shapes, (*MOMENT_FORMATS, *NUMBER_FORMATS))
    if not best or best[0] in MOMENT_FORMATS:
        return None
    rows = _count_rows(shapes, best[0])
    has_codes = _look_like_codes(shapes) or any(entry.startswith(ZERO) for entry in texts.shapes)
    if rows < (1 - MOST_OTHERS) * texts.filled:
        return None
    are_numbers = not has_codes and texts.distinct >= FEWEST_NUMBERS
    alternative = _find_alternative(best, shapes)
    if alternative is not None and rows < texts.filled:
        return None  # neither cast reads all texts
    is_sure = are_numbers and rows == texts.filled and alternative is None
    return NumberTexts(best[0], alternative, is_sure, are_numbers)


def _recognize_dates(column: str, texts: TextStatistics, shapes: Sequence[_Shape]) -> Recognition:
    """Return the remark about dates that are not read, with the casts that may be meant."""
    if not texts.filled or sum(shape.rows for shape in shapes) < texts.filled:
        return NOTHING
    name = quote_identifier(column)
    casts = [
        view_column(column, f"to_date(nullif(btrim({name}), ''), {quote_text(template)})")
        for template in find_templates([shape.text for shape in shapes])
    ]
    if not casts:
        return NOTHING
    expressions = " or ".join(casts)
    return Recognition(
        None, f"its texts look like dates. If they are, write {expressions} in a view"
    )


def choose_format(column: str, texts: TextStatistics, kind: str) -> str:
    """Return the format that most texts are in, for a kind that a call names.

    Raises:
        InvalidParameter: no text of the sample is a number, or a date.
    """
    families: Sequence[str] = tuple(MOMENT_FORMATS if kind == Moment.kind else NUMBER_FORMATS)
    shapes = [shape._replace(letters=shape.letters.strip(ZERO)) for shape in _read_shapes(texts)]
    best = _choose_families(shapes, families)
    if not best:
        values = "points in time" if kind == Moment.kind else "numbers"
        raise InvalidParameter(
            f"types wants column {column!r} to be {kind!r}, but its texts are in no format of "
            f"{values} that is known.",
            hint="Cast the column in a view, and train on that.",
        )
    return best[0]


def describe_text_order(column: str, texts: TextStatistics) -> str | None:
    """Return a remark about texts that are sorted otherwise than what they look like.

    The result is None for other texts. Dates that begin with the year, and whole numbers of one
    length, are sorted as they should be.
    """
    shapes = _read_shapes(texts)
    best = _choose_families(shapes, (*MOMENT_FORMATS, *NUMBER_FORMATS))
    if not best or _count_rows(shapes, best[0]) < (1 - MOST_OTHERS) * texts.filled:
        return None
    moment = MOMENT_FORMATS.get(best[0])
    if _look_like_codes(shapes) or (moment and moment.order in SORTED_ORDERS):
        return None
    alternative = _find_alternative(best, shapes)
    families = [best[0]] if alternative is None else [best[0], alternative]
    values = "dates" if moment else "numbers"
    return (
        f"it is sorted as text, but its texts look like {values}. In a view, write "
        f"{_list_casts(column, families)}, and divide rows by that"
    )


def _read_shapes(texts: TextStatistics) -> list[_Shape]:
    shapes = []
    for entry, rows in sorted(texts.shapes.items()):
        letters, _, text = entry.partition(":")
        shapes.append(_Shape(letters, text, rows))
    return shapes


def _count_rows(shapes: Sequence[_Shape], family: str) -> int:
    return sum(shape.rows for shape in shapes if shape.matches(family))


def _choose_families(shapes: Sequence[_Shape], families: Sequence[str]) -> list[str]:
    """Return the families that most texts are in, the simplest first."""
    rows = {family: _count_rows(shapes, family) for family in families}
    most = max(rows.values(), default=0)
    return [family for family, count in rows.items() if count == most > 0]


def _find_alternative(best: Sequence[str], shapes: Sequence[_Shape]) -> str | None:
    """Return a format that gives other values for some texts than the best; None without one."""
    first = best[0]
    if first in MOMENT_FORMATS:
        orders = {MOMENT_FORMATS[family].order for family in best if family in MOMENT_FORMATS}
        if {"dmy", "mdy"} <= orders:
            return next(f for f in best if f in MOMENT_FORMATS and MOMENT_FORMATS[f].order == "mdy")
        return None
    number = NUMBER_FORMATS[first]
    number_families = [family for family in best if family in NUMBER_FORMATS]
    alternative = next(
        (f for f in number_families if NUMBER_FORMATS[f] == number._replace(mark=",")), None
    )
    if number.mark != "." or alternative is None or number.unit in COMMA_CURRENCIES:
        return None
    has_mark = ["." in shape.text or "," in shape.text for shape in shapes]
    if not any(has_mark):
        return None
    # All digits of numeric(…, 3) are written; among thousands, some numbers are below 1000.
    if all("." in shape.text for shape in shapes):
        return None
    return alternative


def _look_like_codes(shapes: Sequence[_Shape]) -> bool:
    """Return whether all texts are whole numbers of one length, as postal codes are."""
    lengths = {len(shape.text.strip()) for shape in shapes}
    return (
        all(shape.is_whole for shape in shapes)
        and len(lengths) == 1
        and min(lengths) >= CODE_LENGTH
    )


def _recognize_most(
    column: str, texts: TextStatistics, best: Sequence[str], rows: int
) -> Recognition:
    """Return the remark about a column of which only most texts are in a format."""
    has_codes = any(entry.startswith(ZERO) for entry in texts.shapes)
    if has_codes or rows < (1 - MOST_OTHERS) * texts.filled or texts.distinct < FEWEST_NUMBERS:
        return NOTHING
    is_moment = best[0] in MOMENT_FORMATS
    kind = Moment.kind if is_moment else Number.kind
    values = "dates" if is_moment else "numbers"
    share = min(99.9, 100 * rows / texts.filled)
    remark = (
        f"{share:.3g} % of its texts look like {values} ({_find_format(best[0]).example}). To read "
        f"them so, and all others as missing: {types_argument(column, kind)}"
    )
    number = NUMBER_FORMATS.get(best[0])
    if number is not None and not number.unit:
        matches = f"{quote_identifier(column)} ~ '^ *-?[0-9]*[{number.mark}]?[0-9]+ *$'"
        guarded = f"CASE WHEN {matches} THEN {write_cast(column, number)} END"
        remark += f". Or write {view_column(column, guarded)} in a view"
    return Recognition(None, remark)


def _describe_two(column: str, first: str, second: str) -> str:
    """Return the remark about texts that two formats fit, with the cast of each."""
    values = "dates" if first in MOMENT_FORMATS else "numbers"
    casts = _list_casts(column, (first, second))
    return f"its texts are {values} in one of two formats. In a view, write {casts}"


def _list_casts(column: str, families: Sequence[str]) -> str:
    """Return the items of a view that read a column in one of some formats."""
    casts = []
    for family in families:
        text_format = _find_format(family)
        cast = view_column(column, write_cast(column, text_format))
        casts.append(f"{cast} ({text_format.example})")
    return " or ".join(casts)


def _find_format(family: str) -> NumberFormat | MomentFormat:
    return MOMENT_FORMATS.get(family) or NUMBER_FORMATS[family]


def write_cast(column: str, text_format: NumberFormat | MomentFormat) -> str:
    """Return the cast of a column of texts, as a person would type it; NULL for blank texts."""
    name = quote_identifier(column)
    if isinstance(text_format, MomentFormat):
        template = ORDERS[text_format.order].template
        if text_format.has_time:
            return f"to_timestamp(nullif(btrim({name}), ''), '{template} HH24:MI:SS')"
        return f"to_date(nullif(btrim({name}), ''), '{template}')"
    if text_format.unit in CURRENCIES or text_format.unit == PERCENT:
        digits = f"regexp_replace({name}, '[^0-9{text_format.mark}-]', '', 'g')"
    elif text_format.mark == ",":
        digits = f"replace({name}, '.', '')"
    else:
        digits = f"replace({name}, ',', '')"
    if text_format.mark == ",":
        digits = f"replace({digits}, ',', '.')"
    return f"nullif(btrim({digits}), '')::numeric"
