"""The functions of sql/64-freshness.sql."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import Globals, call, check_counts, read_package_version, report_errors
from cerebro_plpy.database.sessions.spi import Row


@report_errors
def drift(
    plpy: Any, gd: Globals, model: str | None, source: str | None, query: str | None
) -> list[Row]:
    """Return how far the columns of a source have drifted from the training rows of a model."""
    from cerebro_plpy.operations.explain import drift as drift_operation

    return call(plpy, gd, lambda db: drift_operation.drift(db, model, source, query))


@report_errors
def verify(plpy: Any, gd: Globals, model: str | None, version: str | int | None) -> list[Row]:
    """Train a version again; return the findings of the comparison."""
    from cerebro_plpy.operations.models import reproduce

    return call(plpy, gd, lambda db: reproduce.verify(db, gd, model, version))


@report_errors
@check_counts
def refresh(
    plpy: Any,
    gd: Globals,
    model: str | None,
    since: str | None,
    epochs: int | None,
    budget: str | None,
) -> list[Row]:
    """Train a model further, on new rows or for more epochs."""
    from cerebro_plpy.operations.models import refresh as refresh_operation

    arguments = refresh_operation.RefreshArguments(model, since, epochs, budget)
    return call(
        plpy, gd, lambda db: refresh_operation.refresh(db, gd, arguments, read_package_version())
    )
