"""Watches a run until it ends: with keys on a terminal, as lines elsewhere, or as JSON for
programs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from rich.console import Console
from rich.live import Live

from cerebro_db.console.key_bindings import Act, Action, Pad, press, settled
from cerebro_db.console.keyboard import keyboard
from cerebro_db.console.screen import Look, frame
from cerebro_db.display.boards import make_console
from cerebro_db.display.documents import format_line
from cerebro_db.display.watch import LIVE_STATUSES, POLL_SECONDS, follow, make_current_leaderboard
from cerebro_db.errors import CerebroError, UndefinedObject
from cerebro_db.records import Progress
from cerebro_db.session import Session, connect

CHANGING = ("elapsed", "eta")
"""Of progress what is another at every look."""


class Answer(NamedTuple):
    """The id of an act, where it has one, and what is said of it."""

    act_id: int | None = None
    told: str = ""


def watch(url: str, number: int | None, *, json: bool = False) -> str:
    """Shows a run, or the newest one, until it ends or whoever watches it has seen enough; its
    status then.
    """
    with connect(url) as session:
        run_id = _newest(session) if number is None else number
        if json:
            return _documents(session, run_id)
        console = make_console()
        try:
            steered = console.is_terminal and sys.stdin.isatty()
            status = (
                steer(session, run_id, console) if steered else follow(session, run_id, console)
            )
        except KeyboardInterrupt:
            status = "running"
        console.print(
            "The run goes on."
            if status in LIVE_STATUSES
            else make_current_leaderboard(session, run_id, console)
        )
        return status


def _newest(session: Session) -> int:
    run_id = session.newest_run()
    if run_id is None:
        raise UndefinedObject(
            "there is no run that you may see",
            hint="A fit makes one; those of other roles are not shown.",
        )
    return run_id


def _documents(session: Session, run_id: int) -> str:
    """A line of JSON for every change of the run's progress."""
    shown: Progress | None = None
    try:
        while True:
            progress = session.progress(run_id)
            if shown is None or _lasting(progress) != _lasting(shown):
                print(format_line(progress), flush=True)
                shown = progress
            if progress.status not in LIVE_STATUSES:
                return progress.status
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        return "running"


def _lasting(progress: Progress) -> dict[str, object]:
    return {name: value for name, value in vars(progress).items() if name not in CHANGING}


def steer(session: Session, run_id: int, console: Console) -> str:
    """Shows the run on all of the terminal, and does what keys ask for; its status when it ends, or
    q is pressed.
    """
    pad, answer = Pad(), Answer()
    look, due = _look(session, run_id, answer), 0.0
    with (
        keyboard(sys.stdin.fileno()) as keys,
        Live(console=console, auto_refresh=False, screen=True) as live,
    ):
        while look.progress.status in LIVE_STATUSES:
            if time.monotonic() >= due:
                look, due = _look(session, run_id, answer), time.monotonic() + POLL_SECONDS
            pad = settled(pad, look.configs)
            live.update(frame(look, pad, console), refresh=True)
            for key in keys.wait(POLL_SECONDS):
                pad = press(pad, key, look.configs, look.progress.status == "paused")
                if pad.act is not None and pad.act.action is Action.QUIT:
                    return look.progress.status
                if pad.act is not None:
                    answer, due = do(session, run_id, pad.act), 0.0
    return look.progress.status


def _look(session: Session, run_id: int, answer: Answer) -> Look:
    return Look(
        session.progress(run_id),
        session.leaderboard(run_id),
        session.learning_curve(run_id),
        session.timeline(run_id),
        answer.told if answer.act_id is None else _outcome(session, answer.act_id),
    )


def do(session: Session, run_id: int, act: Act) -> Answer:
    """Asks the server for an act; a refusal is said, not raised."""
    key = act.mst_key or 0
    calls: Mapping[Action, Callable[[], int]] = {
        Action.STOP: lambda: session.stop_config(run_id, key),
        Action.CONTINUE: lambda: session.continue_config(run_id, key),
        Action.CLONE: lambda: session.clone_config(run_id, key, act.change or {}),
        Action.PAUSE_RUN: lambda: session.pause_run(run_id),
        Action.CONTINUE_RUN: lambda: session.continue_run(run_id),
    }
    try:
        if act.action is Action.CANCEL_RUN:
            return Answer(
                told="cancelled" if session.cancel_run(run_id) else "nobody works for the run"
            )
        return Answer(calls[act.action](), f"{act.action}: asked")
    except CerebroError as error:
        return Answer(told=f"refused: {'; '.join(str(error).splitlines())}")


def _outcome(session: Session, act_id: int) -> str:
    """What became of an act."""
    (act,) = session.rows("cerebro.act", act_id=act_id)
    about = f" of config {act['mst_key']}" if act["mst_key"] is not None else ""
    return f"{act['action']}{about}: {act['status']}{'; ' + act['reason'] if act['reason'] else ''}"
