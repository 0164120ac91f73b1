"""Options that commands share: the database, by URL or variables, and the form of the output."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from cerebro_db.errors import ObjectNotReady

if TYPE_CHECKING:
    from cerebro_db.session import Session

ELSE = "else the one of libpq's variables, such as PGHOST; else that of the embedded server"
Url = Annotated[
    str | None, typer.Option(help=f"URL of the database; {ELSE} that was started last.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite what is there.")]
LIBPQ_VARIABLES = ("PGHOST", "PGHOSTADDR", "PGSERVICE", "PGDATABASE")
"""Variables that name a server or a database; PGUSER alone may be set for any purpose."""


def choose_url(url: str | None) -> str:
    """Return the URL of the database; libpq completes an empty one from its variables.

    Raises:
        ObjectNotReady: no database is named, and the embedded server does not run.
    """
    from cerebro_db.server.embedded_server import EmbeddedServer, choose_folder
    from cerebro_db.server.last_server import find_folder

    if url:
        return url
    if any(map(os.environ.get, LIBPQ_VARIABLES)):
        return "postgresql://"
    folders = dict.fromkeys((find_folder(), choose_folder()))
    servers = [EmbeddedServer(folder) for folder in folders if folder is not None]
    for server in servers:
        embedded_url = server.status().url
        if embedded_url is not None:
            return embedded_url
    raise ObjectNotReady(
        f"no database was named, and no embedded server runs in {servers[0].data}",
        hint="Start it with `cerebro-db server start`, or give a URL with --url, or set PGHOST or "
        "PGDATABASE.",
    )


def print_records(
    records: Sequence[object],
    json: bool,
    columns: Sequence[str] = (),
    optional: Sequence[str] = (),
) -> None:
    """Print records as JSON, or as a table.

    Args:
        columns: the columns of the table; all by default.
        optional: columns that a narrow terminal lacks, the first to be left out first.
    """
    from cerebro_db.display.documents import format_document
    from cerebro_db.result_set import Records

    if json:
        typer.echo(format_document(records))
    elif columns:
        typer.echo(Records(records, columns, optional=optional))
    else:
        typer.echo(records)


def open_session(url: str | None) -> Session:
    """Return a session with the database that `choose_url` returns."""
    from cerebro_db.session import connect

    return connect(choose_url(url))
