"""Optuna's dashboard over runs: the views of schema cerebro_optuna are what it takes for its own tables.

It reads as the role of the URL, and can write nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from cerebro_db.driver import sqlalchemy_url
from cerebro_db.libraries import library

if TYPE_CHECKING:
    from optuna.storages import RDBStorage

OPTIONS = "-c search_path=cerebro_optuna -c default_transaction_read_only=on"
# As Optuna's dashboard wants it itself: its pictures are drawn by compiled programs, its styles stand in the page.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-eval'; style-src 'self' data: 'unsafe-inline'; "
    "img-src 'self' data: blob:; object-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def serve(url: str, port: int, say: Callable[[str], None], browser: bool) -> None:
    """Serve the dashboard on this machine until Ctrl-C, behind the same gate as the pages of cerebro_db."""
    serving = library("cerebro_db.dashboard.serving", "dashboard")
    serving.serve(lambda: serving.Pages(application(storage(url)), POLICY, read_only=True), port, say, browser)


def application(runs: RDBStorage) -> Any:
    """Return Optuna's dashboard, which is a WSGI application, as an ASGI application."""
    adapter = library("a2wsgi", "dashboard")
    return adapter.WSGIMiddleware(library("optuna_dashboard", "dashboard").wsgi(runs))


def storage(url: str | sa.URL) -> RDBStorage:
    """Runs as a storage of Optuna, such as `optuna.load_study` takes: a study for each, named `<name> #<run_id>`."""
    storages = library("optuna.storages", "dashboard")
    parsed = sqlalchemy_url(url)
    options = parsed.query.get("options", "")
    own = options if isinstance(options, str) else " ".join(options)
    reading = parsed.update_query_dict({"options": f"{own} {OPTIONS}".strip()})
    found: RDBStorage = storages.RDBStorage(reading.render_as_string(hide_password=False), skip_table_creation=True)
    return found
