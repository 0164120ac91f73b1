"""Notices of `cerebro.refresh` about rows and columns that it does not learn from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import DatatypeMismatch, InvalidParameter, UndefinedColumn, quote_text
from cerebro_plpy.operations.train.model_lineage import Lineage
from cerebro_plpy.preprocessing.learning.raw_table import RawTable

MORE_EPOCHS = 20
"""Epochs of the call that messages suggest for training longer."""


@contextmanager
def explain_changed_source(source: Relation) -> Iterator[None]:
    """Replace hints about arguments of `cerebro.train` that a refresh does not have."""
    try:
        yield
    except (DatatypeMismatch, InvalidParameter, UndefinedColumn) as error:
        error.hint = (
            f"Undo the change of {source.spelling}, or train the model again with cerebro.train."
        )
        raise


def report_nothing_newer(db: Database, source: Relation, model: str | None, condition: str) -> None:
    """Give a notice that no rows fulfil the condition on new rows."""
    db.notice(
        f"nothing to do: {source.spelling} has no rows with {condition}, up to which the newest "
        f"version of model {model!r} has read it. Rows that were entered later with smaller values "
        f"count without since: {_format_call(model)} To train longer on the same rows: "
        f"{_format_call(model, MORE_EPOCHS)}"
    )


def report_same_rows(db: Database, source: Relation, model: str | None) -> None:
    """Give a notice that a version was trained on the rows that a source has now."""
    db.notice(
        f"nothing to do: {source.spelling} has the rows that a version of model {model!r} was "
        f"trained on. To train longer on them: {_format_call(model, MORE_EPOCHS)}"
    )


def report_new_columns(db: Database, table: RawTable, lineage: Lineage) -> None:
    """Give a notice about columns that the source did not have when the recipe was learned."""
    reading = lineage.train_spec.source.reading or {}
    recorded = reading.get("columns")
    if not recorded:
        return
    names = [
        column.name for column in table.columns if column.readable and column.name not in recorded
    ]
    if names:
        db.notice(
            f"columns of {table.relation.spelling} that came after the version was trained are "
            f"left out: {', '.join(names)}. cerebro.train looks at all columns again"
        )


def _format_call(model: str | None, epochs: int | None = None) -> str:
    """Return a call of `cerebro.refresh`, for messages."""
    more = "" if epochs is None else f", epochs => {epochs}"
    return f"SELECT * FROM cerebro.refresh({quote_text(str(model))}{more});"
