"""The functions of sql/52-training-one.sql."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import Globals, call, read_package_version, report_errors
from cerebro_plpy.operations.fit import fit
from cerebro_plpy.operations.fit.fit_arguments import make_single_model_arguments


@report_errors
def fit_one_model(plpy: Any, gd: Globals, *arguments: Any) -> None:
    """Train a single model.

    Args:
        arguments: the arguments of `make_single_model_arguments`.
    """
    fit_arguments = make_single_model_arguments(*arguments)
    call(plpy, gd, lambda db: fit.fit(db, gd, fit_arguments, read_package_version()))
