"""Options that commands share: the database, by URL or variables, and the form of the output."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from cerebro_db.errors import ObjectNotReady

if TYPE_CHECKING:
    from cerebro_db.session import Session

ELSE = "else the one of libpq's variables, such as PGHOST; else that of the embedded server."
Url = Annotated[str | None, typer.Option(help=f"Database; {ELSE}")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite what is there.")]
LIBPQ_VARIABLES = ("PGHOST", "PGHOSTADDR", "PGSERVICE", "PGDATABASE")
"""Variables that name a server or a database; PGUSER alone may be set for any purpose."""


def choose_url(url: str | None) -> str:
    """Return the URL of the database; libpq completes an empty one from its variables.

    Raises:
        ObjectNotReady: no database is named, and the embedded server does not run.
    """
    from cerebro_db.server.embedded_server import EmbeddedServer

    if url:
        return url
    if any(map(os.environ.get, LIBPQ_VARIABLES)):
        return "postgresql://"
    embedded_url = EmbeddedServer().status().url
    if embedded_url is None:
        raise ObjectNotReady(
            "no database was named, and the embedded server does not run",
            hint="Give a URL, or set PGHOST or PGDATABASE; or `cerebro-db server start` starts "
            "the embedded server.",
        )
    return embedded_url


def print_records(records: Sequence[object], json: bool, columns: Sequence[str] = ()) -> None:
    """Print records as JSON, or as a table, which may show some columns only."""
    from cerebro_db.display.documents import format_document
    from cerebro_db.result_set import Records

    if json:
        typer.echo(format_document(records))
    elif columns:
        typer.echo(Records(records, columns))
    else:
        typer.echo(records)


def open_session(url: str | None) -> Session:
    """Return a session with the database that `choose_url` returns."""
    from cerebro_db.session import connect

    return connect(choose_url(url))
