"""Remarks about one value that is written in several ways, and about values that are blank.

Texts are one value in several spellings if they differ by blanks around them and by capitals alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.database.sql.literals import quote_text
from cerebro_plpy.preprocessing.remarks.column_remarks import ColumnRemark, view_column
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
        yield ColumnRemark(column.name, _describe(column.name, spelled, rows, "classes"))
    blank = [value for value in rows if not value.strip()]
    if blank:
        name = quote_identifier(column.name)
        cast = view_column(column.name, f"nullif(btrim({name}), '')")
        texts = " and ".join(map(quote_text, blank))
        total = sum(rows[value] for value in blank)
        yield ColumnRemark(
            column.name,
            f"the blank text {texts} is a class, of {total} rows. If it stands for no value, write "
            f"{cast} in a view, and train on that",
        )


def remark_categories(column: RawColumn, values: Sequence[str]) -> Iterator[ColumnRemark]:
    """Yield the remark about the values of a category, if some have several spellings."""
    spelled = group_spellings(values)
    if column.compared == "text" and spelled:
        yield ColumnRemark(column.name, _describe(column.name, spelled, {}, "values"))


def _describe(
    column: str, spelled: Sequence[Sequence[str]], rows: Mapping[str, int], noun: str
) -> str:
    """Return the remark about values with several spellings; `rows` has their rows if known."""
    values = sorted(
        (value for spellings in spelled for value in spellings),
        key=lambda value: (value.strip().lower(), -rows.get(value, 0), value),
    )
    descriptions = [
        quote_text(value) + (f" ({rows[value]} rows)" if value in rows else "")
        for value in values[:MOST_NAMED]
    ]
    if len(values) > MOST_NAMED:
        descriptions.append(f"and {len(values) - MOST_NAMED} more")
    cast = view_column(column, f"lower(btrim({quote_identifier(column)}))")
    return (
        f"{len(values)} of its {noun} differ by capitals or blanks alone: "
        f"{', '.join(descriptions)}. To make them one, write {cast} in a view, and train on that"
    )
