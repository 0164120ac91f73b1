"""Which rows are trained on, and which are held back: a row itself says it, alike in every version
of a model.

A model that is trained again, on more rows or after a restore, is compared with the one before on
rows that neither has seen. So a side is never drawn: it is a hash of what names the row and of the
model's seed, or follows from columns.
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
from cerebro_plpy.errors import InvalidParameter, UndefinedColumn
from cerebro_plpy.preprocessing.rows.value_comparison import comparable, compare
from cerebro_plpy.preprocessing.values.canonical_text import comparable_text
from cerebro_plpy.preprocessing.values.column_values import distinct_text
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression

SHARE = 0.2
PARTS = 1_000_000
HELP = "'random 0.2', 'last 0.2 by column', 'column name', 'group column', 'table name'"
TRAINING = ("training", "train", "false", "f")
VALIDATION = ("validation", "valid", "val", "true", "t")
COPY, COUNTED, DIFFERENT = "copy", 100_000, 0.9
"""What tells copies apart; and about how many rows say whether there are any: where a smaller share
of them differs.
"""
HELD_BACK = (5000, 500, 0.1), (math.inf, 2500, 0.01)
"""Of fewer rows than the first number so many are enough to tell models apart, and at least such a
share. What is held back is not learned from. AutoGluon's presets (autogluon.core.utils) have these.
"""
_RANDOM = re.compile(
    r"random(?:\s+(?P<share>[^\so]\S*))?(?P<copies>\s+of\s+copies)?", re.IGNORECASE
)
_LAST = re.compile(r"last\s+(?P<share>\S+)\s+by\s+(?P<column>.+)", re.IGNORECASE | re.DOTALL)
_TABLE = re.compile(r"table\s+(?P<table>.+)", re.IGNORECASE | re.DOTALL)
_COLUMN = re.compile(r"(?P<kind>column|group)\s+(?P<column>.+)", re.IGNORECASE | re.DOTALL)


class Split(NamedTuple):
    """How rows are divided: by a hash (`random`, `group`), by the order of a column (`last`), or as
    a `column` says.

    Or the rows that are held back are those of another `table`, which has the name of it as it was
    written. Of equal rows that no key tells apart each of the `copies` may be divided for itself.
    """

    kind: str
    share: float
    column: str | None
    table: str | None = None
    copies: bool = False

    def __str__(self) -> str:
        """The text that asks for it."""
        if self.table is not None:
            return f"table {self.table}"
        if self.column is None:
            return f"random {self.share:g}{' of copies' * self.copies}"
        name = quote_identifier(self.column)
        return f"last {self.share:g} by {name}" if self.kind == "last" else f"{self.kind} {name}"


ALIKE = Split("random", 0.0, None)
"""Of rows that are not divided, but put into an order: what names a row is then what it is of a
hash.
"""


class Sides(NamedTuple):
    """Whether a row is trained on, and whether it is held back; some are neither."""

    training: Expression
    validation: Expression

    @property
    def all(self) -> bool:
        """Whether each row is on one of them."""
        return self.validation.text == f"NOT {self.training.text}"


def usual_split(rows: int) -> Split:
    """How rows are divided where nobody says it, and there are so many with a target.

    >>> [str(usual_split(rows)) for rows in (1000, 4000, 50_000, 10**8)]
    ['random 0.2', 'random 0.125', 'random 0.05', 'random 0.01']
    """
    enough, least = next((enough, least) for below, enough, least in HELD_BACK if rows < below)
    return Split("random", round(min(SHARE, max(least, enough / max(1, rows))), 3), None)


def read_split(module: str, text: str | None) -> Split:
    """The split that a text asks for.

    >>> read_split("train", "last 0.1 by ts")
    Split(kind='last', share=0.1, column='ts', table=None, copies=False)
    >>> read_split("train", "random of copies") == read_split("train", "random 0.2 of copies")
    True
    """
    wanted = f"random {SHARE}" if text is None else text.strip()
    if found := _RANDOM.fullmatch(wanted):
        share = _share(module, wanted, found["share"] or str(SHARE))
        return Split("random", share, None, copies=found["copies"] is not None)
    if found := _LAST.fullmatch(wanted):
        return Split(
            "last", _share(module, wanted, found["share"]), _name(module, wanted, found["column"])
        )
    if found := _TABLE.fullmatch(wanted):
        return Split("table", 0.0, None, found["table"])
    if found := _COLUMN.fullmatch(wanted):
        return Split(found["kind"].lower(), SHARE, _name(module, wanted, found["column"]))
    raise _unknown(module, wanted)


def _share(module: str, wanted: str, text: str) -> float:
    try:
        share = float(text)
    except ValueError as error:
        raise _unknown(module, wanted) from error
    if not 0 < share < 1:
        raise InvalidParameter(
            f"{module} error: split is {wanted!r}, which holds back a share of {text}; expected "
            "one between 0 and 1.",
            hint=f"For example {SHARE}: a fifth of the rows.",
        )
    return share


def _name(module: str, wanted: str, text: str) -> str:
    names = split_columns(text)
    if len(names) != 1:
        raise _unknown(module, wanted)
    return names[0]


def _unknown(module: str, wanted: str) -> InvalidParameter:
    return InvalidParameter(
        f"{module} error: split is {wanted!r}; expected one of {HELP}.", hint="Or leave it out."
    )


def row_hash(names: Sequence[str], seed: int, row: str = "t") -> Expression:
    """A bigint that depends on the texts of these columns, and on the seed; NULL counts as a text,
    too.

    A single column, as most keys are, needs no row made of it, which takes longer than all the
    rest. Texts are those of the session: it is only asked under `reading.TEXTS`, so that no row
    changes its side.
    """
    values = [f"{row}.{quote_identifier(name)}" for name in names]
    text = (
        f"coalesce({values[0]}::text, '')"
        if len(values) == 1
        else f"ROW({', '.join(values)})::text"
    )
    return Expression(
        f'pg_catalog.hashtextextended({text} COLLATE pg_catalog."C", %s::bigint)', (seed,)
    )


def naming(
    columns: Sequence[RawColumn], split: Split, identity: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the columns that name a row: those of a group, else what tells copies apart, else an
    identity, which by default is `identity_of` these columns."""
    if split.kind == "group" and split.column is not None:
        return (split.column,)
    if split.copies:
        return (_copy(columns),)
    return tuple(identity) or identity_of(columns)


def identity_of(columns: Sequence[RawColumn]) -> tuple[str, ...]:
    """Return the columns by which a table tells its rows apart: those of the primary key, else
    all.
    """
    return tuple(c.name for c in columns if c.key) or tuple(c.name for c in columns)


def numbered(
    table: str, columns: Sequence[RawColumn], split: Split, identity: Sequence[str] = ()
) -> str:
    """Return a table, by its quoted name, as its rows are divided: with a column that tells copies
    apart, if they are.

    Copies are rows that are equal in the columns of an identity, by default in all. Which of them
    has which number does not matter, since nothing else tells them apart.
    """
    if not split.copies:
        return table
    names = ", ".join(f"t.{quote_identifier(each.name)}" for each in columns)
    values = row_hash(tuple(identity) or [each.name for each in columns], 0).inlined()
    number = f"(pg_catalog.row_number() OVER (PARTITION BY {values}))"
    copy = f"{values}::text || ',' || {number}::text AS {quote_identifier(_copy(columns))}"
    return f"(SELECT {names}, {copy} FROM {table} t)"


def has_copies(reader: Reader, table: str, names: Sequence[str], rows: int) -> bool:
    """Check whether many of so many rows of a table are equal in these columns; of large tables by
    a part of them.
    """
    parts = max(1, -(-rows // COUNTED))
    statement = sql(
        "features.copies", values=row_hash(names, 0).inlined(), parts=str(parts), source=table
    )
    ((found, different),) = reader.run(statement)
    return bool(different < DIFFERENT * found or found < rows / parts / 2)


def _copy(columns: Sequence[RawColumn]) -> str:
    """What no column is called."""
    names = {each.name for each in columns}
    return next(name for n in count() if (name := COPY + "_" * n) not in names)


def sides(
    split: Split,
    columns: Sequence[RawColumn],
    seed: int,
    bound: str | None = None,
    identity: Sequence[str] = (),
    row: str = "t",
) -> Sides:
    """The sides of a row of a table with these columns; of `last`, `bound` is the text of where the
    rest begins.

    The columns of an identity name a row, by default those of `identity_of`.

    Where a table is held back, all rows of each table are on the side of it.
    """
    if split.kind == "table":
        return Sides(Expression("true"), Expression("true"))
    if split.kind == "column":
        name = f"pg_catalog.lower({distinct_text(split.column or '', row=row).text})"
        words = (
            Expression(f"{name} = ANY (%s::text[])", (list(each),))
            for each in (TRAINING, VALIDATION)
        )
        return Sides(*words)
    if split.kind == "last":
        before = compare(_divided_by(split, columns), "<", bound, row)
        trained = Expression(f"({before.text}) IS NOT FALSE", before.values)
    else:
        drawn = row_hash(naming(columns, split, identity), seed, row)
        held = round(split.share * PARTS)
        trained = Expression(
            f"(({drawn.text} & 4294967295) % {PARTS}::bigint >= {held})", drawn.values
        )
    return Sides(trained, Expression(f"NOT {trained.text}", trained.values))


def find_bound(
    reader: Reader, table: str, split: Split, columns: Sequence[RawColumn], usable: str
) -> str | None:
    """Return the text of the value where the last rows of a table begin, of those that are
    `usable`.
    """
    column = _divided_by(split, columns)
    texts = {"column": comparable(column), "written": comparable_text("b.bound", column.family)}
    statement = sql("features.bound", **texts, source=table, usable=usable)
    ((bound,),) = reader.run(statement, (split.share,))
    return None if bound is None else str(bound)


def _divided_by(split: Split, columns: Sequence[RawColumn]) -> RawColumn:
    """Return the column that a split names; raise UndefinedColumn if the table has lost it."""
    for column in columns:
        if column.name == split.column:
            return column
    raise UndefinedColumn(
        f"there is no column {split.column!r}, by which rows are divided",
        hint="Name a table or view that has it.",
    )
