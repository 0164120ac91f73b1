"""Live view of a run until its end: with keys on a terminal, else as lines, or as JSON."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from rich.console import Console
from rich.live import Live

from cerebro_db.console.key_bindings import (
    Action,
    Command,
    KeyState,
    press_key,
    select_existing,
)
from cerebro_db.console.keyboard import open_keyboard
from cerebro_db.console.screen import Snapshot, draw_screen
from cerebro_db.display.boards import make_console
from cerebro_db.display.documents import format_line
from cerebro_db.display.watch import LIVE_STATUSES, POLL_SECONDS, follow, make_current_leaderboard
from cerebro_db.errors import CerebroError, UndefinedObject
from cerebro_db.records import Progress
from cerebro_db.session import Session, connect

TIMES = ("elapsed", "eta", "share")
"""Fields of the progress that change all the time."""


class CommandResult(NamedTuple):
    """Result of a command."""

    act_id: int | None = None  # None if the server did not log the command
    message: str = ""


def watch(url: str, run_id: int | None, *, json: bool = False) -> str:
    """Show a run until its end, or until the user quits, and return its status.

    Args:
        run_id: id of the run; None for the newest run.
        json: print a JSON document for each change.
    """
    with connect(url) as session:
        if run_id is None:
            run_id = _find_newest_run(session)
        if json:
            return _print_changes(session, run_id)
        console = make_console()
        try:
            if console.is_terminal and sys.stdin.isatty():
                status = control_run(session, run_id, console)
            else:
                status = follow(session, run_id, console)
        except KeyboardInterrupt:
            status = "running"
        if status in LIVE_STATUSES:
            console.print("The run goes on.")
        else:
            console.print(make_current_leaderboard(session, run_id, console))
        return status


def _find_newest_run(session: Session) -> int:
    run_id = session.newest_run()
    if run_id is None:
        raise UndefinedObject(
            "there is no run that you may see",
            hint="A fit makes one; those of other roles are not shown.",
        )
    return run_id


def _print_changes(session: Session, run_id: int) -> str:
    """Print a line of JSON for every change of the run's progress, and return its status."""
    previous: dict[str, object] = {}
    try:
        while True:
            progress = session.progress(run_id)
            current = _drop_times(progress)
            if current != previous:
                print(format_line(progress), flush=True)
                previous = current
            if progress.status not in LIVE_STATUSES:
                return progress.status
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        return "running"


def _drop_times(progress: Progress) -> dict[str, object]:
    return {name: value for name, value in vars(progress).items() if name not in TIMES}


def control_run(session: Session, run_id: int, console: Console) -> str:
    """Show the run on the whole terminal and execute the commands of keys.

    Returns:
        The status of the run at its end, or when the user quits.
    """
    keys = KeyState()
    result = CommandResult()
    snapshot = _read_snapshot(session, run_id, result)
    next_read = 0.0
    with (
        open_keyboard(sys.stdin.fileno()) as keyboard,
        Live(console=console, auto_refresh=False, screen=True) as live,
    ):
        while snapshot.progress.status in LIVE_STATUSES:
            if time.monotonic() >= next_read:
                snapshot = _read_snapshot(session, run_id, result)
                next_read = time.monotonic() + POLL_SECONDS
            keys = select_existing(keys, snapshot.configs)
            live.update(draw_screen(snapshot, keys, console), refresh=True)
            for key in keyboard.wait(POLL_SECONDS):
                is_paused = snapshot.progress.status == "paused"
                keys = press_key(keys, key, snapshot.configs, is_paused)
                if keys.command is None:
                    continue
                if keys.command.action is Action.QUIT:
                    return snapshot.progress.status
                result = execute(session, run_id, keys.command)
                next_read = 0.0
    return snapshot.progress.status


def _read_snapshot(session: Session, run_id: int, result: CommandResult) -> Snapshot:
    return Snapshot(
        session.progress(run_id),
        session.leaderboard(run_id),
        session.learning_curve(run_id),
        session.timeline(run_id),
        _read_outcome(session, result),
    )


def execute(session: Session, run_id: int, command: Command) -> CommandResult:
    """Send a command to the server; an error of the server becomes the message of the result."""
    key = command.mst_key or 0
    calls: Mapping[Action, Callable[[], int]] = {
        Action.STOP: lambda: session.stop_config(run_id, key),
        Action.CONTINUE: lambda: session.continue_config(run_id, key),
        Action.CLONE: lambda: session.clone_config(run_id, key, command.change or {}),
        Action.PAUSE_RUN: lambda: session.pause_run(run_id),
        Action.CONTINUE_RUN: lambda: session.continue_run(run_id),
    }
    try:
        if command.action is Action.CANCEL_RUN:
            is_cancelled = session.cancel_run(run_id)
            message = "cancelled" if is_cancelled else "nobody works for the run"
            return CommandResult(message=message)
        return CommandResult(calls[command.action](), f"{command.action}: asked")
    except CerebroError as error:
        return CommandResult(message=f"refused: {'; '.join(str(error).splitlines())}")


def _read_outcome(session: Session, result: CommandResult) -> str:
    """Return the current outcome of a command as text."""
    if result.act_id is None:
        return result.message
    (act,) = session.rows("cerebro.act", act_id=result.act_id)
    outcome = str(act["action"])
    if act["mst_key"] is not None:
        outcome += f" of config {act['mst_key']}"
    outcome += f": {act['status']}"
    if act["reason"]:
        outcome += f"; {act['reason']}"
    return outcome
