"""The command line: each command is a few lines around the module that does the work."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from cerebro_db.commands import export
from cerebro_db.commands.dashboard import dashboard
from cerebro_db.commands.database import ELSE, Url, running
from cerebro_db.errors import CerebroError, MissingLibrary
from cerebro_db.server.embedded_server import PORT, EmbeddedServer

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Model selection for deep learning inside PostgreSQL.",
)
server = typer.Typer(no_args_is_help=True, help="The embedded server: a private PostgreSQL, ready to use.")
app.add_typer(server, name="server")
app.add_typer(export.app, name="export")
app.command()(dashboard)

Data = Annotated[Path | None, typer.Option(help="Folder of the server.", file_okay=False)]
Port = Annotated[int, typer.Option(help="Number in the name of the server's socket.", min=1, max=65535)]

NOT_RUNNING = 3  # as in the exit codes of pg_ctl and of init scripts


def _say(message: str) -> None:
    typer.echo(message, err=True)


@server.command()
def start(data: Data = None, port: Port = PORT) -> None:
    """Make the server if there is none, start it, and print the URL of its database."""
    typer.echo(EmbeddedServer(data, port, _say).start())


@server.command()
def status(data: Data = None) -> None:
    """Say whether the server runs, and where its files are."""
    found = EmbeddedServer(data).status()
    typer.echo(f"server: {f'running, process {found.pid}' if found.pid else 'not running'}")
    typer.echo(f"data:   {found.data}")
    typer.echo(f"log:    {found.log}")
    if found.url is None:
        raise typer.Exit(NOT_RUNNING)
    typer.echo(f"url:    {found.url}")


@server.command()
def stop(data: Data = None) -> None:
    """Stop the server; its data stays."""
    typer.echo("stopped" if EmbeddedServer(data, say=_say).stop() else "not running")


@app.command()
def check(url: Annotated[str | None, typer.Argument(help=f"Database to check; {ELSE}")] = None) -> None:
    """Check a server step by step, and say what to do about each failure."""
    from cerebro_db.check.steps import main

    raise typer.Exit(main(running(url)))


@app.command()
def demo(url: Annotated[str | None, typer.Option(help="Database; else that of the embedded server.")] = None) -> None:
    """Train sixteen configurations on real images, and show the leaderboard."""
    try:
        from cerebro_db.demo.walkthrough import main
    except ImportError as error:
        raise MissingLibrary(
            f"the demo needs a library that is not installed: {error.name}",
            hint="In a clone of cerebro_db: pip install '.[demo]'",
            name=str(error.name),
        ) from error
    raise typer.Exit(main(url or EmbeddedServer(say=_say).start()))


@app.command()
def watch(
    run: Annotated[int | None, typer.Argument(help="Id of the run; else the newest one.")] = None, url: Url = None
) -> None:
    """Show a run while it goes on."""
    from cerebro_db.show.watch import watch

    raise typer.Exit(watch(running(url), run))


def main() -> None:
    """Run the command line; what is wrong is told in a line, with a hint, not by a traceback."""
    try:
        app()
    except CerebroError as error:
        from cerebro_db.show.boards import plain

        _say("\n".join(plain(line).plain for line in f"ERROR:  {error}".split("\n")))
        sys.exit(1)
