"""The functions of sql/57-acts.sql."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import Globals, bounded, call
from cerebro_plpy.operations.live import run_commands
from cerebro_plpy.operations.live.run_commands import Command


def stop_config(plpy: Any, gd: Globals, run_id: int | None, mst_key: int | None) -> int:
    """Let a configuration begin no further visit; the id of the act."""
    return call(
        plpy,
        gd,
        lambda db: run_commands.send_to_config(db, Command("stop_config", run_id, mst_key)),
    )


def continue_config(plpy: Any, gd: Globals, run_id: int | None, mst_key: int | None) -> int:
    """Train a configuration on that was stopped or rests; the id of the act."""
    return call(
        plpy,
        gd,
        lambda db: run_commands.send_to_config(db, Command("continue_config", run_id, mst_key)),
    )


def clone_config(
    plpy: Any,
    gd: Globals,
    run_id: int | None,
    mst_key: int | None,
    change: str | None,
    warm: bool | None,
) -> int:
    """Add a configuration like another one; the id of the act."""
    asked = Command("clone_config", run_id, mst_key)
    return call(
        plpy, gd, lambda db: run_commands.clone_config(db, asked, change, warm is not False)
    )


@bounded
def add_configs(
    plpy: Any,
    gd: Globals,
    run_id: int | None,
    space: str | None,
    n: int | None,
    selection_table: str | None,
) -> int:
    """Add configurations of a space or of a table; the id of the act."""
    return call(
        plpy,
        gd,
        lambda db: run_commands.add_configs(
            db, Command("add_configs", run_id), space, n, selection_table
        ),
    )


@bounded
def drill_down(
    plpy: Any,
    gd: Globals,
    run_id: int | None,
    mst_key: int | None,
    space: str | None,
    n: int | None,
) -> int:
    """Add configurations that are like one, but for what a space says; the id of the act."""
    return call(
        plpy,
        gd,
        lambda db: run_commands.drill_down(db, Command("drill_down", run_id, mst_key), space, n),
    )


@bounded
def set_epochs(
    plpy: Any, gd: Globals, run_id: int | None, n: int | None, mst_key: int | None
) -> int:
    """Say for how many epochs a configuration, or all of them, are trained; the id of the act."""
    return call(
        plpy, gd, lambda db: run_commands.set_epochs(db, Command("set_epochs", run_id, mst_key), n)
    )


def prioritise(plpy: Any, gd: Globals, run_id: int | None, mst_key: int | None) -> int:
    """Let a configuration take workers before all others; the id of the act."""
    return call(
        plpy, gd, lambda db: run_commands.send_to_config(db, Command("prioritise", run_id, mst_key))
    )


def pause_run(plpy: Any, gd: Globals, run_id: int | None) -> int:
    """Let a run begin no further visit; the id of the act."""
    return call(plpy, gd, lambda db: run_commands.send_to_run(db, Command("pause_run", run_id)))


def continue_run(plpy: Any, gd: Globals, run_id: int | None) -> int:
    """Let a run go on that was paused; the id of the act."""
    return call(plpy, gd, lambda db: run_commands.send_to_run(db, Command("continue_run", run_id)))
