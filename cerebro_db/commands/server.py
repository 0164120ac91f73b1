"""`cerebro-db server`: the embedded server, a private PostgreSQL that needs no administrator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cerebro_db.commands.database import Json
from cerebro_db.commands.exits import Exit
from cerebro_db.server.cluster import PORT

if TYPE_CHECKING:
    from cerebro_db.server.embedded_server import EmbeddedServer, Status

app = typer.Typer(
    no_args_is_help=True, help="The embedded server: a private PostgreSQL, ready to use."
)

Data = Annotated[Path | None, typer.Option(help="Folder of the server.", file_okay=False)]
Port = Annotated[
    int, typer.Option(help="Number in the name of the server's socket.", min=1, max=65535)
]


def print_message(message: str) -> None:
    """Print a message that is not part of the output to the standard error."""
    typer.echo(message, err=True)


@app.command()
def start(data: Data = None, port: Port = PORT) -> None:
    """Make the server if there is none, start it, and print the URL of its database."""
    typer.echo(_server(data, port).start())


@app.command()
def status(data: Data = None, json: Json = False) -> None:
    """Say whether the server runs, and where its files are."""
    found = _server(data).status()
    if json:
        from cerebro_db.display.documents import format_document

        typer.echo(format_document([found]))
    else:
        _tell(found)
    if found.url is None:
        raise typer.Exit(Exit.NOT_RUNNING)


def _tell(found: Status) -> None:
    typer.echo(f"server: {f'running, process {found.pid}' if found.pid else 'not running'}")
    typer.echo(f"data:   {found.data}")
    typer.echo(f"log:    {found.log}")
    if found.url is not None:
        typer.echo(f"url:    {found.url}")


@app.command()
def stop(data: Data = None) -> None:
    """Stop the server; its data stays."""
    typer.echo("stopped" if _server(data).stop() else "not running")


def _server(data: Path | None, port: int = PORT) -> EmbeddedServer:
    from cerebro_db.server.embedded_server import EmbeddedServer

    return EmbeddedServer(data, port, print_message)
