"""The application of all pages, and the function that serves it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from cerebro_db.dashboard.base_views import Site
from cerebro_db.dashboard.model_pages import ModelPages
from cerebro_db.dashboard.queries import make_engine
from cerebro_db.dashboard.run_pages import RunPages
from cerebro_db.dashboard.train_pages import TrainPages
from cerebro_db.dashboard.web_server import Echo, Pages
from cerebro_db.dashboard.web_server import serve as serve_pages
from cerebro_db.errors import CerebroError

STATIC = Path(__file__).parent / "static"


def serve(url: str, port: int, echo: Echo, browser: bool) -> None:
    """Serve the pages of a database on this machine until Ctrl-C; see `web_server.serve`."""
    serve_pages(lambda: make_pages(url), port, echo, browser)


def make_pages(url: str) -> Pages:
    """Return the pages of a database, to be served."""
    site = Site(make_engine(url))
    return Pages(make_application(site), end=site.end)


def make_application(site: Site) -> Starlette:
    """Return the application of a site, which closes the site's sessions at its end."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        site.close()

    pages = (RunPages(site), TrainPages(site), ModelPages(site))
    routes = [route for page in pages for route in page.list_routes()]
    routes.append(Route("/favicon.ico", send_icon))
    return Starlette(
        routes=[*routes, Mount("/static", StaticFiles(directory=STATIC))],
        exception_handlers={CerebroError: site.render_error},
        lifespan=lifespan,
    )


async def send_icon(request: Request) -> Response:
    """Send the icon of the pages to a browser that asks for the icon of a page without a link."""
    return FileResponse(STATIC / "icon.svg", media_type="image/svg+xml")
