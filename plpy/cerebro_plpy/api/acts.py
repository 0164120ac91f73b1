"""The functions of sql/57-acts.sql."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import Globals, call, check_counts, report_errors
from cerebro_plpy.operations.live import run_commands
from cerebro_plpy.operations.live.run_commands import Command


@report_errors
def stop_config(plpy: Any, gd: Globals, run_id: int | None, mst_key: int | None) -> int:
    """Start no further visit of a configuration; return the id of the act."""
    return call(
        plpy,
        gd,
        lambda db: run_commands.send_to_config(db, Command("stop_config", run_id, mst_key)),
    )


@report_errors
def continue_config(plpy: Any, gd: Globals, run_id: int | None, mst_key: int | None) -> int:
    """Continue a configuration that was stopped or is paused; return the id of the act."""
    return call(
        plpy,
        gd,
        lambda db: run_commands.send_to_config(db, Command("continue_config", run_id, mst_key)),
    )


@report_errors
def clone_config(
    plpy: Any,
    gd: Globals,
    run_id: int | None,
    mst_key: int | None,
    change: str | None,
    warm: bool | None,
) -> int:
    """Add a configuration with some changes; return the id of the act."""
    request = Command("clone_config", run_id, mst_key)
    return call(
        plpy, gd, lambda db: run_commands.clone_config(db, request, change, warm is not False)
    )


@report_errors
@check_counts
def add_configs(
    plpy: Any,
    gd: Globals,
    run_id: int | None,
    space: str | None,
    configs: int | None,
    selection_table: str | None,
) -> int:
    """Add configurations from a space or a table; return the id of the act."""
    return call(
        plpy,
        gd,
        lambda db: run_commands.add_configs(
            db, Command("add_configs", run_id), space, configs, selection_table
        ),
    )


@report_errors
@check_counts
def drill_down(
    plpy: Any,
    gd: Globals,
    run_id: int | None,
    mst_key: int | None,
    space: str | None,
    configs: int | None,
) -> int:
    """Add variants of a configuration from a space; return the id of the act."""
    return call(
        plpy,
        gd,
        lambda db: run_commands.drill_down(
            db, Command("drill_down", run_id, mst_key), space, configs
        ),
    )


@report_errors
@check_counts
def set_epochs(
    plpy: Any, gd: Globals, run_id: int | None, epochs: int | None, mst_key: int | None
) -> int:
    """Set the epochs of a configuration, or of all; return the id of the act."""
    return call(
        plpy,
        gd,
        lambda db: run_commands.set_epochs(db, Command("set_epochs", run_id, mst_key), epochs),
    )


@report_errors
def prioritize(plpy: Any, gd: Globals, run_id: int | None, mst_key: int | None) -> int:
    """Let a configuration take workers before all others; return the id of the act."""
    return call(
        plpy, gd, lambda db: run_commands.send_to_config(db, Command("prioritize", run_id, mst_key))
    )


@report_errors
def pause_run(plpy: Any, gd: Globals, run_id: int | None) -> int:
    """Start no further visit of a run; return the id of the act."""
    return call(plpy, gd, lambda db: run_commands.send_to_run(db, Command("pause_run", run_id)))


@report_errors
def continue_run(plpy: Any, gd: Globals, run_id: int | None) -> int:
    """Continue a run that was paused; return the id of the act."""
    return call(plpy, gd, lambda db: run_commands.send_to_run(db, Command("continue_run", run_id)))
