"""Serve Optuna's dashboard over runs.

The views of schema cerebro_optuna have the form of its own tables. It reads with the role of the
URL, and cannot write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import sqlalchemy as sa

from cerebro_db.dashboard.queries import add_options
from cerebro_db.display.csv_files import rewrite_csv
from cerebro_db.optional_imports import import_library

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from optuna.storages import RDBStorage

    from cerebro_db.dashboard.web_server import Echo, Pages

OPTIONS = "-c search_path=cerebro_optuna -c default_transaction_read_only=on"
# Optuna's dashboard draws charts with compiled programs, and has its styles in the page.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-eval'; style-src 'self' data: 'unsafe-inline'; "
    "img-src 'self' data: blob:; object-src 'none'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
# The requests of its pages; it answers others with a server error, or they have no use here.
PATH = re.compile(
    r"/?|/dashboard(/.*)?|/favicon\.ico|/static/[\w./-]+|/incompatible-rdb-schema|/api/meta|/api/studies"
    r"|(/api/studies|/csv)/(?P<study>[0-9]{1,9})(/param_importances)?",
    re.ASCII,
)
# The queries about a study; other pages read their queries in the browser.
QUERY = re.compile(
    r"((after=[0-9]{1,9}|trial_ids=[0-9,%C]{0,10000}|evaluator=\w{1,30})(&|$))*", re.ASCII
)


def serve(url: str, port: int, echo: Echo, browser: bool) -> None:
    """Serve the dashboard on this machine until Ctrl-C, behind the gate of cerebro_db's pages."""
    web_server = import_library("cerebro_db.dashboard.web_server", "dashboard")
    web_server.serve(lambda: make_pages(url), port, echo, browser)


def make_pages(url: str) -> Pages:
    """Return Optuna's dashboard, a WSGI application, as pages to serve."""
    web_server = import_library("cerebro_db.dashboard.web_server", "dashboard")
    adapter = import_library("a2wsgi", "dashboard")
    runs = storage(url)
    app = RequestFilter(import_library("optuna_dashboard", "dashboard").wsgi(runs), runs)
    pages: Pages = web_server.Pages(adapter.WSGIMiddleware(app), POLICY, read_only=True)
    return pages


class RequestFilter:
    """A filter that passes only requests of the dashboard's own pages for existing studies.

    Args:
        app: the dashboard.
        runs: the storage that it reads.
    """

    def __init__(self, app: WSGIApplication, runs: RDBStorage) -> None:
        self.app = app
        self._runs = runs

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request, or refuse it."""
        path = PATH.fullmatch(environ["PATH_INFO"])
        if path is None or (path["study"] and not self._has_study(int(path["study"]))):
            return _refuse(start_response, "404 Not Found", b"There is no such page or study.\n")
        if path["study"] and not QUERY.fullmatch(environ["QUERY_STRING"]):
            return _refuse(start_response, "400 Bad Request", b"No page asks so about a study.\n")
        environ.setdefault("HTTP_ACCEPT_ENCODING", "")  # the dashboard requires the header
        if environ["PATH_INFO"].startswith("/csv/"):
            return self._write_csv(environ, start_response)
        return self.app(environ, start_response)

    def _write_csv(
        self, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        """Return Optuna's file without formulas that a spreadsheet would execute."""
        status = ""
        headers = list[tuple[str, str]]()

        def receive_head(
            new_status: str, new_headers: list[tuple[str, str]], error: object = None
        ) -> Callable[[bytes], None]:
            nonlocal status, headers
            status = new_status
            headers = new_headers
            return lambda part: None

        body = b"".join(self.app(environ, receive_head))
        if status.startswith("200 "):
            body = rewrite_csv(body.decode()).encode()
        headers = [(name, value) for name, value in headers if name.lower() != "content-length"]
        start_response(status, [*headers, ("Content-Length", str(len(body)))])
        return [body]

    def _has_study(self, study: int) -> bool:
        try:
            self._runs.get_study_name_from_id(study)
        except KeyError:
            return False
        return True


def _refuse(start_response: StartResponse, status: str, reason: bytes) -> Iterable[bytes]:
    start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
    return [reason]


def storage(url: str | sa.URL) -> RDBStorage:
    """Return the runs as a storage of Optuna, for functions such as `optuna.load_study`.

    Each run is a study, which has the name `<name> #<run_id>`.
    """
    storages = import_library("optuna.storages", "dashboard")
    storage_url = add_options(url, OPTIONS).render_as_string(hide_password=False)
    runs: RDBStorage = storages.RDBStorage(storage_url, skip_table_creation=True)
    return runs
