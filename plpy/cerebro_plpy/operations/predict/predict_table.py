"""Predict by the name of a model: the rows of a table or view, block by block, in the caller's own
session.

Nothing is kept of the caller's between two blocks but a cursor, and a trainer that ends by itself:
the query may be left after any of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby
from typing import Any, NamedTuple, Optional

from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.reading import STYLES
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.operations.predict.model_predictor import (
    ModelOf,
    columns_told,
    inputs,
    models_of_groups,
    predictor,
)
from cerebro_plpy.operations.predict.prediction_source import RawSource, raw_source_with_notice
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.rows.weight_column import find_column, read_column_name
from cerebro_plpy.preprocessing.values.column_values import distinct_text
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.tables.models import granted_versions
from cerebro_plpy.tables.models.granted_versions import ModelName, UsableVersion
from cerebro_plpy.trainer_client.predictor import Predictor

MODULE = "predict"
GROUP = "cerebro_group"
# Rows of a block, and numbers that go into one or come out of it: what is on its way is a few MB.
BLOCK_ROWS, BLOCK_ELEMENTS = 4096, 1 << 18
# Compiling the encoding takes longer than it saves, and all rows are wanted as a rule.
SETTINGS = {"cursor_tuple_fraction": "1", "jit": "off"}
Block = tuple[
    Optional[float],
    list[Optional[str]],
    Optional[bytes],
    Optional[bytes],
    Optional[bytes],
    Optional[bytes],
]


class Raw(NamedTuple):
    """Raw rows: what stands in FROM, the recipe as it is over its columns, what makes the text of
    each id, and the settings under which they are read."""

    table: str
    recipe: Recipe
    id: Expression
    settings: Mapping[str, str]


def predict_source(
    db: Database,
    gd: dict[str, Any],
    wanted: ModelName,
    arguments: tuple[str | None, str | None],
    *,
    shared: bool = True,
) -> Iterator[Block]:
    """Margin, ids, and predictions of each block; `arguments` are the source and the id column.

    The first block is predicted when this returns. If the session is not `shared` with a query that
    takes block by block, all of them are taken before the statement ends.
    """
    db.platform.check_process(MODULE)
    source, id_col = arguments
    catalog = Catalog(db, MODULE)
    version = granted_versions.find(db, MODULE, wanted)
    rows = raw_source_with_notice(catalog, version, source)
    whole, id_column = (
        whole_version(catalog, gd, version, rows),
        id_name(catalog, rows.table, id_col),
    )
    raw = Raw(
        rows.rows(id_column, whole.column), rows.recipe, id_text(db, rows, id_column), rows.settings
    )
    blocks = predicted(db, gd, whole, raw_blocks(db, whole, raw, shared=shared))
    return chain([first for first in (next(blocks, None),) if first], blocks)


class Whole(NamedTuple):
    """A version, and its models of groups by the texts of their values. The `names` of those that
    have one are known to the owner alone. The column that says the group is of a `family`."""

    version: UsableVersion
    model_of: ModelOf
    names: Sequence[str] | None = None
    family: str | None = None

    @property
    def column(self) -> str | None:
        """That whose values name the groups, if there are any."""
        return self.version.group_by if self.names is None or self.names else None


def whole_version(
    catalog: Catalog, gd: dict[str, Any], version: UsableVersion, rows: RawSource
) -> Whole:
    """A version with its models of groups; raises UndefinedColumn where rows cannot tell their
    groups.
    """
    family = None
    if version.group_by is not None:
        where = f" in {rows.table.spelling}"
        family = find_column(
            catalog.module, rows.columns, version.group_by, "the model's group_by", where
        ).family
    return Whole(version, *models_of_groups(catalog.db, gd, catalog.module, version), family)


def predicted(
    db: Database, gd: dict[str, Any], whole: Whole, blocks: Iterator[list[Row]]
) -> Iterator[Block]:
    """While the trainer computes a block, and the query has the one before, the next one is read.

    Rows of groups come group by group; at the end the caller is told how many of them the model of
    all rows predicts.
    """
    others = 0
    for version, its in by_version(whole, blocks):
        for rows, told in answered(its, predictor(db, gd, version)):
            others += len(rows) if version is whole.version else 0
            prediction, probability, probabilities, number = columns_told(version, told)
            yield (
                version.margin,
                [row["id"] for row in rows],
                prediction,
                probability,
                probabilities,
                number,
            )
    if others and whole.column:
        db.notice(
            f"{others} rows have no model of their own by {whole.column}: that of all rows "
            "predicts them"
        )


def by_version(
    whole: Whole, blocks: Iterator[list[Row]]
) -> Iterator[tuple[UsableVersion, Iterator[list[Row]]]]:
    """Which model predicts which rows, of those that come group by group."""
    for model, parts in groupby(_by_model(whole, blocks), key=lambda part: part[0]):
        yield model, (rows for _, rows in parts)


def _by_model(
    whole: Whole, blocks: Iterator[list[Row]]
) -> Iterator[tuple[UsableVersion, list[Row]]]:
    """The rows of each block, apart where they are of several groups."""
    for block in blocks:
        for group, rows in groupby(block, key=lambda row: row.get(GROUP)):
            yield (
                whole.version if group is None else whole.model_of(group) or whole.version,
                list(rows),
            )


def answered(
    blocks: Iterator[list[Row]], teller: Predictor
) -> Iterator[tuple[list[Row], list[bytes]]]:
    """The rows of each block, and what the trainer answered of them."""
    try:
        before: list[Row] = []
        for rows in blocks:
            told = teller.receive_block() if before else []
            _ask(teller, rows)
            if before:
                yield before, told
            before = rows
        if before:
            yield before, teller.receive_block()
    finally:
        teller.end()


def raw_blocks(
    db: Database, whole: Whole, raw: Raw, most: int = BLOCK_ROWS, *, shared: bool = True
) -> Iterator[list[Row]]:
    """The rows of a source, each with its id and what the network is given of it, so many at a time
    at most; those of a group after those of another.

    See `predict_source` for a session that is `shared`.
    """
    version = whole.version
    made = [(each.name, each.sent) for each in inputs(version, raw.recipe)]
    table = raw.table
    if whole.column:
        group = _group(whole, whole.column)
        made.append((GROUP, group))
        table = sql("predict.in_groups", table=raw.table, group=group.inlined())
    text = "".join(f", {expression.text} AS {as_}" for as_, expression in made)
    statement = sql("predict.rows", id=raw.id.text, inputs=text, table=table)
    width = max(raw.recipe.room, len(version.classes))
    size = max(1, min(most, BLOCK_ELEMENTS // width))
    values = (*raw.id.values, *(value for _, expression in made for value in expression.values))
    with db.configured(**SETTINGS, **raw.settings):
        blocks = db.stream_blocks(statement, size, *values)
    if not shared:
        return _taken_at_once(db, raw.settings, blocks)
    return iter(partial(_next, db, raw.settings, blocks), [])


def _group(whole: Whole, column: str) -> Expression:
    """The group of a row that has a model of its own; of any, where it is not known which have."""
    value = distinct_text(column, whole.family)
    if whole.names is None:
        return value
    return Expression(
        f"CASE WHEN {value.text} = ANY (%s::text[]) THEN {value.text} END",
        (*value.values, list(whole.names), *value.values),
    )


def _next(db: Database, settings: Mapping[str, str], blocks: Iterator[list[Row]]) -> list[Row]:
    """Return the next block; the settings of the session are its caller's again."""
    with db.configured(**settings):
        return next(blocks, [])


def _taken_at_once(
    db: Database, settings: Mapping[str, str], blocks: Iterator[list[Row]]
) -> Iterator[list[Row]]:
    """Yield all blocks, each by a single statement: see `Platform.check_interrupts`."""
    formats = {name: value for name, value in settings.items() if name != "search_path"}
    with db.configured(**formats):
        while True:
            db.check_interrupts()
            block = next(blocks, [])
            if not block:
                return
            yield block


def _ask(teller: Predictor, rows: list[Row]) -> None:
    names = [name for name in rows[0] if name not in ("id", GROUP)]
    teller.send_block(len(rows), [b"".join([row[name] for row in rows]) for name in names])


def id_text(db: Database, source: RawSource, name: str | None) -> Expression:
    """Return what makes the text of the column that tells rows apart: the text that it has in the
    caller's session.
    """
    if name is None:
        return Expression("NULL::text")
    value = f"t.{quote_identifier(name)}"
    if db.value(sql("predict.has_one_text"), source.table.oid, name):
        return Expression(f"{value}::text")
    return Expression(
        f"cerebro.text_under({value}, {', '.join(['%s::text'] * len(STYLES))})", caller_styles(db)
    )


def caller_styles(db: Database) -> tuple[str, ...]:
    """Return the settings that decide the text of a value in the caller's session, in the order of
    STYLES.
    """
    return tuple(db.caller_settings[name] for name in STYLES)


def id_name(catalog: Catalog, table: Relation, given: str | None) -> str | None:
    """Return the column that tells the rows apart: by default that of the primary key, None if no
    single one does.
    """
    if given is None:
        key: str | None = catalog.db.value(sql("predict.key"), table.oid)
        return key
    return read_column_name(
        catalog.module, catalog.read_columns(table), given, "id_col", table.spelling
    )
