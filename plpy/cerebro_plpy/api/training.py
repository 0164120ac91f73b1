"""The functions of sql/50-training.sql."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import Globals, call_training, read_package_version, report_errors
from cerebro_plpy.database.sessions.spi import Database


@report_errors
def fit_multiple_model(plpy: Any, gd: Globals, *arguments: Any) -> None:
    """Train all configurations of a model selection table.

    Args:
        arguments: the fields of `FitArguments`.
    """

    def work(db: Database) -> None:
        from cerebro_plpy.configs.run_spec import FitArguments
        from cerebro_plpy.operations.fit import fit

        fit.fit(db, gd, FitArguments(*arguments), read_package_version())

    call_training(plpy, gd, work)
