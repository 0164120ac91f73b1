"""The command line: each command is a few lines around the module that does the work."""

from __future__ import annotations

import sys

import typer

from cerebro_db.commands import export, models, runs, server, trial
from cerebro_db.commands.dashboard import dashboard
from cerebro_db.commands.exits import Exit
from cerebro_db.commands.plot import plot
from cerebro_db.errors import CerebroError

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Model selection for deep learning inside PostgreSQL.",
)
app.add_typer(server.app, name="server")
app.add_typer(export.app, name="export")
READING = (runs.runs, runs.leaderboard, runs.watch, plot, dashboard)
for command in (models.train, models.predict, models.models, *READING, trial.check, trial.demo):
    app.command()(command)


def main() -> None:
    """Run the command line; what is wrong is told in a line, with a hint, not by a traceback."""
    try:
        app()
    except CerebroError as error:
        from cerebro_db.display.boards import plain

        server.say("\n".join(plain(line).plain for line in f"ERROR:  {error}".split("\n")))
        sys.exit(Exit.ERROR)
