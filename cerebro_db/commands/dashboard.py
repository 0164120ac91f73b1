"""Starts a dashboard over the runs that a role may see."""

from __future__ import annotations

from typing import Annotated

import typer

from cerebro_db.commands.database import Url, running

PORT = 8080


def dashboard(
    optuna: Annotated[bool, typer.Option("--optuna", help="Optuna's dashboard, over the views of cerebro_optuna.")],
    url: Url = None,
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1.", min=1, max=65535)] = PORT,
) -> None:
    """Serve Optuna's dashboard to this machine, until Ctrl-C."""
    from cerebro_db.dashboard.optuna import serve

    serve(running(url), port, typer.echo)
