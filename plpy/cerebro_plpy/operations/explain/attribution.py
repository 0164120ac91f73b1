"""`cerebro.attribution`: compute the contribution of each column to the predictions of rows.

The rows are explained block by block, like predictions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Optional

from cerebro_plpy.database.call_status import EXPLAINING
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.sessions.spi import Database, Globals, Row
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.operations.explain.importance import list_positions
from cerebro_plpy.operations.predict.model_predictor import describe_arrays, make_predictor
from cerebro_plpy.operations.predict.predict_table import (
    SourceQuery,
    load_grouped_model,
    read_blocks,
    request_answers,
    split_by_version,
    start_blocks,
)
from cerebro_plpy.operations.predict.prediction_ids import choose_id_columns, make_id_text
from cerebro_plpy.operations.predict.prediction_source import (
    find_deployed_version,
    resolve_source_with_notice,
)
from cerebro_plpy.preprocessing.scoring.occlusion_patches import Patch, list_patches
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.trainer_client import request_schema

MODULE = "attribution"
BLOCK_ROWS = 1024
Texts = list[Optional[str]]
Attributed = tuple[
    Texts,  # ids
    list[str],  # columns
    Texts,  # bounds of patches
    Texts,  # texts of the columns' values
    bytes,  # attributions, text of an array
    bytes,  # gaps, text of an array
]


class AttributionArguments(NamedTuple):
    """The arguments of a call, None for NULL."""

    model: str | None
    source: str | None
    id_col: str | None
    query: str | None  # in place of a source


def attribution_blocks_of(
    db: Database, gd: Globals, arguments: AttributionArguments
) -> Iterator[Attributed]:
    """Explain the rows of a source; the first block is explained when this returns."""
    db.status.begin_quietly(EXPLAINING)
    catalog = Catalog(db, MODULE, takes_query=True)
    version = find_deployed_version(db, MODULE, arguments.model)
    raw_source = resolve_source_with_notice(catalog, version, arguments.source, arguments.query)
    recipe = raw_source.recipe
    covered_patches = list_patches(recipe)
    fields = {
        "arrays": describe_arrays(version),
        "columns": list_positions(version.recipe, version.recipe.places),
        "patches": list_positions(version.recipe, covered_patches),
    }
    grouped_model = load_grouped_model(catalog, gd, version, raw_source)
    id_columns = choose_id_columns(catalog, raw_source, arguments.id_col)
    names = [feature.column for feature in recipe.inputs]
    query = SourceQuery(
        raw_source.build_from_item(*id_columns, grouped_model.group_column),
        recipe,
        _make_texts(make_id_text(db, raw_source, id_columns), names),
        raw_source.settings,
    )
    header = request_schema.build_request("attribute", fields)
    blocks = read_blocks(db, grouped_model, query, BLOCK_ROWS)
    explained = (
        _format_block(rows, answer, names, covered_patches)
        for group_version, version_blocks in split_by_version(grouped_model, blocks)
        for rows, answer in request_answers(
            version_blocks, make_predictor(db, gd, group_version, header)
        )
    )
    return start_blocks(explained)


def _make_texts(id_text: Expression, columns: list[str]) -> Expression:
    """Return an array with the text of a row's id and the texts of its columns."""
    parts = [id_text.text, *(f"t.{quote_identifier(column)}::text" for column in columns)]
    return Expression(f"ARRAY[{', '.join(parts)}]", id_text.values)


def _format_block(
    rows: list[Row], answer: list[bytes], names: list[str], covered_patches: Sequence[Patch]
) -> Attributed:
    """Return a line for each column of each row, followed by a line for each patch of the row.

    A patch has no text: it would be the same as that of its column.
    """
    columns = names + [patch.column for patch in covered_patches]
    bounds: Texts = [None] * len(names)
    bounds += [f"{{{','.join(map(str, patch.bounds))}}}" for patch in covered_patches]
    ids: Texts = []
    texts: Texts = []
    for row in rows:
        row_id, *values = row["id"]
        ids += [row_id] * len(columns)
        texts += [*values, *[None] * len(covered_patches)]
    attributions, gaps = answer
    return ids, columns * len(rows), bounds * len(rows), texts, attributions, gaps
