"""The functions of sql/61-named-prediction.sql."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cerebro_plpy.api.entry import Globals, call, call_declared, stepped
from cerebro_plpy.database.sessions.spi import raise_to_sql
from cerebro_plpy.tables.models.granted_versions import ModelName

if TYPE_CHECKING:
    from cerebro_plpy.operations.predict.predict_table import Block


def predict_blocks(
    plpy: Any,
    gd: Globals,
    model: str | None,
    source: str | None,
    id_col: str | None,
    owner: str | None,
) -> Iterator[Block]:
    """Predictions for the rows of a source, block by block.

    What is wrong with a call is told here: of errors of an iterator PL/Python makes the detail of
    its own.
    """
    from cerebro_plpy.operations.predict.predict_table import predict_source

    return stepped(
        plpy,
        gd,
        call(
            plpy, gd, lambda db: predict_source(db, gd, ModelName(model, owner), (source, id_col))
        ),
    )


def predict_ahead(
    plpy: Any,
    gd: Globals,
    model: str | None,
    source: str | None,
    id_col: str | None,
    owner: str | None,
    drawn: float | None,
) -> str:
    """Predict the rows of a source before they are wanted; what `predicted` is to be told."""
    from cerebro_plpy.operations.predict import precomputed_predictions as ahead

    return call(
        plpy, gd, lambda db: ahead.predict_ahead(db, gd, ModelName(model, owner), (source, id_col))
    )


def predicted(
    plpy: Any,
    gd: Globals,
    told: str | None,
    model: str | None,
    source: str | None,
    id_col: str | None,
    owner: str | None,
) -> Iterator[Block]:
    """Those predictions, block by block; no statement is run, for segments may be at work
    already.
    """
    from cerebro_plpy.operations.predict import precomputed_predictions as ahead

    return raise_to_sql(plpy, lambda: ahead.read_predictions(told))


def predict_row(
    plpy: Any, gd: Globals, model: str | None, record: str | None, owner: str | None
) -> str:
    """The prediction for one row, as JSON."""
    from cerebro_plpy.operations.predict.predict_row import predict_record

    return call_declared(
        plpy, gd, lambda db: predict_record(db, gd, ModelName(model, owner), record)
    )


def sealed_version(plpy: Any, gd: Globals) -> None:
    """Fill the trainer of this session with a version that the caller was granted."""
    from cerebro_plpy.operations.models.load_granted_model import fill

    call_declared(plpy, gd, lambda db: fill(db, gd))
