"""How good the predictions of a model by name are for the rows of a table: metrics, made set-wise
by PostgreSQL.

The rows are predicted as `cerebro.predict` does it, but each goes with its target and its group
instead of an id, so that neither a key nor a join is needed. What has to be sorted PostgreSQL
sorts, on disk where memory does not do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.operations.predict.predict_table import (
    SETTINGS,
    Block,
    GroupedModel,
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
from cerebro_plpy.preprocessing.learning.labels import usable_label_expression
from cerebro_plpy.preprocessing.rows.weight_column import read_column_name
from cerebro_plpy.preprocessing.values.canonical_text import as_json
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.tables.models.model_versions import Version
from cerebro_plpy.trainer_client import argument_checks

MODULE = "evaluate"
FETCHED = 1000
Arguments = tuple["str | None", "str | None", "Sequence[str | None] | None"]


class Labelled(NamedTuple):
    """A version, the rows that it predicts, and the columns that they are grouped by."""

    version: Version
    whole: GroupedModel
    table: Relation
    raw: SourceQuery
    groups: tuple[str, ...]


def evaluate_source(db: Database, gd: dict[str, Any], arguments: Arguments) -> Iterator[list[Row]]:
    """Metrics, one a row, some at a time; `arguments` are the model, the source, and columns to
    group by.

    What is wrong with a call is told here, and not by the function that this one reads.
    """
    model, _, group_by = arguments
    found = _labelled(db, gd, arguments, resolve_source_with_notice)
    # Within the statement the caller's own path and settings cannot be seen any more.
    caller = json.dumps({"path": db.caller_path, "settings": dict(db.caller_settings)})
    asked = model, found.table.quoted, None if group_by is None else list(found.groups), caller
    with db.configured(**SETTINGS):
        blocks = db.stream_blocks(*_statement(found, asked))
    return iter(partial(next, blocks, []), [])


def _statement(found: Labelled, asked: tuple[object, ...]) -> tuple[Any, ...]:
    """The statement with the metrics of the task, how many rows of it to take at a time, and its
    values.
    """
    if found.version.classes:
        keys = {"of_pair": "t.label, t.prediction", "of_class": "c.key, c.value::float8"}
        sets = {name: f"({columns}), " if found.groups else "" for name, columns in keys.items()}
        return (
            sql("understanding.classification", **sets),
            FETCHED,
            list(found.version.classes),
            *asked,
        )
    return sql("understanding.regression", of_all="(), " if found.groups else ""), FETCHED, *asked


def evaluation_blocks_of(
    db: Database, gd: dict[str, Any], arguments: Arguments, caller: str | None
) -> Iterator[Block]:
    """Predictions of the rows that have a target, block by block; the ids are arrays of the target
    and the group.

    `caller` has the path and the settings of the session that evaluates, as JSON.
    """
    told = argument_checks.parse_object("caller", caller)
    db.adopt_caller(
        argument_checks.check_type("path", told.get("path"), str),
        argument_checks.check_type("settings", told.get("settings"), dict),
    )
    found = _labelled(db, gd, arguments, resolve_source)
    rows = _known(db, read_blocks(db, found.whole, found.raw), found.version.target)
    return predict_blocks(db, gd, found.whole, rows)


def _labelled(
    db: Database,
    gd: dict[str, Any],
    arguments: Arguments,
    read: Callable[[Catalog, Version, str | None], RawSource],
) -> Labelled:
    model, source, group_by = arguments
    version = find_deployed_version(db, MODULE, model)
    catalog = Catalog(db, MODULE)
    rows = read(catalog, version, source)
    target = usable_label_expression(MODULE, rows.columns, version.target, version.task)
    groups, whole = (
        _groups(rows.columns, group_by or (), rows.table),
        load_grouped_model(catalog, gd, version, rows),
    )
    families = {column.name: column.family for column in rows.columns if column.name in groups}
    pair = _pair(target, {name: families[name] for name in groups})
    raw = SourceQuery(
        rows.build_from_item(version.target, whole.group_column, *groups),
        rows.recipe,
        pair,
        rows.settings,
    )
    return Labelled(version, whole, rows.table, raw, groups)


def _pair(target: Expression, groups: Mapping[str, str | None]) -> Expression:
    """The target and the group of a row as the text of an array; NULL where the target is not
    known.

    Groups are columns by their names, with their families.
    """
    members = ", ".join(
        f"%s::text, {as_json(f't.{quote_identifier(name)}', family)}"
        for name, family in groups.items()
    )
    group = f"pg_catalog.jsonb_build_object({members})::text" if groups else "NULL::text"
    text = f"CASE WHEN {target.text} IS NOT NULL THEN ARRAY[{target.text}::text, {group}]::text END"
    return Expression(text, (*target.values, *target.values, *groups))


def _groups(
    columns: Sequence[RawColumn], wanted: Sequence[str | None], table: Relation
) -> tuple[str, ...]:
    """Names of columns, which may be written as in SQL, too."""
    known = [column.name for column in columns]
    names = ("" if name is None else name for name in wanted)
    return tuple(
        dict.fromkeys(
            name
            if name in known
            else read_column_name(MODULE, known, name, "group_by", table.spelling)
            for name in names
        )
    )


def _known(db: Database, blocks: Iterator[list[Row]], target: str) -> Iterator[list[Row]]:
    """The rows that have an id; at the end the others are told of."""
    rows = missing = 0
    for block in blocks:
        known = [row for row in block if row["id"] is not None]
        rows, missing = rows + len(known), missing + len(block) - len(known)
        if known:
            yield known
    if missing:
        db.notice(f"{MODULE}: {missing} rows have no {target}, and are left out")
    if not rows:
        db.notice(f"{MODULE}: there are no rows with a {target}")
