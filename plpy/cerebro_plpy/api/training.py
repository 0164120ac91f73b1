"""The functions of sql/50-training.sql."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import Globals, call, package_version
from cerebro_plpy.calls import fit
from cerebro_plpy.configs.spec import FitArguments


def fit_multiple_model(plpy: Any, session: Globals, *arguments: Any) -> None:
    """Train all configurations of a model selection table; the arguments are those of `FitArguments`."""
    given = FitArguments(*arguments)
    call(plpy, session, lambda db: fit.fit(db, session, given, package_version()))
