"""Commands that read runs: list, leaderboard, and live view."""

from __future__ import annotations

from typing import Annotated

import typer

from cerebro_db.commands import completion
from cerebro_db.commands.database import Json, Url, choose_url, open_session, print_records
from cerebro_db.commands.exits import Exit

Run = Annotated[int, typer.Argument(help="Id of the run.", autocompletion=completion.runs)]


def runs(json: Json = False, url: Url = None) -> None:
    """List the runs that you may see, newest first."""
    with open_session(url) as session:
        print_records(session.runs(), json)


def leaderboard(run: Run, json: Json = False, url: Url = None) -> None:
    """Show the configs of a run, best first."""
    with open_session(url) as session:
        session.progress(run)  # raises an error if the run does not exist; a leaderboard is empty
        print_records(session.leaderboard(run), json)


def watch(
    run: Annotated[
        int | None,
        typer.Argument(help="Id of the run; else the newest one.", autocompletion=completion.runs),
    ] = None,
    json: Json = False,
    url: Url = None,
) -> None:
    """Show a run while it goes on; on a terminal keys steer it."""
    from cerebro_db.console.watching import watch
    from cerebro_db.display.watch import LIVE_STATUSES

    if watch(choose_url(url), run, json=json) not in ("completed", *LIVE_STATUSES):
        raise typer.Exit(Exit.NOT_COMPLETED)
