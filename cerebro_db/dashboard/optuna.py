"""Optuna's dashboard over runs: the views of schema cerebro_optuna are what it takes for its own tables.

It reads as the role of the URL, and can write nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import sqlalchemy as sa

from cerebro_db.driver import sqlalchemy_url
from cerebro_db.libraries import library

if TYPE_CHECKING:
    from optuna.storages import RDBStorage

HOST = "127.0.0.1"
OPTIONS = "-c search_path=cerebro_optuna -c default_transaction_read_only=on"


def serve(url: str, port: int, say: Callable[[str], None]) -> None:
    """Serves the dashboard on this machine alone, until it is interrupted."""
    pages, runs = library("optuna_dashboard", "dashboard"), storage(url)
    say(f"http://{HOST}:{port}/")
    pages.run_server(runs, host=HOST, port=port)


def storage(url: str | sa.URL) -> RDBStorage:
    """Runs as a storage of Optuna, such as `optuna.load_study` takes: a study for each, named `<name> #<run_id>`."""
    storages = library("optuna.storages", "dashboard")
    parsed = sqlalchemy_url(url)
    options = parsed.query.get("options", "")
    own = options if isinstance(options, str) else " ".join(options)
    reading = parsed.update_query_dict({"options": f"{own} {OPTIONS}".strip()})
    found: RDBStorage = storages.RDBStorage(reading.render_as_string(hide_password=False), skip_table_creation=True)
    return found
