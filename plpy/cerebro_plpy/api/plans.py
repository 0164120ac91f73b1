"""The functions of sql/58-plans.sql."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import Globals, call, read_package_version, report_errors


@report_errors
def plan_fit(
    plpy: Any,
    gd: Globals,
    source_table: str | None,
    model_selection_table: str | None,
    num_iterations: int | None,
    use_gpus: bool | None,
    validation_table: str | None,
    metrics_compute_frequency: int | None,
    seed: int | None,
    schedule: str | None,
    workers: int | None,
    replay_run: int | None,
    training_metrics: bool | None,
    dtype_policy: str | None,
    backend: str | None,
    max_runtime: str | None,
    search: str | None,
    search_params: str | None,
    format: str | None,
    strategy: str | None,
    feature_budget: int | None,
) -> list[str]:
    """Return a plan of a fit with the same arguments."""
    arguments = locals()
    from cerebro_plpy.operations.fit.explain_fit import plan_fit as explain
    from cerebro_plpy.operations.fit.fit_arguments import fill_arguments

    fit_arguments = fill_arguments(arguments)
    return call(plpy, gd, lambda db: explain(db, gd, fit_arguments, read_package_version(), format))


@report_errors
def plan_of(plpy: Any, gd: Globals, run_id: int | None, format: str | None) -> list[str]:
    """Return the plan of a run together with its actual times."""
    from cerebro_plpy.operations.live import explain_run

    return call(plpy, gd, lambda db: explain_run.explain_run(db, run_id, format))
