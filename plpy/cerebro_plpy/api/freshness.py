"""The functions of sql/64-freshness.sql."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import Globals, call, package_version
from cerebro_plpy.database.sessions.spi import Row


def drift(plpy: Any, gd: Globals, model: str | None, source: str | None) -> list[Row]:
    """How far the columns of a source lie from what a model was trained on."""
    from cerebro_plpy.operations.explain import drift as drifting

    return call(plpy, gd, lambda db: drifting.drift(db, model, source))


def verify(plpy: Any, gd: Globals, model: str | None, version: str | None) -> list[Row]:
    """Findings about a version: whether it comes out once more."""
    from cerebro_plpy.operations.models import reproduce as verification

    return call(plpy, gd, lambda db: verification.verify(db, gd, model, version))


def refresh(plpy: Any, gd: Globals, model: str | None, since: str | None) -> list[Row]:
    """Train a model on the rows of now."""
    from cerebro_plpy.operations.models import refresh as refreshing

    return call(plpy, gd, lambda db: refreshing.refresh(db, gd, model, since, package_version()))
