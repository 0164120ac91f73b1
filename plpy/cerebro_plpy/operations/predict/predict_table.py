"""`cerebro.predict`: predict the rows of a table or view block by block, by the name of a model.

The caller's own session reads the rows. Between two blocks it holds only a cursor and a trainer
that ends by itself, because a query may stop after any block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, groupby, islice
from typing import Any, NamedTuple, Optional

from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.reading import SettingValues
from cerebro_plpy.database.sessions.spi import Database, Globals, Row
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.operations.predict.interval_level import check_level, find_margin
from cerebro_plpy.operations.predict.model_predictor import (
    GROUP_COLUMN,
    UNKNOWN_COLUMN,
    FindGroupVersion,
    find_group_versions,
    find_unknown,
    list_inputs,
    make_row_predictor,
    report_unknown,
    select_expressions,
    split_answer,
)
from cerebro_plpy.operations.predict.prediction_ids import choose_id_columns, make_id_text
from cerebro_plpy.operations.predict.prediction_source import (
    RawSource,
    resolve_source_with_notice,
)
from cerebro_plpy.operations.predict.row_type import make_row_text, read_row_type
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.recipe.unknown_values import UnknownValues
from cerebro_plpy.preprocessing.rows.groups import check_group_values, group_text
from cerebro_plpy.preprocessing.rows.weight_column import find_column
from cerebro_plpy.preprocessing.scoring.error_quantiles import USUAL_LEVEL
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.tables.models import granted_versions
from cerebro_plpy.tables.models.granted_versions import ModelName, UsableVersion
from cerebro_plpy.trainer_client.predictor import Predictor

MODULE = "predict"
OTHER_COLUMNS = ("id", GROUP_COLUMN, UNKNOWN_COLUMN)
"""Columns of a row that are not sent to the trainer."""
BLOCK_ROWS = 4096
BLOCK_ELEMENTS = 1 << 18
"""Numbers in the inputs or the outputs of a block, so that a block takes a few MB."""
SETTINGS = {"cursor_tuple_fraction": "1", "jit": "off"}
"""Usually all rows are read; and compiling the encoding takes longer than it saves."""
Block = tuple[
    Optional[float],  # margin
    list[Optional[str]],  # ids
    Optional[bytes],  # predictions; this and the next ones are texts of arrays
    Optional[bytes],  # probabilities of the predictions
    Optional[bytes],  # probabilities of all classes
    Optional[bytes],  # numbers
]


RowBlocks = Iterator[list[Row]]


class RowsArguments(NamedTuple):
    """The arguments of a call that name rows to predict, None for NULL."""

    source: str | None
    id_col: str | None = None
    row_type: int | None = None  # oid of a type whose text the rows get in place of ids
    query: str | None = None  # in place of a source
    level: float | None = USUAL_LEVEL  # of intervals


class SourceQuery(NamedTuple):
    """The query that reads raw rows."""

    table: str  # FROM item
    recipe: Recipe  # as it is over the columns of the table
    id: Expression  # text of each row's id
    settings: SettingValues  # settings under which the rows are read
    unknown_label: Expression | None = None  # the text of a target that the model does not know


class GroupedModel(NamedTuple):
    """A version and the models of its groups of rows."""

    version: UsableVersion
    find_group_version: FindGroupVersion
    groups: Sequence[str] | None = None  # groups that have a model; None if only the owner knows
    family: str | None = None  # type family of the group column

    @property
    def group_column(self) -> str | None:
        """Column that contains the groups; None if no group has a model."""
        if self.groups is not None and not self.groups:
            return None
        return self.version.group_by


def predict_source(
    db: Database,
    gd: Globals,
    model: ModelName,
    arguments: RowsArguments,
    *,
    shared: bool = True,
) -> Iterator[Block]:
    """Predict the rows of a source; the first block is predicted when this returns.

    Args:
        arguments: the source, and what identifies its rows.
        shared: the query that takes the blocks uses the session between two blocks. If False, all
            blocks are taken before the statement ends.
    """
    db.platform.check_process(MODULE)
    catalog = Catalog(db, MODULE, takes_query=True)
    version = granted_versions.find(db, MODULE, model)
    level = check_level(MODULE, version, arguments.level)
    if arguments.row_type is None:
        raw_source = resolve_source_with_notice(catalog, version, arguments.source, arguments.query)
        id_columns = choose_id_columns(catalog, raw_source, arguments.id_col)
        row_id = make_id_text(db, raw_source, id_columns)
    else:
        row_type = read_row_type(catalog, arguments.row_type)
        source = arguments.source
        if arguments.query is None:
            source = row_type.choose_source(MODULE, source)
        raw_source = resolve_source_with_notice(catalog, version, source, arguments.query)
        id_columns = row_type.find_columns(catalog, raw_source)
        row_id = make_row_text(raw_source, id_columns)
    grouped_model = load_grouped_model(catalog, gd, version, raw_source)
    query = SourceQuery(
        raw_source.build_from_item(*id_columns, grouped_model.group_column),
        raw_source.recipe,
        row_id,
        raw_source.settings,
    )
    rows = read_blocks(db, grouped_model, query, shared=shared)
    return start_blocks(predict_blocks(db, gd, grouped_model, rows, level))


def start_blocks(blocks: Iterator[Any]) -> Iterator[Any]:
    """Compute the first block now, so that its errors are raised by the call."""
    first = list(islice(blocks, 1))
    return chain(first, blocks)


def load_grouped_model(
    catalog: Catalog, gd: Globals, version: UsableVersion, source: RawSource
) -> GroupedModel:
    """Return a version with the models of its groups.

    Raises:
        UndefinedColumn: the source has no column for the groups.
        DatatypeMismatch: its values cannot be compared with the groups.
    """
    find, groups = find_group_versions(catalog.db, gd, catalog.module, version)
    if version.group_by is None:
        return GroupedModel(version, find, groups)
    column = find_column(
        catalog.module,
        source.columns,
        version.group_by,
        "the model's group_by",
        f" in {source.table.spelling}",
    )
    check_group_values(catalog.module, column, version.recipe.group, groups)
    return GroupedModel(version, find, groups, column.family)


def predict_blocks(
    db: Database, gd: Globals, grouped_model: GroupedModel, blocks: RowBlocks, level: float
) -> Iterator[Block]:
    """Yield the predictions of blocks of rows.

    The next block is read while the trainer computes one and the query processes the previous one.
    Rows are predicted group by group. A NOTICE counts the rows of groups without a model.
    """
    without_group = 0
    for version, version_blocks in split_by_version(grouped_model, blocks):
        predictor = make_row_predictor(db, gd, version)
        for rows, answer in request_answers(version_blocks, predictor):
            if version is grouped_model.version:
                without_group += len(rows)
            prediction, probability, probabilities, number = split_answer(version, answer)
            yield (
                find_margin(version, level),
                [row["id"] for row in rows],
                prediction,
                probability,
                probabilities,
                number,
            )
    column = grouped_model.group_column
    if without_group and column:
        db.notice(
            f"{count_nouns(without_group, 'row', 'has')} no model of their own by {column}: that "
            "of all rows predicts them"
        )


def split_by_version(
    grouped_model: GroupedModel, blocks: RowBlocks
) -> Iterator[tuple[UsableVersion, RowBlocks]]:
    """Yield the blocks of each version that predicts rows; the rows arrive group by group."""
    pairs = _assign_versions(grouped_model, blocks)
    for version, version_pairs in groupby(pairs, key=lambda pair: pair[0]):
        yield version, (rows for _, rows in version_pairs)


def _assign_versions(
    grouped_model: GroupedModel, blocks: RowBlocks
) -> Iterator[tuple[UsableVersion, list[Row]]]:
    """Yield blocks with the version that predicts them; a block of several groups is split."""
    for block in blocks:
        for group, rows in groupby(block, key=lambda row: row.get(GROUP_COLUMN)):
            group_version = None
            if group is not None:
                group_version = grouped_model.find_group_version(group)
            yield group_version or grouped_model.version, list(rows)


def request_answers(
    blocks: RowBlocks, predictor: Predictor
) -> Iterator[tuple[list[Row], list[bytes]]]:
    """Yield the rows of each block with the answer of the trainer."""
    try:
        previous: list[Row] = []
        for rows in blocks:
            if previous:
                answer = predictor.receive_block()
                _send_block(predictor, rows)
                yield previous, answer
            else:
                _send_block(predictor, rows)
            previous = rows
        if previous:
            yield previous, predictor.receive_block()
    finally:
        predictor.end()


def read_blocks(
    db: Database,
    grouped_model: GroupedModel,
    query: SourceQuery,
    max_rows: int = BLOCK_ROWS,
    *,
    shared: bool = True,
) -> RowBlocks:
    """Read the rows of a source group by group, each with its id and the inputs of the network.

    Args:
        max_rows: rows of a block; a block of many numbers has fewer.
        shared: see `predict_source`.
    """
    version = grouped_model.version
    inputs = {item.name: item.sent for item in list_inputs(version, query.recipe)}
    unknown = find_unknown(version, query.recipe, query.unknown_label)
    inputs[UNKNOWN_COLUMN] = unknown.selected
    table = query.table
    if grouped_model.group_column:
        group = _make_group_text(grouped_model, grouped_model.group_column)
        inputs[GROUP_COLUMN] = group
        table = sql("predict.in_groups", table=query.table, group=group.inlined())
    selected = select_expressions(inputs)
    statement = sql("predict.rows", id=query.id.text, inputs=f", {selected.text}", table=table)
    width = max(query.recipe.room, len(version.classes))
    size = max(1, min(max_rows, BLOCK_ELEMENTS // width))
    with db.configured(**SETTINGS, **query.settings):
        blocks = db.stream_blocks(statement, size, *query.id.values, *selected.values)
    if shared:
        blocks = iter(partial(_read_next, db, query.settings, blocks), [])
    else:
        blocks = _read_at_once(db, query.settings, blocks)
    return _count_unknown(db, version, unknown, blocks)


def _count_unknown(
    db: Database, version: UsableVersion, unknown: UnknownValues, blocks: RowBlocks
) -> RowBlocks:
    """Yield the blocks; NOTICEs count the values that the model does not know."""
    for block in blocks:
        unknown.add(row[UNKNOWN_COLUMN] for row in block)
        yield block
    report_unknown(db, version, unknown)


def _make_group_text(grouped_model: GroupedModel, column: str) -> Expression:
    """Return the group of a row: NULL for groups without a model, if the groups are known."""
    form = grouped_model.version.recipe.group
    value = group_text(column, grouped_model.family, form)
    if grouped_model.groups is None:
        return value
    return Expression(
        f"CASE WHEN {value.text} = ANY (%s::text[]) THEN {value.text} END",
        (*value.values, list(grouped_model.groups), *value.values),
    )


def _read_next(db: Database, settings: SettingValues, blocks: RowBlocks) -> list[Row]:
    """Return the next block; the session has the caller's settings again afterwards."""
    with db.configured(**settings):
        return next(blocks, [])


def _read_at_once(db: Database, settings: SettingValues, blocks: RowBlocks) -> RowBlocks:
    """Yield all blocks, each by a single statement: see `Platform.check_interrupts`."""
    formats = {name: value for name, value in settings.items() if name != "search_path"}
    with db.configured(**formats):
        while True:
            db.check_interrupts()
            block = next(blocks, [])
            if not block:
                return
            yield block


def _send_block(predictor: Predictor, rows: list[Row]) -> None:
    names = [name for name in rows[0] if name not in OTHER_COLUMNS]
    predictor.send_block(len(rows), [b"".join([row[name] for row in rows]) for name in names])
