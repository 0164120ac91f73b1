"""Targets whose texts are numbers.

Such a target is a number at once if all its texts are numbers in one format, none may be a code,
and numbers of the same values would be predicted as numbers. Otherwise its texts are classes, and a
note shows what to type. A call that names the task, or a model that predicts numbers so far, also
takes a target of which most texts are numbers: rows with other texts are left out.
"""

from __future__ import annotations

from typing import NamedTuple

from cerebro_plpy.database.platform_protocol import Reader, Table
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import quote_text
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.preprocessing.learning import task_inference
from cerebro_plpy.preprocessing.learning.table_division import OpenedTable, hash_rows
from cerebro_plpy.preprocessing.learning.task_inference import (
    CLASSIFICATION,
    REGRESSION,
    TaskChoice,
    can_be_classes,
)
from cerebro_plpy.preprocessing.learning.text_recognition import (
    NumberTexts,
    find_number_texts,
    write_cast,
)
from cerebro_plpy.preprocessing.rows import statistics
from cerebro_plpy.preprocessing.rows.class_counts import (
    ALL_ROWS,
    NO_ROWS,
    ClassCounts,
    SideTables,
    count_classes,
    has_many_values,
)
from cerebro_plpy.preprocessing.rows.opened_source import TableOptions
from cerebro_plpy.preprocessing.rows.sampled_texts import has_shapes
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.rows.split import UNDIVIDED, Sides
from cerebro_plpy.preprocessing.values.column_hints import number_expression, suggest_target
from cerebro_plpy.preprocessing.values.column_values import known_value, unread_text
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.families import TEXT, TEXT_NUMBERS
from cerebro_plpy.preprocessing.values.text_formats import NUMBER_FORMATS, describe_format

FIRST_TEXTS = 1000
"""Texts that show at once as a rule that a target has no numbers."""


class TextTarget(NamedTuple):
    """A target, and what its texts look like."""

    column: RawColumn  # its family is a format if its texts are read as numbers
    choice: TaskChoice | None = None  # the task, if they are
    numbers: NumberTexts | None = None  # their format, if most texts look like numbers

    @property
    def has_two_formats(self) -> bool:
        """True if its texts are other numbers in another format."""
        return self.numbers is not None and self.numbers.alternative is not None


def recognize_target(reader: Reader, opened: OpenedTable, options: TableOptions) -> TextTarget:
    """Return the target of a table, as numbers if its texts are read so."""
    column = opened.target
    task = options.task or options.earlier_task
    if task == CLASSIFICATION or not has_shapes(column):
        return TextTarget(column)
    numbers = _read_number_texts(reader, opened)
    if numbers is None:
        return TextTarget(column)
    settled = settle_format(column, numbers.family)
    if task == REGRESSION and numbers.alternative is None:
        reason = "as task says" if options.task else "as versions before"
        return TextTarget(settled, _describe_choice(TaskChoice(task, reason), settled), numbers)
    if task is not None or not numbers.is_sure:
        return TextTarget(column, None, numbers)
    if _has_other_texts(reader, opened, settled):
        return TextTarget(column, None, numbers._replace(is_sure=False))
    choice = _infer_task(reader, opened, settled)
    if choice is None:
        return TextTarget(column, None, numbers)
    return TextTarget(settled, choice, numbers)


def settle_format(column: RawColumn, text_format: str | None) -> RawColumn:
    """Return a column of texts as one of numbers in a format, and any other column as it is."""
    if text_format is None or column.family != TEXT:
        return column
    return column._replace(family=text_format)


def _read_number_texts(reader: Reader, opened: OpenedTable) -> NumberTexts | None:
    """Return the format of the numbers that most texts of a sample are, if they are numbers."""
    column = opened.target
    table = opened.opened.table
    statement = sql("features.has_digits", source=table, value=_filled_text(column))
    ((has_digits,),) = reader.run(statement, (FIRST_TEXTS,))
    if not has_digits:
        return None
    source = Source(table, ALL_ROWS, hash_rows(opened.opened, UNDIVIDED, 0))
    gathered = statistics.gather_statistics(reader, source, [column])
    return find_number_texts(gathered.texts[column.name])


def _filled_text(column: RawColumn) -> str:
    """Return a text that is not blank; NULL for any other."""
    return f"{known_value(column._replace(family=TEXT_NUMBERS[0]))}::text"


def _has_other_texts(reader: Reader, opened: OpenedTable, column: RawColumn) -> bool:
    """Return whether any row of the table has a text that is not blank, and not a number."""
    unread = unread_text(column.name, column.family or "")
    table = opened.opened.table
    statement = sql("features.has_value", source=table, value=unread.text)
    return bool(reader.run(statement, unread.values)[0][0])


def _infer_task(reader: Reader, opened: OpenedTable, column: RawColumn) -> TaskChoice | None:
    """Return the task of numbers in texts as that of the same numbers; None for classes."""
    table = opened.opened.table
    many = has_many_values(reader, table, column)
    sides = Sides(ALL_ROWS, NO_ROWS)
    counts = count_classes(reader, SideTables(table, table), sides, column, many)
    inferred = task_inference.infer_task(column, counts)
    if inferred.task == CLASSIFICATION:
        return None
    choice = _describe_choice(inferred, column)
    return choice._replace(note=_write_note(column, counts))


def _describe_choice(choice: TaskChoice, column: RawColumn) -> TaskChoice:
    """Return the choice of a task with the format that its numbers are read in."""
    return choice._replace(reason=f"{choice.reason}; {describe_format(column.family or '')}")


def _write_note(column: RawColumn, counts: ClassCounts) -> str:
    """Return the message that texts are predicted as numbers."""
    note = (
        f"{column.name} is predicted as a number: its type is {column.type}, and all its texts are "
        f"numbers ({NUMBER_FORMATS[column.family or ''].example})"
    )
    if can_be_classes(counts):
        classes = count_nouns(len(counts.classes), "class")
        note += f". task => {quote_text(CLASSIFICATION)} predicts one of {classes}"
    return note


def describe_classes(table: Table, target: TextTarget, classes: int) -> str | None:
    """Return the note about classes whose texts look like numbers; None for other texts."""
    numbers = target.numbers
    if numbers is None or not numbers.are_numbers:
        return None
    note = (
        f"{target.column.name} is predicted as one of {count_nouns(classes, 'class')}, but its "
        "texts look like numbers"
    )
    if numbers.alternative is None:
        others = "" if numbers.is_sure else ", and leaves out rows with other texts"
        return (
            f"{note} ({NUMBER_FORMATS[numbers.family].example}). task => "
            f"{quote_text(REGRESSION)} predicts a number{others}"
        )
    return f"{note} in one of two formats: {suggest_casts(table, target)}"


def suggest_casts(table: Table, target: TextTarget) -> str:
    """Return a hint with a view that has the numbers of a target of texts."""
    column = target.column
    name = f"{column.name}_number"
    numbers = target.numbers
    if numbers is None or numbers.alternative is None:
        expression = number_expression(column)
        return f"if they are numbers: {suggest_target(table, column, {name: expression})}"
    hints = []
    for family in (numbers.family, numbers.alternative):
        number = NUMBER_FORMATS[family]
        view = suggest_target(table, column, {name: write_cast(column.name, number)})
        hints.append(f"if they are like {number.example}: {view}")
    return " Or ".join(hints)
