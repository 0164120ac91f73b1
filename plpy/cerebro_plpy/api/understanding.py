"""The functions of sql/63-understanding.sql."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from cerebro_plpy.api.entry import Globals, call, call_for_blocks, report_errors
from cerebro_plpy.database.sessions.spi import Row

if TYPE_CHECKING:
    from cerebro_plpy.operations.explain.attribution import Attributed
    from cerebro_plpy.operations.predict.predict_table import Block


@report_errors
def evaluation_blocks(
    plpy: Any,
    gd: Globals,
    model: str | None,
    source: str | None,
    group_by: str | None,
    query: str | None,
    level: float | None,
    caller: str | None,
) -> Iterator[Block]:
    """Predict the rows of a source that have a target; return the blocks of predictions."""
    from cerebro_plpy.operations.explain.evaluate_model import (
        EvaluationArguments,
        evaluation_blocks_of,
    )

    arguments = EvaluationArguments(model, source, group_by, query, level)
    return call_for_blocks(plpy, gd, lambda db: evaluation_blocks_of(db, gd, arguments, caller))


@report_errors
def evaluate(
    plpy: Any,
    gd: Globals,
    model: str | None,
    source: str | None,
    group_by: str | None,
    query: str | None,
    level: float | None,
) -> Iterator[Row]:
    """Evaluate a model on a source; return a row per metric."""
    from cerebro_plpy.operations.explain.evaluate_model import EvaluationArguments, evaluate_source

    arguments = EvaluationArguments(model, source, group_by, query, level)
    blocks = call_for_blocks(plpy, gd, lambda db: evaluate_source(db, gd, arguments))
    return chain.from_iterable(blocks)


@report_errors
def importance(
    plpy: Any, gd: Globals, model: str | None, source: str | None, query: str | None
) -> list[Row]:
    """Return the importance of each column of a source."""
    from cerebro_plpy.operations.explain.importance import importance as columns_importance

    return call(plpy, gd, lambda db: columns_importance(db, gd, model, source, query))


@report_errors
def version_importance(
    plpy: Any, gd: Globals, model: str | None, version: int | None, seconds: float | None
) -> list[Row]:
    """Return the importances of the columns of a version over its hold-out rows."""
    from cerebro_plpy.operations.train.holdout_importance import compute_holdout_importance

    return call(plpy, gd, lambda db: [compute_holdout_importance(db, gd, model, version, seconds)])


@report_errors
def attribution_blocks(
    plpy: Any,
    gd: Globals,
    model: str | None,
    source: str | None,
    id_col: str | None,
    query: str | None,
) -> Iterator[Attributed]:
    """Attribute the predictions of a source to its columns; return the blocks of attributions."""
    from cerebro_plpy.operations.explain.attribution import (
        AttributionArguments,
        attribution_blocks_of,
    )

    arguments = AttributionArguments(model, source, id_col, query)
    return call_for_blocks(plpy, gd, lambda db: attribution_blocks_of(db, gd, arguments))
