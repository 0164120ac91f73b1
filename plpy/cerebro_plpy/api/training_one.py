"""The functions of sql/52-training-one.sql."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import Globals, call, package_version
from cerebro_plpy.calls import fit
from cerebro_plpy.calls.fit_arguments import single_model


def fit_one_model(plpy: Any, session: Globals, *arguments: Any) -> None:
    """Train a single model; the arguments are those of `fit_arguments.single_model`."""
    given = single_model(*arguments)
    call(plpy, session, lambda db: fit.fit(db, session, given, package_version()))
