"""Predict by the name of a model: the rows of a table or view, block by block, in the caller's own session.

Nothing is kept of the caller's between two blocks but a cursor, and a trainer that ends by itself: the query may be
left after any of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Any, Optional

from cerebro_plpy.calls.version_prediction import columns_told, predictor
from cerebro_plpy.database.caller import Database, Row
from cerebro_plpy.database.caller_session import LocalSession
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.names import quote_identifier, split_columns
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import InvalidName, UndefinedColumn
from cerebro_plpy.features.columns import raw_columns
from cerebro_plpy.features.encoding import TEXTS, network_inputs
from cerebro_plpy.features.matching import matched
from cerebro_plpy.features.recipe import Recipe
from cerebro_plpy.tables import versions
from cerebro_plpy.tables.versions import Version
from cerebro_plpy.trainer.predictor import Predictor

MODULE = "predict"
# Rows of a block, and numbers that go into one or come out of it: what is on its way is a few MB.
BLOCK_ROWS, BLOCK_ELEMENTS = 4096, 1 << 18
# The texts of values as those were that the recipe was learned of; but for the zone, which those of ids keep.
STYLE = {name: value for name, value in TEXTS.items() if name != "timezone"}
# Compiling the encoding takes longer than it saves, and all rows are wanted as a rule.
SETTINGS = {"cursor_tuple_fraction": "1", "jit": "off"}
Block = tuple[Optional[float], list[Optional[str]], Optional[bytes], Optional[bytes], Optional[bytes], Optional[bytes]]


def predict_source(
    db: Database, gd: dict[str, Any], arguments: tuple[str | None, str | None, str | None], *, shared: bool = True
) -> Iterator[Block]:
    """Margin, ids, and predictions of each block; `arguments` are the model, the source and the id column.

    The first block is predicted when this returns. Where the session is not `shared` with a query that takes block by
    block, its style has to be that of recipes already.
    """
    db.platform.check_process(MODULE)
    model, source, id_col = arguments
    catalog = Catalog(db, MODULE)
    version = versions.deployed(db, MODULE, model)
    table = catalog.relation(source, "source")
    recipe = matched(MODULE, version.recipe, raw_columns(LocalSession(db), table.oid), table.spelling)
    blocks = _blocks(db, version, recipe, (table, _id_column(catalog, table, id_col)))
    rows = iter(partial(_styled if shared else _checked, db, blocks), [])
    told = _predicted(version, rows, predictor(db, gd, version))
    return chain([first for first in (next(told, None),) if first], told)


def _predicted(version: Version, blocks: Iterator[list[Row]], teller: Predictor) -> Iterator[Block]:
    """While the trainer computes a block, and the query has the one before, the next one is read."""
    try:
        before: list[Row] = []
        for rows in blocks:
            told = teller.answer() if before else []
            _ask(teller, rows)
            if before:
                yield _block(version, before, told)
            before = rows
        if before:
            yield _block(version, before, teller.answer())
    finally:
        teller.end()


def _blocks(db: Database, version: Version, recipe: Recipe, of: tuple[Relation, str | None]) -> Iterator[list[Row]]:
    table, name = of
    made = [(each.name, each.sent) for each in network_inputs(recipe)]
    given = "NULL::text" if name is None else f"t.{quote_identifier(name)}::text"
    text = "".join(f", {expression.text} AS {as_}" for as_, expression in made)
    statement = sql("predict.rows", id=given, inputs=text, table=table.quoted)
    width = max(len(recipe.numbers) + len(recipe.cardinalities), len(version.classes))
    size = max(1, min(BLOCK_ROWS, BLOCK_ELEMENTS // width))
    with db.configured(**SETTINGS):
        return db.blocks(statement, size, *(value for _, expression in made for value in expression.values))


def _styled(db: Database, blocks: Iterator[list[Row]]) -> list[Row]:
    """The next block; the style of the session is its caller's again."""
    with db.configured(**STYLE):
        return next(blocks, [])


def _checked(db: Database, blocks: Iterator[list[Row]]) -> list[Row]:
    """The next block, by a single statement: see `Platform.check_interrupts`."""
    db.check_interrupts()
    return next(blocks, [])


def _ask(teller: Predictor, rows: list[Row]) -> None:
    names = [name for name in rows[0] if name != "id"]
    teller.ask(len(rows), [b"".join([row[name] for row in rows]) for name in names])


def _block(version: Version, rows: list[Row], told: list[bytes]) -> Block:
    prediction, probability, probabilities, number = columns_told(version, told)
    return version.margin, [row["id"] for row in rows], prediction, probability, probabilities, number


def _id_column(catalog: Catalog, table: Relation, given: str | None) -> str | None:
    """The column that tells the rows apart: by default that of the primary key, None where no single one does."""
    if given is None:
        key: str | None = catalog.db.value(sql("predict.key"), table.oid)
        return key
    columns = catalog.columns(table)
    try:
        (name,) = split_columns(given)
        columns[name]
    except (ValueError, KeyError, InvalidName) as error:
        raise UndefinedColumn(
            f"{catalog.module} error: {table.spelling} has no column {given!r}, which id_col names.",
            hint=f"Its columns are: {', '.join(columns)}. Put a name with capitals or other signs in double quotes.",
        ) from error
    return name
