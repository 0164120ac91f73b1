"""The split of rows into training and validation rows, the same in every version of a model.

A model that is trained again, on more rows or after a restore, is compared with the version before
on rows that neither has seen. So a side is never drawn at random: it is a hash of the values that
name the row and of the model's seed, or follows from columns.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sql.identifiers import quote_identifier, split_columns
from cerebro_plpy.database.sql.spelling import match_name, suggest_similar
from cerebro_plpy.errors import InvalidName, InvalidParameter, UndefinedColumn, quote_text
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.preprocessing.rows.split_words import list_words, words_of
from cerebro_plpy.preprocessing.rows.value_comparison import compare
from cerebro_plpy.preprocessing.values.column_values import distinct_text, value_text
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.preprocessing.values.families import CITEXT, JSON, POINTS

SHARE = 0.2
PARTS = 1_000_000
HELP = "'random 0.2', 'last 0.2 by column', 'column name', 'group column', 'table name'"
COPY = "copy"
"""Name of a column that distinguishes equal rows, unless another column has it."""
SAMPLED_ROWS = 100_000
"""About how many rows are checked for copies."""
MIN_DISTINCT_SHARE = 0.9
"""A table has many copies if a smaller share of its rows is distinct."""
ENOUGH_ROWS = (5000, 500, 0.1), (math.inf, 2500, 0.01)
"""Limit of rows, validation rows that suffice to compare models, and the least share of them.

Validation rows are not learned from, so no more than needed are held back. The figures are those of
AutoGluon's presets (autogluon.core.utils).
"""
_RANDOM = re.compile(
    r"random(?:\s+(?P<share>[^\so]\S*))?(?P<copies>\s+of\s+copies)?", re.IGNORECASE
)
_LAST = re.compile(r"last\s+(?P<share>\S+)\s+by\s+(?P<column>.+)", re.IGNORECASE | re.DOTALL)
_TABLE = re.compile(r"table\s+(?P<table>.+)", re.IGNORECASE | re.DOTALL)
_COLUMN = re.compile(
    r"(?P<kind>column|group)\s+(?P<column>.+?)"
    r"(?:\s+by\s+(?P<words>validation|test)\s+words)?(?P<values>\s+of\s+values)?",
    re.IGNORECASE | re.DOTALL,
)
WRITTEN_DIFFERENTLY = ("real", "numeric", CITEXT, JSON)
"""Families with equal values that PostgreSQL writes differently, such as 1.0 and 1.00."""


class Split(NamedTuple):
    """The rule that divides rows.

    Kinds: `random` and `group` by a hash, `last` by the order of a column, `column` by its values,
    `table` if the rows of another table are the validation rows.
    """

    kind: str
    share: float  # of validation rows
    column: str | None
    table: str | None = None  # the name of the other table as it was written
    copies: bool = False  # equal rows without a key are divided one by one
    values: bool = False  # groups are told apart by value, not by how PostgreSQL writes it
    words: str | None = None  # words of a column that count: see `split_words.list_words`

    def agrees_with(self, recorded: Split) -> bool:
        """Return whether a call that names this split may go on with a recorded one.

        The first training of a model has decided about copies, values and words.
        """
        return self == recorded._replace(copies=self.copies, words=self.words, values=self.values)

    def __str__(self) -> str:
        """Return the text of the split in a call."""
        if self.table is not None:
            return f"table {self.table}"
        if self.column is None:
            return f"random {self.share:g}{' of copies' * self.copies}"
        name = quote_identifier(self.column)
        if self.kind == "last":
            return f"last {self.share:g} by {name}"
        words = ""
        if self.words is not None:
            words = f" by {count_nouns(self.words, 'word')}"
        return f"{self.kind} {name}{words}{' of values' * self.values}"


UNDIVIDED = Split("random", 0.0, None)
"""The split of rows that are ordered but not divided; they are named as those of a hash."""


class Sides(NamedTuple):
    """The conditions that a row is a training or a validation row; some rows are neither."""

    training: Expression
    validation: Expression

    @property
    def all(self) -> bool:
        """True if every row is on one side."""
        return self.validation.text == f"NOT {self.training.text}"


def default_split(rows: int) -> Split:
    """Return the split of a call that names none, for a number of rows with a target.

    >>> [str(default_split(rows)) for rows in (1000, 4000, 50_000, 10**8)]
    ['random 0.2', 'random 0.125', 'random 0.05', 'random 0.01']
    """
    enough, least = next((enough, least) for below, enough, least in ENOUGH_ROWS if rows < below)
    return Split("random", round(min(SHARE, max(least, enough / max(1, rows))), 3), None)


def read_split(module: str, text: str | None) -> Split:
    """Read the text of a split.

    >>> read_split("train", "last 0.1 by ts")
    Split(kind='last', share=0.1, column='ts', table=None, copies=False, values=False, words=None)
    >>> read_split("train", "random of copies") == read_split("train", "random 0.2 of copies")
    True
    """
    text = f"random {SHARE}" if text is None else text.strip()
    if match := _RANDOM.fullmatch(text):
        share = _read_share(module, text, match["share"] or str(SHARE))
        return Split("random", share, None, copies=match["copies"] is not None)
    if match := _LAST.fullmatch(text):
        share = _read_share(module, text, match["share"])
        return Split("last", share, _read_name(module, text, match["column"]))
    if match := _TABLE.fullmatch(text):
        return Split("table", 0.0, None, match["table"])
    if match := _COLUMN.fullmatch(text):
        name = _read_name(module, text, match["column"])
        words = match["words"] and match["words"].lower()
        if words and match["kind"].lower() != "column":
            raise _unknown_split(module, text)
        return Split(
            match["kind"].lower(), SHARE, name, values=match["values"] is not None, words=words
        )
    raise _unknown_split(module, text)


def _read_share(module: str, split: str, text: str) -> float:
    try:
        share = float(text)
    except ValueError as error:
        raise _unknown_split(module, split) from error
    if not 0 < share < 1:
        raise InvalidParameter(
            f"{module} error: split is {split!r}, which holds back a share of {text}; expected "
            "one between 0 and 1.",
            hint=f"For example {SHARE}: a fifth of the rows.",
        )
    return share


def _read_name(module: str, split: str, text: str) -> str:
    try:
        names = split_columns(text)
    except InvalidName as error:
        quoted = f"{split[: -len(text)]}{quote_identifier(text.strip())}"
        raise InvalidName(
            f"{module} error: split is {split!r}: {error.message}.",
            detail=error.detail,
            hint=f"Write split => {quote_text(quoted)}.",
        ) from error
    if len(names) != 1:
        raise _unknown_split(module, split)
    return names[0]


def check_split_column(module: str, columns: Sequence[RawColumn], split: Split) -> None:
    """Raise UndefinedColumn if a table does not have the column of a split."""
    names = [column.name for column in columns]
    if split.column is None or split.column in names:
        return
    match = match_name(split.column, names)
    if match is None:
        hint = suggest_similar(split.column, names, spelled=True)
    else:
        hint = f"Write split => {quote_text(str(split._replace(column=match)))}."
    raise UndefinedColumn(
        f"{module} error: there is no column {split.column!r}, which split names.", hint=hint
    )


def find_dividing_times(split: Split, columns: Sequence[RawColumn]) -> str | None:
    """Return the column of points in time of which a split holds back the latest, if it does."""
    if split.kind != "last":
        return None
    points = (column.name for column in columns if column.family in POINTS)
    return next((name for name in points if name == split.column), None)


def _unknown_split(module: str, split: str) -> InvalidParameter:
    return InvalidParameter(
        f"{module} error: split is {split!r}; expected one of {HELP}.", hint="Or leave it out."
    )


def row_hash(names: Sequence[str], seed: int, row: str = "t") -> Expression:
    """Return a bigint hash of the texts of columns and of a seed; NULL counts as a text, too.

    Texts are those of the session: the hash is computed under `reading.TEXTS` only, so that no row
    changes its side.
    """
    values = [f"{row}.{quote_identifier(name)}" for name in names]
    # Most keys have one column, and a row constructor takes longer than all the rest.
    text = f"coalesce({values[0]}::text, '')"
    if len(values) > 1:
        text = f"ROW({', '.join(values)})::text"
    return _hash_text(text, seed)


def _hash_text(text: str, seed: int) -> Expression:
    hashed = f'pg_catalog.hashtextextended({text} COLLATE pg_catalog."C", %s::bigint)'
    return Expression(hashed, (seed,))


def divide_by_value(split: Split, columns: Sequence[RawColumn]) -> Split:
    """Return a split by groups that has all rows of equal values on one side."""
    if split.kind != "group":
        return split
    return split._replace(values=find_dividing_column(split, columns).family in WRITTEN_DIFFERENTLY)


def naming_columns(
    columns: Sequence[RawColumn], split: Split, identity: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the columns that name a row, in the hash of a split.

    They are the column of groups, else the one that distinguishes copies, else the identity, which
    by default is `identity_of` the columns.
    """
    if split.kind == "group" and split.column is not None:
        return (split.column,)
    if split.copies:
        return (_copy(columns),)
    return tuple(identity) or identity_of(columns)


def identity_of(columns: Sequence[RawColumn]) -> tuple[str, ...]:
    """Return the columns that distinguish the rows of a table: the primary key, else all."""
    return tuple(c.name for c in columns if c.key) or tuple(c.name for c in columns)


def table_with_copies(
    table: str, columns: Sequence[RawColumn], split: Split, identity: Sequence[str] = ()
) -> str:
    """Return a table with a column that distinguishes copies, if the split divides these.

    Copies are rows with equal values in the columns of the identity, by default in all. Their
    numbers may change, since nothing else distinguishes them.

    Args:
        table: a quoted name.
    """
    if not split.copies:
        return table
    names = ", ".join(f"t.{quote_identifier(column.name)}" for column in columns)
    values = row_hash(tuple(identity) or [column.name for column in columns], 0).inlined()
    number = f"(pg_catalog.row_number() OVER (PARTITION BY {values}))"
    copy = f"{values}::text || ',' || {number}::text AS {quote_identifier(_copy(columns))}"
    return f"(SELECT {names}, {copy} FROM {table} t)"


def has_copies(reader: Reader, table: str, names: Sequence[str], rows: int) -> bool:
    """Return whether many rows are equal in these columns, judged by a part of a large table."""
    parts = max(1, -(-rows // SAMPLED_ROWS))
    statement = sql(
        "features.copies", values=row_hash(names, 0).inlined(), parts=str(parts), source=table
    )
    ((checked, distinct),) = reader.run(statement)
    return bool(distinct < MIN_DISTINCT_SHARE * checked or checked < rows / parts / 2)


def _copy(columns: Sequence[RawColumn]) -> str:
    """Return a name that no column has."""
    names = {column.name for column in columns}
    return next(name for n in count() if (name := COPY + "_" * n) not in names)


def side_conditions(
    split: Split,
    columns: Sequence[RawColumn],
    seed: int,
    bound: str | None = None,
    identity: Sequence[str] = (),
    row: str = "t",
) -> Sides:
    """Return the sides of a row.

    Args:
        columns: those of the table.
        bound: the text of the value where the validation rows begin, of a split by `last`.
        identity: the columns that name a row, by default those of `identity_of`.
    """
    if split.kind == "table":
        # All rows of either table are on its side.
        return Sides(Expression("true"), Expression("true"))
    if split.kind == "column":
        return _sides_by_words(split, columns, row)
    if split.kind == "last":
        is_before = compare(find_dividing_column(split, columns), "<", bound, row)
        training = Expression(f"({is_before.text}) IS NOT FALSE", is_before.values)
    else:
        if split.values:
            value = value_text(find_dividing_column(split, columns), row)
            hashed = _hash_text(f"coalesce({value.text}, '')", seed)
        else:
            hashed = row_hash(naming_columns(columns, split, identity), seed, row)
        held_back = round(split.share * PARTS)
        part = f"({hashed.text} & 4294967295) % {PARTS}::bigint"
        training = Expression(f"({part} >= {held_back})", hashed.values)
    return Sides(training, Expression(f"NOT {training.text}", training.values))


def _sides_by_words(split: Split, columns: Sequence[RawColumn], row: str) -> Sides:
    """Return the sides of a row by the words of a column."""
    name = split.column or ""
    word = Expression(f"pg_catalog.lower({distinct_text(name, row=row).text})")
    if split.words is not None:
        word = words_of(name, find_dividing_column(split, columns).family, row)
    sides = (
        Expression(f"{word.text} = ANY (%s::text[])", (*word.values, list(words)))
        for words in list_words(split.words)
    )
    return Sides(*sides)


def find_dividing_column(split: Split, columns: Sequence[RawColumn]) -> RawColumn:
    """Return the column that a split names; raises UndefinedColumn if the table has lost it."""
    for column in columns:
        if column.name == split.column:
            return column
    raise UndefinedColumn(
        f"there is no column {split.column!r}, by which rows are divided",
        hint="Name a table or view that has it.",
    )
