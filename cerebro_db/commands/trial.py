"""Commands that try an installation out: step by step, or by training on real images."""

from __future__ import annotations

from typing import Annotated

import typer

from cerebro_db.commands.database import Json, Url, running
from cerebro_db.commands.exits import Exit
from cerebro_db.commands.server import print_message


def check(json: Json = False, url: Url = None) -> None:
    """Check a server step by step, and say what to do about each failure."""
    from cerebro_db.check.steps import examine, told
    from cerebro_db.display.documents import format_document

    findings = examine(running(url))
    found = list(findings if json else told(findings))
    if json:
        typer.echo(format_document(found))
    if any(finding.state == "FAIL" for finding in found):
        raise typer.Exit(Exit.ERROR)


def demo(
    url: Annotated[
        str | None, typer.Option(help="Database; else that of the embedded server.")
    ] = None,
) -> None:
    """Train sixteen configurations on real images, and show the leaderboard."""
    from cerebro_db.optional_imports import import_library
    from cerebro_db.server.embedded_server import EmbeddedServer

    for name in ("matplotlib", "sklearn"):
        import_library(name, "demo")
    from cerebro_db.demo.walkthrough import main

    raise typer.Exit(main(url or EmbeddedServer(say=print_message).start()))
