"""Commands that test an installation: step by step, or with a training on real images."""

from __future__ import annotations

from typing import Annotated

import typer

from cerebro_db.commands.database import Json, Url, choose_url
from cerebro_db.commands.exits import Exit
from cerebro_db.commands.server import print_message


def check(json: Json = False, url: Url = None) -> None:
    """Check a server step by step, and show a remedy for each failure."""
    from cerebro_db.check.steps import check_server, print_findings
    from cerebro_db.display.documents import format_document

    steps = check_server(choose_url(url))
    if json:
        findings = list(steps)
        typer.echo(format_document(finding.to_json() for finding in findings))
    else:
        findings = list(print_findings(steps))
    if any(finding.state == "FAIL" for finding in findings):
        raise typer.Exit(Exit.ERROR)


def demo(
    url: Annotated[
        str | None, typer.Option(help="Database; else that of the embedded server.")
    ] = None,
) -> None:
    """Train sixteen configurations on real images, and show the leaderboard."""
    from cerebro_db.optional_imports import import_library
    from cerebro_db.server.embedded_server import EmbeddedServer
    from cerebro_db.server.last_server import remember_folder

    for name in ("matplotlib", "sklearn"):
        import_library(name, "demo")
    from cerebro_db.demo.walkthrough import main

    if url is None:
        server = EmbeddedServer(report=print_message)
        url = server.start()
        remember_folder(server.data)
    raise typer.Exit(main(url))
