"""`cerebro-db server`: the embedded server, a private PostgreSQL that needs no administrator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cerebro_db.server.embedded_server import PORT, EmbeddedServer

app = typer.Typer(no_args_is_help=True, help="The embedded server: a private PostgreSQL, ready to use.")

Data = Annotated[Path | None, typer.Option(help="Folder of the server.", file_okay=False)]
Port = Annotated[int, typer.Option(help="Number in the name of the server's socket.", min=1, max=65535)]

NOT_RUNNING = 3  # as in the exit codes of pg_ctl and of init scripts


def say(message: str) -> None:
    """A word on what goes on, where it is no part of the answer."""
    typer.echo(message, err=True)


@app.command()
def start(data: Data = None, port: Port = PORT) -> None:
    """Make the server if there is none, start it, and print the URL of its database."""
    typer.echo(EmbeddedServer(data, port, say).start())


@app.command()
def status(data: Data = None) -> None:
    """Say whether the server runs, and where its files are."""
    found = EmbeddedServer(data).status()
    typer.echo(f"server: {f'running, process {found.pid}' if found.pid else 'not running'}")
    typer.echo(f"data:   {found.data}")
    typer.echo(f"log:    {found.log}")
    if found.url is None:
        raise typer.Exit(NOT_RUNNING)
    typer.echo(f"url:    {found.url}")


@app.command()
def stop(data: Data = None) -> None:
    """Stop the server; its data stays."""
    typer.echo("stopped" if EmbeddedServer(data, say=say).stop() else "not running")
