"""`cerebro-db server`: the embedded server, a private PostgreSQL without an administrator."""

from __future__ import annotations

import shlex
import sys
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

Data = Annotated[
    Path | None,
    typer.Option(
        help="Folder of the server. Default: that of the last start, or else .cerebro beside the "
        "virtual environment.",
        file_okay=False,
    ),
]
Port = Annotated[
    int, typer.Option(help="Number in the name of the server's socket.", min=1, max=65535)
]


def print_message(message: str) -> None:
    """Print a message about progress to the standard error: it is not part of the output."""
    typer.echo(message, err=True)


@app.command()
def start(
    data: Data = None,
    port: Port = PORT,
    remember: Annotated[bool, typer.Option(hidden=True)] = True,
) -> None:
    """Create the server if it is missing, start it, and print the URL of its database.

    All commands then use this server, unless they are given a URL or another folder.
    """
    from cerebro_db.server.last_server import remember_folder

    server = _make_server(data, port)
    url = server.start()
    if remember:
        remember_folder(server.data)
    typer.echo(_format_url(url))


@app.command()
def status(data: Data = None, json: Json = False) -> None:
    """Show whether the server runs, and the paths of its files."""
    server_status = _make_server(data).status()
    if json:
        from cerebro_db.display.documents import format_document

        typer.echo(format_document([server_status]))
    else:
        _print_status(server_status)
    if server_status.url is None:
        raise typer.Exit(Exit.NOT_RUNNING)


def _print_status(status: Status) -> None:
    process = f"running, process {status.pid}" if status.pid else "not running"
    typer.echo(f"server: {process}")
    typer.echo(f"data:   {status.data}")
    typer.echo(f"log:    {status.log}")
    if status.url is not None:
        typer.echo(f"url:    {_format_url(status.url)}")


def _format_url(url: str) -> str:
    """Return the URL; with quotes on a terminal, from where people copy it into a shell."""
    if sys.stdout.isatty():
        return shlex.quote(url)
    return url


@app.command()
def stop(data: Data = None) -> None:
    """Stop the server; its data stays."""
    typer.echo("stopped" if _make_server(data).stop() else "not running")


def _make_server(data: Path | None, port: int = PORT) -> EmbeddedServer:
    from cerebro_db.server.embedded_server import EmbeddedServer
    from cerebro_db.server.last_server import find_folder

    return EmbeddedServer(data or find_folder(), port, print_message)
