"""Commands that try an installation out: step by step, or by training on real images."""

from __future__ import annotations

from typing import Annotated

import typer

from cerebro_db.commands.database import ELSE, running
from cerebro_db.commands.server import say
from cerebro_db.errors import MissingLibrary
from cerebro_db.server.embedded_server import EmbeddedServer


def check(url: Annotated[str | None, typer.Argument(help=f"Database to check; {ELSE}")] = None) -> None:
    """Check a server step by step, and say what to do about each failure."""
    from cerebro_db.check.steps import main

    raise typer.Exit(main(running(url)))


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
    raise typer.Exit(main(url or EmbeddedServer(say=say).start()))
