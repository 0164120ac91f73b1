"""The words of a column that has the side of each row: training, validation or test.

A column is judged once, before the first version of a model is trained; its split then records the
words that count. Versions of older releases have a split without such a record, and keep theirs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from cerebro_plpy.database.platform_protocol import Reader, Table
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.database.sql.spelling import spell_name
from cerebro_plpy.errors import InvalidParameter, quote_text
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.preprocessing.values.column_hints import make_free_name, suggest_view
from cerebro_plpy.preprocessing.values.column_values import distinct_text
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.preprocessing.values.families import NUMBERS

BY_VALIDATION = "validation"
BY_TEST = "test"
"""Whether rows for tests are left out, because others are for validation, or are for validation."""
NO = ("false", "no", "0")
YES = ("true", "yes", "1")
TRAINING = ("train", "training", "trn", "learn", "learning", "fit", "fitting", *NO)
VALIDATION = ("validation", "validate", "valid", "val", "eval", "evaluation", "evaluate", *YES)
TEST = ("test", "testing", "tst", "holdout", "heldout", "heldback")
OLD_TRAINING = ("training", "train", "false", "f")
OLD_VALIDATION = ("validation", "valid", "val", "true", "t")
"""The words of releases before 0.3."""
HELP = (
    "Understood are train, training, learn or fit; validation, valid, val or eval; test or "
    "holdout; and false, no or 0 for training, true, yes or 1 for validation"
)
MAX_VALUES = 20
"""Values that are read of a column; one that has more does not have the sides of rows."""
MAX_LISTED = 6
_CALLED_TRAINING = re.compile(r"(?<![a-z])train|Train|(?<![a-z])learn|Learn")


class SideValue(NamedTuple):
    """A value of the column, and its rows."""

    text: str
    word: str  # in lower case, without blanks and hyphens
    rows: int


def words_of(column: str, family: str | None, row: str) -> Expression:
    """Return the text of a column as it is compared with words."""
    text = distinct_text(column, family, row)
    if family in NUMBERS:
        # 1.00 is 1.
        text = Expression(f"({row}.{quote_identifier(column)}::double precision)::text")
    plain = f"pg_catalog.translate(pg_catalog.lower(pg_catalog.btrim({text.text})), ' _-', '')"
    return Expression(f'({plain} COLLATE pg_catalog."C")', text.values)


def list_words(words: str | None) -> tuple[Sequence[str], Sequence[str]]:
    """Return the words of training and of validation rows.

    Args:
        words: BY_VALIDATION or BY_TEST; None for those of older releases.
    """
    if words is None:
        return OLD_TRAINING, OLD_VALIDATION
    if words == BY_TEST:
        return TRAINING, (*VALIDATION, *TEST)
    return TRAINING, VALIDATION


def choose_words(
    reader: Reader,
    module: str,
    source: str,
    column: RawColumn,
    table: Table,
    columns: Sequence[RawColumn],
    selection: str | None,
) -> str:
    """Return which words of a column count: BY_VALIDATION, or BY_TEST if it has none of these.

    Args:
        source: the item of FROM that has the column.
        table: the source of the call, its `columns` and its selection of them, for hints.

    Raises:
        InvalidParameter: the column does not say which rows are for training and for validation.
    """
    values = _read_values(reader, source, column)
    words = {value.word for value in values}
    by = BY_VALIDATION if words & {*VALIDATION} else BY_TEST
    training, validation = list_words(by)
    problem = _find_problem(column, words, training, validation)
    if problem is None:
        return by
    raise InvalidParameter(
        f"{module} error: split names column {column.name!r}, {problem}: it is "
        f"{_describe(values)}.",
        hint=_suggest(column, values, table, columns, selection),
    )


def _read_values(reader: Reader, source: str, column: RawColumn) -> list[SideValue]:
    word = words_of(column.name, column.family, "t")
    text = distinct_text(column.name, column.family)
    statement = sql("features.split_words", word=word.text, text=text.text, source=source)
    rows = reader.run(statement, (*text.values, *word.values, MAX_VALUES + 1))
    return [SideValue(*row) for row in rows]


def _find_problem(
    column: RawColumn,
    words: set[str],
    training: Sequence[str],
    validation: Sequence[str],
) -> str | None:
    """Return why the words of a column cannot divide rows; None if they can."""
    answers = {*NO, *YES}
    if not words & {*training}:
        return "which has no word for rows to train on"
    if not words & {*validation}:
        return "which has no word for rows to compare models by"
    if words <= answers and _CALLED_TRAINING.search(column.name):
        return "whose name asks for rows to train on, but true and 1 are for validation"
    unclear_words = words.difference(TRAINING, VALIDATION, TEST)
    if unclear_words and words & {*training} == {"0"}:
        return "which has other values than 0 and 1"
    return None


def _describe(values: Sequence[SideValue]) -> str:
    """Return the values with their rows, the most frequent first."""
    listed = [
        f"{value.text!r} in {count_nouns(value.rows, 'row')}" for value in values[:MAX_LISTED]
    ]
    if len(values) > MAX_LISTED:
        listed.append("other values in others")
    return ", ".join(listed) or "NULL in all rows"


def _suggest(
    column: RawColumn,
    values: Sequence[SideValue],
    table: Table,
    columns: Sequence[RawColumn],
    selection: str | None,
) -> str:
    """Return a hint with a view that has the words, or with another split."""
    if len(values) < 2 or len(values) > MAX_VALUES:
        return f"Divide rows by chance: split => 'random 0.2'. {HELP}."
    held_back = _guess_validation(column, values)
    value = f"t.{quote_identifier(column.name)}"
    text = f"{value}::text"
    sides = (
        f"CASE WHEN {text} = {quote_text(held_back)} THEN 'validation' "
        f"WHEN {value} IS NOT NULL THEN 'train' END"
    )
    name = make_free_name("side", [column.name for column in columns])
    arguments = {"split": f"column {name}"}
    if selection is None or selection.strip().startswith("*"):
        separator = " except " if selection is None or selection.strip() == "*" else ", "
        excluded = spell_name(column.name)
        arguments["columns"] = f"{(selection or '*').strip()}{separator}{excluded}"
    return f"{HELP}. For others: {suggest_view(table, {name: sides}, arguments)}"


def _guess_validation(column: RawColumn, values: Sequence[SideValue]) -> str:
    """Return the value whose rows are probably for validation."""
    if _CALLED_TRAINING.search(column.name):
        for value in values:
            if value.word in NO:
                return value.text
    for value in values:
        if value.word in (*VALIDATION, *TEST) and value.word not in YES:
            return value.text
    return values[-1].text
