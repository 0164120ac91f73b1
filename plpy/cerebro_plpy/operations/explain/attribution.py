"""Why a model by name predicts what it does for raw rows: what each column adds, block by block
like predictions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Optional

from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.operations.explain.importance import places
from cerebro_plpy.operations.predict.model_predictor import describe_arrays, make_predictor
from cerebro_plpy.operations.predict.predict_table import (
    SourceQuery,
    choose_id_column,
    load_grouped_model,
    make_id_text,
    read_blocks,
    request_answers,
    split_by_version,
)
from cerebro_plpy.operations.predict.prediction_source import (
    find_deployed_version,
    resolve_source_with_notice,
)
from cerebro_plpy.preprocessing.scoring.occlusion_patches import Patch, patches
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.trainer_client import request_schema

MODULE = "attribution"
BLOCK_ROWS = 1024
Texts = list[Optional[str]]
Attributed = tuple[Texts, list[str], Texts, Texts, bytes, bytes]


def attribution_blocks_of(
    db: Database, gd: dict[str, Any], arguments: tuple[str | None, str | None, str | None]
) -> Iterator[Attributed]:
    """Of each block ids, columns, patches, texts, attributions and gaps; `arguments` are model,
    source and id column.

    The first block is explained when this returns.
    """
    model, source, id_col = arguments
    catalog = Catalog(db, MODULE)
    version = find_deployed_version(db, MODULE, model)
    rows = resolve_source_with_notice(catalog, version, source)
    recipe = rows.recipe
    names, covered = [each.column for each in recipe.inputs], patches(recipe)
    asked = {
        "arrays": describe_arrays(version),
        "columns": places(version.recipe, version.recipe.places),
        "patches": places(version.recipe, covered),
    }
    whole, id_column = (
        load_grouped_model(catalog, gd, version, rows),
        choose_id_column(catalog, rows.table, id_col),
    )
    texts = _texts(make_id_text(db, rows, id_column), names)
    raw = SourceQuery(
        rows.build_from_item(id_column, whole.group_column), recipe, texts, rows.settings
    )
    found = (
        _block(block, told, names, covered)
        for each, its in split_by_version(whole, read_blocks(db, whole, raw, BLOCK_ROWS))
        for block, told in request_answers(
            its, make_predictor(db, gd, each, request_schema.build_request("attribute", asked))
        )
    )
    return chain([first for first in (next(found, None),) if first], found)


def _texts(name: Expression, columns: list[str]) -> Expression:
    """An array of the text of a row's id, and of those of its columns."""
    parts = [name.text, *(f"t.{quote_identifier(column)}::text" for column in columns)]
    return Expression(f"ARRAY[{', '.join(parts)}]", name.values)


def _block(
    rows: list[Row], told: list[bytes], columns: list[str], covered: Sequence[Patch]
) -> Attributed:
    """A line for each column of each row, and then one for each patch, of which the text would be
    no other.
    """
    lines = columns + [each.column for each in covered]
    bounds = [None] * len(columns) + [f"{{{','.join(map(str, each.bounds))}}}" for each in covered]
    ids: Texts = []
    texts: Texts = []
    for row in rows:
        name, *values = row["id"]
        ids += [name] * len(lines)
        texts += [*values, *[None] * len(covered)]
    attributions, gaps = told
    return ids, lines * len(rows), bounds * len(rows), texts, attributions, gaps
