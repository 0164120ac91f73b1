"""Commands that read runs: which there are, how their configs stand, and how one goes on."""

from __future__ import annotations

from typing import Annotated

import typer

from cerebro_db.commands import completion
from cerebro_db.commands.database import Json, Url, opened, running
from cerebro_db.commands.exits import Exit

Run = Annotated[int, typer.Argument(help="Id of the run.", autocompletion=completion.runs)]


def runs(json: Json = False, url: Url = None) -> None:
    """List the runs that you may see, newest first."""
    from cerebro_db.display.documents import format_document
    from cerebro_db.result_set import Records

    with opened(url) as session:
        found = session.runs()
    columns = ("run_id", "name", "owner", "status", "started_at", "ended_at", "epochs", "error")
    typer.echo(format_document(found) if json else Records(found, columns))


def leaderboard(run: Run, json: Json = False, url: Url = None) -> None:
    """Show the configs of a run, best first."""
    from cerebro_db.display.documents import format_document

    with opened(url) as session:
        session.progress(run)  # refuses a run that is not there, which has no configs either
        found = session.leaderboard(run)
    typer.echo(format_document(found) if json else found)


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

    if watch(running(url), run, json=json) not in ("completed", *LIVE_STATUSES):
        raise typer.Exit(Exit.NOT_COMPLETED)
