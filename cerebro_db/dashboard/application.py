"""The pages over runs and models as an application, and the command that serves them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from cerebro_db.dashboard.base_views import Site
from cerebro_db.dashboard.model_pages import ModelPages
from cerebro_db.dashboard.queries import engine
from cerebro_db.dashboard.run_pages import RunPages
from cerebro_db.dashboard.train_pages import TrainPages
from cerebro_db.dashboard.web_server import Pages
from cerebro_db.dashboard.web_server import serve as serve_pages
from cerebro_db.errors import CerebroError

STATIC = Path(__file__).parent / "static"


def serve(url: str, port: int, echo: Callable[[str], None], browser: bool) -> None:
    """Serve the pages of a database on this machine until Ctrl-C, as `serving.serve` does."""
    serve_pages(lambda: make_pages(url), port, echo, browser)


def make_pages(url: str) -> Pages:
    """Return the pages of a database as what is served."""
    site = Site(engine(url))
    return Pages(application(site), end=site.hub.end)


def application(site: Site) -> Starlette:
    """Return the routes of a site; at their end its sessions end."""

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
