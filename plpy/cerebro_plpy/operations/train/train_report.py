"""The messages of `cerebro.train` about its table, and about what its version predicts."""

from __future__ import annotations

from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.nouns import count_nouns, match_verb
from cerebro_plpy.operations.train.train_request import TrainRequest
from cerebro_plpy.operations.train_arguments import SEARCH_NAMES
from cerebro_plpy.preprocessing.learning.class_notices import (
    ClassAdvice,
    describe_single_classes,
    find_rare_class,
    list_single_classes,
)
from cerebro_plpy.preprocessing.learning.data_checks import why_unused
from cerebro_plpy.preprocessing.learning.raw_table import RawTable
from cerebro_plpy.preprocessing.learning.target import CLASSIFICATION
from cerebro_plpy.preprocessing.remarks.column_remarks import columns_argument
from cerebro_plpy.preprocessing.rows.last_border import describe_distance
from cerebro_plpy.preprocessing.scoring.calibration import Calibration
from cerebro_plpy.run.request.run_request import FitRequest


def report_table(db: Database, table: RawTable) -> None:
    """Give a notice for everything in a table that is not learned from, or is ambiguous."""
    if table.target.choice and table.target.choice.note:
        db.notice(table.target.choice.note)
    if table.missing:
        db.notice(
            f"{count_nouns(table.missing, 'row', 'has')} no {table.target.column.name}, and "
            f"{match_verb(table.missing, 'is')} left out"
        )
    if table.unknown:
        db.notice(_describe_unknown(table))
    if table.unused:
        reason = why_unused(table.split, table.target.task, table.untrained_classes)
        db.notice(f"{count_nouns(table.unused, 'more row', 'is')} left out: {reason}")
    border = table.border
    if border and border.missing:
        db.notice(
            f"{count_nouns(border.missing, 'row', 'has')} no {table.split.column}, and "
            f"{match_verb(border.missing, 'is')} trained on"
        )
    if border and border.is_far_from(table.split.share):
        db.notice(describe_distance(table.split, border))
    if table.share < 1:
        db.notice(
            f"{count_nouns(table.rows, 'row')}, a share of {table.share:.2g}, "
            f"{match_verb(table.rows, 'is')} trained on: an epoch over all rows would take "
            "longer than the budget"
        )
    if table.groups and table.groups.small_values:
        number = table.groups.small_values
        db.notice(
            f"{count_nouns(number, 'value')} of {table.groups.column} {match_verb(number, 'has')} "
            f"fewer than {count_nouns(table.groups.least, 'row')} to train on, or none held back: "
            "their rows have the model of all rows"
        )
    for feature in table.recipe.features:
        if not feature.is_input:
            db.notice(f"column {feature.column} is left out: {feature.explanation}")
    for column, values in table.unknown_values:
        db.notice(
            f"column {column} has {values}, which the model does not know: they count as missing"
        )
    for remark in table.remarks:
        if remark.is_notice:
            db.notice(f"column {remark.column}: {remark.text}")
    for leak in table.leaks:
        db.notice(
            f"column {leak.column}: {leak}. If it is not known when predictions are made, "
            f"leave it out: {columns_argument(leak.column)}"
        )


def _describe_unknown(table: RawTable) -> str:
    """Return the message about rows whose target the model does not know."""
    name = table.target.column.name
    values = ", ".join(f"{value!r} ({rows})" for value, rows in table.unknown_classes.items())
    verb = match_verb(table.unknown, "is")
    if table.target.task == CLASSIFICATION:
        return (
            f"{count_nouns(table.unknown, 'row', 'has')} classes of {name} that the model does not "
            f"know, and {verb} left out: {values}. cerebro.train learns them"
        )
    return (
        f"{count_nouns(table.unknown, 'row', 'has')} texts of {name} that are not numbers, and "
        f"{verb} left out: {values}"
    )


def report_classes(db: Database, request: TrainRequest, table: RawTable) -> None:
    """Give a notice for classes that have few rows."""
    counts = table.class_counts
    if counts is None:
        return
    single_classes = list_single_classes(counts)
    if single_classes:
        db.notice(describe_single_classes(table.target.column.name, single_classes))
    rare_class = find_rare_class(counts)
    advice = ClassAdvice(request.arguments.metric, request.parsed.space)
    if rare_class and str(advice):
        reason = ". Accuracy says little about it" if advice.goes_by_accuracy else ""
        db.notice(f"{rare_class}{reason}: {advice}")


def describe_rates(request: TrainRequest) -> str:
    """Return the measured rates of templates as text for a message; empty without any."""
    texts = [
        f"{template} {1 / seconds:,.0f}" for template, seconds in request.rates.items() if seconds
    ]
    return f" (measured rows per second: {', '.join(texts)})" if texts else ""


def describe_decisions(request: TrainRequest, table: RawTable, fit_request: FitRequest) -> str:
    """Return a message about the run: its rows, configurations, epochs and budget."""
    groups = ""
    if table.groups:
        number = count_nouns(len(table.groups.rows_by_group), "group")
        groups = f" for all rows and for {number} by {table.groups.column}"
    search = ""
    final_metric = fit_request.spec.train and fit_request.spec.train.final_metric
    if final_metric:
        searched = SEARCH_NAMES[fit_request.spec.ranking.metric]
        search = (
            f"; the search goes by {searched}, and {final_metric.name} of the rows held back "
            "chooses the version at the end"
        )
    count = len(fit_request.configs)
    if fit_request.search and fit_request.search.sampling:
        count += fit_request.search.sampling.total_remaining
    classes = ""
    if table.target.task == CLASSIFICATION:
        classes = f" ({count_nouns(len(table.target.values), 'class')})"
    return (
        f"{table.target.task} of {table.target.column.name}{classes} by "
        f"{count_nouns(len(table.recipe.inputs), 'column')}: "
        f"{count_nouns(table.rows, 'row', 'is')} trained on, and {table.validation_rows} held back "
        f"({table.split}); {count_nouns(count, 'configuration')}{groups}, of at most "
        f"{count_nouns(fit_request.spec.epochs, 'epoch')} each{describe_rates(request)}, in "
        f"{request.parsed.budget:g} s{search}. See cerebro.plan() with the same arguments, and the "
        "arguments columns, types, split, models, space, configs, epochs and budget for more."
    )


def report_threshold(
    db: Database, train_spec: TrainSpec, version: int, calibration: Calibration
) -> None:
    """Give a notice if a version of two classes does not predict the more probable one."""
    threshold = calibration.threshold
    if threshold is None:
        return
    reason = f"is best for {train_spec.metric} of the rows held back"
    if calibration.costs:
        reason = "has the smallest expected cost"
    db.notice(
        f"version {version} of model {train_spec.model!r} predicts {train_spec.classes[1]!r} from "
        f"a probability of {threshold:.4g} on, which {reason}"
    )
