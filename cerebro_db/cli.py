"""Command line: registers the commands and prints errors without a traceback."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import typer

from cerebro_db.commands import export, models, runs, server, trial
from cerebro_db.commands.dashboard import dashboard
from cerebro_db.commands.exits import Exit
from cerebro_db.commands.plot import plot
from cerebro_db.commands.setup import setup
from cerebro_db.errors import CerebroError

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Model selection for deep learning inside PostgreSQL.",
)
app.add_typer(server.app, name="server")
app.add_typer(export.app, name="export")
app.command("import")(export.import_model)
READING = (runs.runs, runs.leaderboard, runs.watch, plot, dashboard)
for command in (
    models.train,
    models.predict,
    models.models,
    *READING,
    setup,
    trial.check,
    trial.demo,
):
    app.command()(command)


def main() -> None:
    """Run the command line; print an error as one line and a hint."""
    try:
        app()
    except CerebroError as error:
        exit_with_error(str(error))
    except OSError as error:
        drop_unwritable_output()
        message = error.strerror or str(error)
        if error.filename:
            message = f"{error.filename}: {message}"
        exit_with_error(message)


def drop_unwritable_output() -> None:
    """Drop text that the standard output does not take, or Python would try again at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def exit_with_error(message: str) -> NoReturn:
    """Print the message of an error, and exit."""
    from cerebro_db.display.boards import escape_text

    lines = f"ERROR:  {message}".expandtabs(4).split("\n")
    server.print_message("\n".join(escape_text(line).plain for line in lines))
    sys.exit(Exit.ERROR)
