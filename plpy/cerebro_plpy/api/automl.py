"""One function per SQL function of AutoML."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import (
    Globals,
    call,
    call_training,
    check_counts,
    read_package_version,
    report_errors,
)
from cerebro_plpy.database.sessions.spi import Database


@report_errors
def automl(plpy: Any, gd: Globals, *arguments: Any) -> None:
    """Search for the best configuration; the arguments are those of `AutomlArguments`."""

    def work(db: Database) -> None:
        from cerebro_plpy.operations.fit import automl as search
        from cerebro_plpy.operations.fit.automl_arguments import AutomlArguments

        search.run_automl(db, gd, AutomlArguments(*arguments), read_package_version())

    call_training(plpy, gd, work)


@report_errors
@check_counts
def hyperband_schedule(
    plpy: Any,
    gd: Globals,
    schedule_table: str | None,
    r: int | None,
    eta: int | None,
    skip_last: int | None,
) -> None:
    """Create a table of Hyperband's rounds."""
    from cerebro_plpy.operations.fit import automl as search

    call(
        plpy, gd, lambda db: search.create_hyperband_schedule(db, schedule_table, r, eta, skip_last)
    )
