"""What every page needs: what it reads with, what it calls functions with, and how it writes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from cerebro_db.dashboard.event_hub import Hub
from cerebro_db.dashboard.queries import Reader
from cerebro_db.display.boards import format_duration, format_number
from cerebro_db.errors import (
    CerebroError,
    ConnectionFailure,
    InsufficientPrivilege,
    ServerGone,
    UndefinedObject,
)
from cerebro_db.session import Session, connect

FOLDER = Path(__file__).parent
T = TypeVar("T")
STATUS = {UndefinedObject: 404, InsufficientPrivilege: 403, ConnectionFailure: 503, ServerGone: 503}


class Desk:
    """A session in which functions are called, one at a time; what the server says meanwhile goes
    with the answer.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._said: list[str] = []
        self._session = connect(engine, on_notice=self._said.append)
        self._lock = threading.Lock()

    def ask(self, work: Callable[[Session], T]) -> tuple[T, list[str]]:
        """What the work returns, and the server's messages."""
        with self._lock:
            self._said.clear()
            found = work(self._session)
            return found, [line for line in self._said if not line.startswith("INFO")]

    def close(self) -> None:
        """Cancels what goes on, and ends the session."""
        self._session.cancel()
        self._session.close()


class Site:
    """The pages of one role of one database."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        self.acts = Desk(engine)
        """For what is quick."""
        self.work = Desk(engine)
        """For what may take minutes."""
        self.hub = Hub(engine)
        self.reader = Reader(engine)
        """For what somebody asks for."""
        self.again = Reader(engine, self.hub.pages.took)
        """For what a page that is open reads by itself."""
        self._pages = Environment(
            loader=FileSystemLoader(FOLDER / "templates"), autoescape=True,
            undefined=StrictUndefined, trim_blocks=True,
            lstrip_blocks=True,
        )  # fmt: skip
        self._pages.filters |= {
            "number": format_number,
            "clock": format_duration,
            "moment": moment,
            "json": written,
            "percent": percent,
        }

    def page(self, name: str, status: int = 200, **facts: Any) -> Response:
        """A template, filled in."""
        return HTMLResponse(self._pages.get_template(name).render(facts), status)

    async def refusal(self, request: Request, error: Exception) -> Response:
        """What an error of the database looks like: a sentence in its place, or a page."""
        assert isinstance(error, CerebroError)
        status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 400)
        if "hx-request" not in request.headers:
            return self.page("error.html", status, error=error, role=None, lost=status == 503)
        page = self.page("refusal.html", status, error=error)
        if status == 503 and request.method == "GET":
            page.headers["HX-Reswap"] = "none"  # the bar on top says it; what stood there stays
        return page

    def close(self) -> None:
        """Ends all sessions."""
        self.acts.close()
        self.work.close()
        self.engine.dispose()


def moment(time: datetime | None) -> str:
    """A time to the second, in the zone of this machine.

    >>> moment(None)
    ''
    """
    return "" if time is None else f"{time.astimezone():%Y-%m-%d %H:%M:%S}"


def written(value: object) -> str:
    """A value as one types it in a form: a text as it is, everything else as JSON.

    >>> written("selu"), written([1, 2]), written(0.5)
    ('selu', '[1, 2]', '0.5')
    """
    return value if isinstance(value, str) else json.dumps(value)


def percent(share: float | None) -> str:
    """A share in percent.

    >>> percent(0.1234), percent(None)
    ('12.3 %', '')
    """
    return "" if share is None else f"{100 * share:.1f} %"
