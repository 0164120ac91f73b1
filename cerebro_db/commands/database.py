"""Which database a command is about: that of a URL, of libpq's variables, or the embedded
server's.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from cerebro_db.errors import ObjectNotReady

if TYPE_CHECKING:
    from cerebro_db.session import Session

ELSE = "else the one of libpq's variables, such as PGHOST; else that of the embedded server."
Url = Annotated[str | None, typer.Option(help=f"Database; {ELSE}")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite what is there.")]
# Of libpq's variables those that name a server or a database; PGUSER alone may be set for anything.
LIBPQ = ("PGHOST", "PGHOSTADDR", "PGSERVICE", "PGDATABASE")


def running(url: str | None) -> str:
    """The database that is meant: of a URL without a name libpq's variables say the rest."""
    from cerebro_db.server.embedded_server import EmbeddedServer

    named = url or ("postgresql://" if any(map(os.environ.get, LIBPQ)) else None)
    found = named or EmbeddedServer().status().url
    if found is None:
        raise ObjectNotReady(
            "no database was named, and the embedded server does not run",
            hint="Give a URL, or set PGHOST or PGDATABASE; or `cerebro-db server start` starts "
            "the embedded server.",
        )
    return found


def opened(url: str | None) -> Session:
    """A session with that database."""
    from cerebro_db.session import connect

    return connect(running(url))
