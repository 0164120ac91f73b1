"""The target: the task that a column sets, its classes, or the scale of its numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from cerebro_plpy.configs.params.keras_names import guess_match
from cerebro_plpy.configs.templates.layers.model_io import Classes, Floats, Head
from cerebro_plpy.database.platform_protocol import Reader, Table
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.database.sql.spelling import match_names
from cerebro_plpy.errors import DatatypeMismatch, InvalidParameter, quote_text
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.preprocessing.learning import task_inference
from cerebro_plpy.preprocessing.learning.number_targets import (
    TextTarget,
    describe_classes,
    suggest_casts,
)
from cerebro_plpy.preprocessing.learning.target_statistics import read_number_target
from cerebro_plpy.preprocessing.learning.task_inference import TaskChoice
from cerebro_plpy.preprocessing.recipe.target_scale import TargetScale
from cerebro_plpy.preprocessing.rows.class_counts import MOST_CLASSES, ClassCounts
from cerebro_plpy.preprocessing.rows.opened_source import TableOptions
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.rows.weight_column import find_column
from cerebro_plpy.preprocessing.values.column_hints import (
    NUMBER_PATTERN,
    suggest_target,
    target_expressions,
)
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.families import NUMBERS, TEXT, TEXT_NUMBERS, TEXTS

CLASSIFICATION = task_inference.CLASSIFICATION
REGRESSION = task_inference.REGRESSION
TASKS = task_inference.TASKS


class Target(NamedTuple):
    """A column to predict."""

    column: RawColumn
    task: str
    head: Head
    values: tuple[str, ...]  # the texts of its classes
    rows: int  # that can be trained on
    choice: TaskChoice | None = None  # how the task was chosen, if it was
    scale: TargetScale | None = None  # of numbers
    warning: str | None = None  # if double precision does not distinguish all numbers


def read_target(
    reader: Reader,
    module: str,
    source: Source,
    text_target: TextTarget,
    counts: ClassCounts,
    options: TableOptions,
    table: Table,
) -> Target:
    """Return the target as training rows have it.

    Args:
        table: the source of the call, for hints.

    Raises:
        InvalidParameter: nothing can be learned from the values.
    """
    task = options.task
    column = text_target.column
    if task == REGRESSION and column.family not in (*NUMBERS, *TEXT_NUMBERS):
        raise InvalidParameter(
            f"{module} error: task is {REGRESSION!r}, but target {column.name!r} has type "
            f"{column.type}.",
            hint=f"Leave task out{_suggest_numbers(table, text_target, counts)}",
        )
    values = counts.classes
    present = counts.training
    if len(values) == 1:
        raise InvalidParameter(
            f"{module} error: target {column.name!r} has one value only, in "
            f"{count_nouns(present, 'row')}: there is nothing to learn.",
            hint=f"{_count_values(table, column)} shows them: name another target, or add rows "
            "with other values.",
        )
    choice = text_target.choice or choose_task(column, counts, task, options.earlier_task)
    note = None
    if column.family == TEXT and task is None:
        note = describe_classes(table, text_target, len(values))
    if note is not None:
        reason = f"{choice.reason}, though its texts look like numbers"
        choice = choice._replace(reason=reason, note=note)
    if choice.task == REGRESSION:
        numbers = read_number_target(reader, module, source, column, table)
        head = Floats((numbers.scale.measure,))
        scale = numbers.scale
        return Target(column, REGRESSION, head, (), numbers.rows, choice, scale, numbers.warning)
    if counts.many or len(values) == present > 2:
        many = f"more than {MOST_CLASSES}" if counts.many else len(values)
        raise InvalidParameter(
            f"{module} error: target {column.name!r} has {count_nouns(many, 'different value')} in "
            f"{count_nouns(present, 'row')}: as classes they teach nothing.",
            hint=_suggest_number(table, text_target),
        )
    return Target(column, CLASSIFICATION, Classes(len(values)), values, present, choice)


def find_target(module: str, columns: Sequence[RawColumn], name: str, table: Table) -> RawColumn:
    """Return the column to predict.

    Raises:
        InvalidParameter: the target names several columns.
        UndefinedColumn: the column does not exist.
    """
    names = [column.name for column in columns]
    listed = match_names(name, names)
    if name not in names and len(listed) > 1:
        targets = " and with ".join(f"target => {quote_text(column)}" for column in listed)
        raise InvalidParameter(
            f"{module} error: target is {name!r}, which names "
            f"{count_nouns(len(listed), 'column')}; expected one.",
            hint=f"A model predicts one column: call it once for each, with {targets}. A network "
            "with several outputs is trained by madlib_fit_multiple_model().",
        )
    return find_column(module, columns, name, "target", table=table)


def _suggest_numbers(table: Table, target: TextTarget, counts: ClassCounts) -> str:
    """Return the end of a hint for texts that are no numbers: a view, if it would have some."""
    values = (count.value for count in counts.counts if count.value is not None)
    if target.numbers or any(re.match(NUMBER_PATTERN, value) for value in values):
        return f"; or {suggest_casts(table, target)}"
    return f": the texts of {target.column.name} are predicted as classes."


def _suggest_number(table: Table, target: TextTarget) -> str:
    """Return a hint for a target with too many different values."""
    numbers = target.numbers
    if target.column.family in NUMBERS or (numbers and numbers.alternative is None):
        return f"Predict a number: task => {quote_text(REGRESSION)}."
    casts = suggest_casts(table, target)
    return f"{casts[0].upper()}{casts[1:]} Else group the values in such a view."


def _count_values(table: Table, column: RawColumn) -> str:
    """Return the statement that counts the values of a column."""
    return f"SELECT {quote_identifier(column.name)}, count(*) FROM {table.quoted} GROUP BY 1;"


def check_task(module: str, task: str | None) -> None:
    """Raise InvalidParameter for a task that does not exist."""
    if task is not None and task not in TASKS:
        raise InvalidParameter(
            f"{module} error: task is {task!r}; expected one of {', '.join(TASKS)}.",
            hint=guess_match(task, TASKS),
        )


def check_target(module: str, column: RawColumn, table: Table) -> None:
    """Raise DatatypeMismatch for a type that cannot be predicted."""
    if column.family not in (*TEXTS, *NUMBERS):
        raise DatatypeMismatch(
            f"{module} error: target {column.name!r} has type {column.type}, which cannot be "
            "predicted.",
            hint=suggest_target(table, column, target_expressions(column)),
        )


def choose_task(
    column: RawColumn, counts: ClassCounts, task: str | None, earlier_task: str | None
) -> TaskChoice:
    """Return the task that the call names, else that of earlier versions, else the likely one."""
    if task is not None:
        return TaskChoice(task, "as task says")
    if earlier_task == CLASSIFICATION or (earlier_task and column.family in NUMBERS):
        return TaskChoice(earlier_task, "as versions before")
    return task_inference.infer_task(column, counts)
