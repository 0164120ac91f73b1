"""Columns of texts that are read as numbers or as points in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.preprocessing.kinds.moment import Moment
from cerebro_plpy.preprocessing.kinds.number import Number
from cerebro_plpy.preprocessing.learning.text_recognition import (
    choose_format,
    describe_text_order,
    recognize_texts,
)
from cerebro_plpy.preprocessing.remarks.column_remarks import ColumnRemark
from cerebro_plpy.preprocessing.rows import statistics
from cerebro_plpy.preprocessing.rows.sampled_texts import has_shapes
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.rows.statistics import Statistics
from cerebro_plpy.preprocessing.values.columns import RawColumn


class ReadTexts(NamedTuple):
    """Columns of which some texts are read in a format."""

    columns: Sequence[RawColumn]  # with the families of formats
    statistics: Statistics
    remarks: tuple[ColumnRemark, ...]


def read_formats(
    reader: Reader,
    source: Source,
    columns: Sequence[RawColumn],
    gathered: Statistics,
    types: Mapping[str, str],
) -> ReadTexts:
    """Return columns and their statistics, with texts as what they are written for.

    Args:
        types: the kinds of columns that a call names.

    Raises:
        InvalidParameter: `types` wants numbers or points in time, and no text has one.
    """
    families: dict[str, str] = {}
    remarks: list[ColumnRemark] = []
    for column in columns:
        texts = gathered.texts.get(column.name)
        if texts is None or not texts.rows or column.names_row:
            continue
        kind = types.get(column.name)
        if kind in (Number.kind, Moment.kind):
            families[column.name] = choose_format(column.name, texts, kind)
        elif kind is None:
            recognition = recognize_texts(column.name, texts)
            if recognition.family is not None:
                families[column.name] = recognition.family
            if recognition.remark is not None:
                remarks.append(
                    ColumnRemark(column.name, recognition.remark, recognition.is_notice, True)
                )
    read = [column._replace(family=families.get(column.name, column.family)) for column in columns]
    changed = [column for column in read if column.name in families]
    if not changed:
        return ReadTexts(columns, gathered, tuple(remarks))
    values = statistics.gather_statistics(reader, source, changed)
    return ReadTexts(read, _replace_texts(gathered, values), tuple(remarks))


def find_order_remark(
    reader: Reader, source: Source, column: RawColumn
) -> tuple[ColumnRemark, ...]:
    """Return the remark about a column that rows are sorted by, if its texts look otherwise."""
    if not has_shapes(column):
        return ()
    texts = statistics.gather_statistics(reader, source, [column]).texts[column.name]
    text = describe_text_order(column.name, texts)
    return () if text is None else (ColumnRemark(column.name, text, is_cast=True),)


def _replace_texts(gathered: Statistics, values: Statistics) -> Statistics:
    """Return statistics in which some columns have values in place of texts.

    If the sample has texts that do not match, some rows of the table have no value.
    """
    spreads = {
        (name, part): spread._replace(rows=spread.rows - 1)
        if spread.sampled < gathered.texts[name].sampled
        else spread
        for (name, part), spread in values.spreads.items()
    }
    names = {name for name, _ in spreads}
    texts = {name: texts for name, texts in gathered.texts.items() if name not in names}
    return Statistics(gathered.rows, {**gathered.spreads, **spreads}, texts)
