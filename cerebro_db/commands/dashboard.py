"""Command that serves a dashboard of the runs that a role may see."""

from __future__ import annotations

from typing import Annotated

import typer

from cerebro_db.commands.database import Url, choose_url
from cerebro_db.optional_imports import import_library

PORT = 8080


def dashboard(
    url: Url = None,
    port: Annotated[
        int, typer.Option(help="Port on 127.0.0.1; 0 takes any that is free.", min=0, max=65535)
    ] = PORT,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
    optuna: Annotated[
        bool,
        typer.Option(
            "--optuna", help="Optuna's dashboard instead, over the views of cerebro_optuna."
        ),
    ] = False,
) -> None:
    """Serve a page to this machine, until Ctrl-C: live runs, models, and a form that trains."""
    database = choose_url(url)
    if optuna:
        from cerebro_db.dashboard.optuna import serve
    else:
        serve = import_library("cerebro_db.dashboard.application", "dashboard").serve
    serve(database, port, typer.echo, browser)
