"""Remarks about one value that is written in several ways, and about values that are blank.

Texts are one value in several spellings if they differ by blanks around them and by capitals alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cerebro_plpy.errors import quote_text
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.preprocessing.remarks.column_remarks import BLANKS, EMPTY, LETTERS, ColumnRemark
from cerebro_plpy.preprocessing.rows.class_counts import ClassCounts
from cerebro_plpy.preprocessing.values.columns import RawColumn

MOST_NAMED = 5
"""Values that are named in one remark."""


def group_spellings(values: Sequence[str]) -> list[list[str]]:
    """Return the values that have several spellings, each with all of them, in their order.

    >>> group_spellings(["Yes", "no", "yes ", "maybe", "YES"])
    [['Yes', 'yes ', 'YES']]
    """
    groups: dict[str, list[str]] = {}
    for value in values:
        groups.setdefault(value.strip().lower(), []).append(value)
    return [spellings for key, spellings in groups.items() if len(spellings) > 1 and key]


def remark_classes(column: RawColumn, counts: ClassCounts) -> Iterator[ColumnRemark]:
    """Yield the remarks about the classes of a target."""
    if column.compared != "text":
        return
    rows = {count.value: count.rows for count in counts.counts if count.value is not None}
    spelled = group_spellings(list(rows))
    if spelled:
        yield _remark_spellings(column.name, spelled, rows, "classes")
    blank = [value for value in rows if not value.strip()]
    if blank:
        texts = " and ".join(map(quote_text, blank))
        total = sum(rows[value] for value in blank)
        yield ColumnRemark(
            column.name,
            f"the blank text {texts} is a class, of {count_nouns(total, 'row')}",
            cleaning=(BLANKS, EMPTY),
        )


def remark_categories(column: RawColumn, values: Sequence[str]) -> Iterator[ColumnRemark]:
    """Yield the remark about the values of a category, if some have several spellings."""
    spelled = group_spellings(values)
    if column.compared == "text" and spelled:
        yield _remark_spellings(column.name, spelled, {}, "values")


def _remark_spellings(
    column: str, spelled: Sequence[Sequence[str]], rows: Mapping[str, int], noun: str
) -> ColumnRemark:
    """Return the remark about values with several spellings; `rows` has their rows if known."""
    values = sorted(
        (value for spellings in spelled for value in spellings),
        key=lambda value: (value.strip().lower(), -rows.get(value, 0), value),
    )
    descriptions = [
        quote_text(value) + (f" ({count_nouns(rows[value], 'row')})" if value in rows else "")
        for value in values[:MOST_NAMED]
    ]
    if len(values) > MOST_NAMED:
        descriptions.append(f"and {len(values) - MOST_NAMED} more")
    text = (
        f"{len(values)} of its {noun} differ by capitals or blanks alone: {', '.join(descriptions)}"
    )
    return ColumnRemark(column, text, cleaning=(BLANKS, LETTERS))
