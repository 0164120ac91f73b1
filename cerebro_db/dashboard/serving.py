"""Serves the pages to the one who starts them, on this machine, until they are interrupted."""

from __future__ import annotations

import secrets
import socket
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from cerebro_db.dashboard.access import Gate
from cerebro_db.dashboard.model_pages import ModelPages
from cerebro_db.dashboard.reading import engine
from cerebro_db.dashboard.run_pages import RunPages
from cerebro_db.dashboard.site import Site
from cerebro_db.dashboard.train_pages import TrainPages
from cerebro_db.errors import CerebroError, ObjectInUse

HOST = "127.0.0.1"
STATIC = Path(__file__).parent / "static"
GOODBYE_SECONDS = 1
"""So long may open pages take to hear that this is the end."""


def serve(url: str, port: int, say: Callable[[str], None], browser: bool) -> None:
    """Serves the pages, and says at which address: it has a token, without which nobody gets an answer.

    With port 0 any that is free will do. Raises ObjectInUse where another program has the port.
    """
    token = secrets.token_urlsafe(24)
    with _listening(port) as place:
        port = place.getsockname()[1]
        address = f"http://{HOST}:{port}/?token={token}"

        def ready() -> None:
            say(address)
            if browser:
                webbrowser.open(address)

        with suppress(KeyboardInterrupt):  # which is how it ends
            site = Site(engine(url))
            Server(Gate(application(site), token, port), ready, site.hub.end).run([place])


def _listening(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        raise ObjectInUse(
            f"cannot listen on {HOST}, port {port}: {error.strerror}",
            hint="Choose another port by --port; with --port 0 any that is free is taken.",
        ) from error


class Server(uvicorn.Server):
    """A server that says when it listens, which is when a browser may be opened, and when it ends."""

    def __init__(self, app: ASGIApp, ready: Callable[[], None], end: Callable[[], None]) -> None:
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GOODBYE_SECONDS,
        )
        super().__init__(config)
        self._ready = ready
        self._end = end

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._end()
        await super().shutdown(sockets)


def application(site: Site) -> ASGIApp:
    """The pages of a site."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        site.close()

    pages = (RunPages(site), TrainPages(site), ModelPages(site))
    routes = [route for page in pages for route in page.routes()]
    return Starlette(
        routes=[*routes, Mount("/static", StaticFiles(directory=STATIC))],
        exception_handlers={CerebroError: site.refusal},
        lifespan=lifespan,
    )
