"""`cerebro.evaluate`: measure the predictions of a model by name on the rows of a table.

PostgreSQL computes the metrics set-wise, and sorts on disk if memory is too small. The rows are
predicted as `cerebro.predict` does, but each prediction is returned with its target and its group
instead of an id. So neither a key nor a join is needed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Globals
from cerebro_plpy.database.sql.identifiers import Names, quote_identifier
from cerebro_plpy.database.sql.spelling import spell_names
from cerebro_plpy.nouns import count_nouns, match_verb
from cerebro_plpy.operations.predict.interval_level import check_level
from cerebro_plpy.operations.predict.predict_table import (
    SETTINGS,
    Block,
    GroupedModel,
    RowBlocks,
    SourceQuery,
    load_grouped_model,
    predict_blocks,
    read_blocks,
)
from cerebro_plpy.operations.predict.prediction_source import (
    RawSource,
    find_deployed_version,
    resolve_source,
    resolve_source_with_notice,
)
from cerebro_plpy.preprocessing.learning.labels import find_target, restore_labels
from cerebro_plpy.preprocessing.rows.weight_column import read_column_names
from cerebro_plpy.preprocessing.values.canonical_text import as_json
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.tables.models.model_versions import Version
from cerebro_plpy.trainer_client import argument_checks

MODULE = "evaluate"
METRIC_ROWS = 1000
"""Rows of metrics that are fetched at a time."""
GROUPING_SETS = {
    "of_all": "(), ",
    "of_pair": "(t.label, t.prediction), ",
    "of_class": "(c.key, c.value::float8), ",
    "of_bin": "(c.bin), ",
}
"""Sets of all rows, which statements need beside those of groups."""


class EvaluationArguments(NamedTuple):
    """The arguments of a call, None for NULL."""

    model: str | None
    source: str | None
    group_by: str | None
    query: str | None  # in place of a source
    level: float | None  # of intervals


class LabelledRows(NamedTuple):
    """The rows of a source with their targets and groups, and the version that predicts them."""

    version: Version
    grouped_model: GroupedModel
    table: Relation
    query: SourceQuery
    group_columns: Names
    level: float  # of intervals


def evaluate_source(db: Database, gd: Globals, arguments: EvaluationArguments) -> RowBlocks:
    """Return the metrics, one a row, in blocks.

    Errors of the arguments are raised here, and not by the SQL function that the statement reads.
    """
    labelled = _resolve_rows(db, gd, arguments, resolve_source_with_notice)
    # The statement itself cannot read the caller's own path and settings.
    caller = json.dumps({"path": db.caller_path, "settings": dict(db.caller_settings)})
    groups = spell_names(labelled.group_columns) or None
    source = None if arguments.query is not None else labelled.table.quoted
    statement, values = _make_statement(labelled)
    values += (arguments.model, source, groups, arguments.query, labelled.level, caller)
    with db.configured(**SETTINGS):
        blocks = db.stream_blocks(statement, METRIC_ROWS, *values)
    return iter(partial(next, blocks, []), [])


def _make_statement(labelled: LabelledRows) -> tuple[str, tuple[object, ...]]:
    """Return the statement that computes the metrics of the task, and its first values."""
    sets = GROUPING_SETS
    if not labelled.group_columns:
        sets = dict.fromkeys(GROUPING_SETS, "")
    if not labelled.version.classes:
        return sql("understanding.regression", **sets), ()
    costs = labelled.version.calibration.costs
    values = (list(labelled.version.classes), json.dumps(costs) if costs else None)
    return sql("understanding.classification", **sets), values


def evaluation_blocks_of(
    db: Database, gd: Globals, arguments: EvaluationArguments, caller: str | None
) -> Iterator[Block]:
    """Predict the rows that have a target; the ids are arrays of the target and the group.

    Args:
        caller: the path and the settings of the session that evaluates, as JSON.
    """
    session = argument_checks.parse_object("caller", caller)
    db.adopt_caller(
        argument_checks.read_field(session, "path", str),
        argument_checks.read_field(session, "settings", dict),
    )
    labelled = _resolve_rows(db, gd, arguments, resolve_source)
    blocks = read_blocks(db, labelled.grouped_model, labelled.query)
    blocks = _skip_unlabelled(db, blocks, labelled.version)
    return predict_blocks(db, gd, labelled.grouped_model, blocks, labelled.level)


def _resolve_rows(
    db: Database,
    gd: Globals,
    arguments: EvaluationArguments,
    resolve: Callable[[Catalog, Version, str | None, str | None], RawSource],
) -> LabelledRows:
    """Resolve the arguments of a call; `resolve` resolves the source."""
    version = find_deployed_version(db, MODULE, arguments.model)
    level = check_level(MODULE, version, arguments.level)
    catalog = Catalog(db, MODULE, takes_query=True)
    raw_source = resolve(catalog, version, arguments.source, arguments.query)
    columns = raw_source.columns
    target_column = find_target(MODULE, columns, version.target)
    labels = restore_labels(version.task, version.recipe, version.classes)
    labels.check_column(MODULE, target_column)
    target = labels.usable_expression(target_column)
    groups = _find_group_columns(columns, arguments.group_by, raw_source.table)
    grouped_model = load_grouped_model(catalog, gd, version, raw_source)
    families = {column.name: column.family for column in columns}
    query = SourceQuery(
        raw_source.build_from_item(version.target, grouped_model.group_column, *groups),
        raw_source.recipe,
        _make_pair(target, {name: families[name] for name in groups}),
        raw_source.settings,
        labels.unknown_label(target_column),
    )
    return LabelledRows(version, grouped_model, raw_source.table, query, groups, level)


def _make_pair(target: Expression, families: Mapping[str, str | None]) -> Expression:
    """Return the target and the group of a row as the text of an array; NULL without a target.

    Args:
        families: type families of the group columns, by name.
    """
    group = "NULL::text"
    if families:
        members = ", ".join(
            f"%s::text, {as_json(f't.{quote_identifier(name)}', family)}"
            for name, family in families.items()
        )
        group = f"pg_catalog.jsonb_build_object({members})::text"
    text = f"CASE WHEN {target.text} IS NOT NULL THEN ARRAY[{target.text}::text, {group}]::text END"
    return Expression(text, (*target.values, *target.values, *families))


def _find_group_columns(
    columns: Sequence[RawColumn], group_by: str | None, table: Relation
) -> Names:
    """Return the names of the group columns: one as exact text, or a list as in SQL."""
    if group_by is None:
        return ()
    if any(column.name == group_by for column in columns):
        return (group_by,)
    return read_column_names(MODULE, columns, group_by, "group_by", table)


def _skip_unlabelled(db: Database, blocks: RowBlocks, version: Version) -> RowBlocks:
    """Yield the rows that have an id, and so a target; a NOTICE counts the others."""
    target = version.target
    labelled = 0
    unlabelled = 0
    for block in blocks:
        rows = [row for row in block if row["id"] is not None]
        labelled += len(rows)
        unlabelled += len(block) - len(rows)
        if rows:
            yield rows
    if unlabelled:
        value = target if version.recipe.target_format is None else f"number in {target}"
        db.notice(
            f"{MODULE}: {count_nouns(unlabelled, 'row', 'has')} no {value}, and "
            f"{match_verb(unlabelled, 'is')} left out"
        )
    if not labelled:
        db.notice(f"{MODULE}: no row has a value of {target}")
