"""The functions of sql/64-freshness.sql."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import Globals, call, read_package_version
from cerebro_plpy.database.sessions.spi import Row


def drift(plpy: Any, gd: Globals, model: str | None, source: str | None) -> list[Row]:
    """Return how far the columns of a source have drifted from the training rows of a model."""
    from cerebro_plpy.operations.explain import drift as drift_operation

    return call(plpy, gd, lambda db: drift_operation.drift(db, model, source))


def verify(plpy: Any, gd: Globals, model: str | None, version: str | None) -> list[Row]:
    """Train a version again; return the findings of the comparison."""
    from cerebro_plpy.operations.models import reproduce

    return call(plpy, gd, lambda db: reproduce.verify(db, gd, model, version))


def refresh(plpy: Any, gd: Globals, model: str | None, since: str | None) -> list[Row]:
    """Train a model again on the current rows."""
    from cerebro_plpy.operations.models import refresh as refresh_operation

    return call(
        plpy, gd, lambda db: refresh_operation.refresh(db, gd, model, since, read_package_version())
    )
