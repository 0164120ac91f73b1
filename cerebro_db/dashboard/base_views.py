"""The parts that all pages share: database sessions, templates and errors."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from cerebro_db.dashboard.event_hub import EventHub
from cerebro_db.dashboard.queries import Reader
from cerebro_db.display.boards import format_duration, format_number
from cerebro_db.errors import (
    CerebroError,
    ConnectionFailure,
    InsufficientPrivilege,
    ServerGone,
    UndefinedObject,
)
from cerebro_db.nouns import count_nouns
from cerebro_db.session import Session, connect

FOLDER = Path(__file__).parent
T = TypeVar("T")
Variables = dict[str, Any]
"""The variables of a template."""
STATUS = {UndefinedObject: 404, InsufficientPrivilege: 403, ConnectionFailure: 503, ServerGone: 503}


class SharedSession:
    """A session that calls one function at a time, and collects the server's messages."""

    def __init__(self, engine: sa.Engine) -> None:
        self._messages: list[str] = []
        self._session = connect(engine, on_notice=self._messages.append)
        self._lock = threading.Lock()

    def call(self, function: Callable[[Session], T]) -> tuple[T, list[str]]:
        """Return the result of a function, and the messages that are not of level INFO."""
        with self._lock:
            self._messages.clear()
            result = function(self._session)
            notices = [line for line in self._messages if not line.startswith("INFO")]
            return result, notices

    def cancel(self) -> None:
        """Cancel the current call."""
        self._session.cancel()

    def close(self) -> None:
        """Cancel the current call, and end the session."""
        self.cancel()
        self._session.close()


class Site:
    """The pages of one role of one database."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        self.quick_session = SharedSession(engine)
        """For calls that take no time."""
        self.slow_session = SharedSession(engine)
        """For calls that may take minutes."""
        self.hub = EventHub(engine)
        self.reader = Reader(engine)
        """For pages that a user opens."""
        self.refresh_reader = Reader(engine, self.hub.page_throttle.add_cost)
        """For the parts that an open page reads again by itself."""
        self._templates = Environment(
            loader=FileSystemLoader(FOLDER / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters |= {
            "number": format_number,
            "duration": format_duration,
            "timestamp": format_timestamp,
            "json": format_field,
            "percent": format_percent,
            "clock": format_clock,
            "relation": format_relation,
            "nouns": count_nouns,
        }

    def render(self, template: str, status: int = 200, **variables: Any) -> Response:
        """Return a template filled with variables."""
        return HTMLResponse(self._templates.get_template(template).render(variables), status)

    async def render_error(self, request: Request, error: Exception) -> Response:
        """Return an error of the database as a part of a page, or as a page."""
        assert isinstance(error, CerebroError)
        status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 400)
        is_disconnected = status == 503
        if "hx-request" not in request.headers:
            return self.render(
                "error.html", status, error=error, role=None, is_disconnected=is_disconnected
            )
        page = self.render("refusal.html", status, error=error)
        if is_disconnected and request.method == "GET":
            # The bar on top shows the failure; the part of the page stays.
            page.headers["HX-Reswap"] = "none"
        return page

    def end(self) -> None:
        """End the requests that would last: events of open pages, and calls of the server."""
        self.hub.close()
        self.quick_session.cancel()
        self.slow_session.cancel()

    def close(self) -> None:
        """End all sessions."""
        self.quick_session.close()
        self.slow_session.close()
        self.engine.dispose()


def format_timestamp(time: datetime | None) -> str:
    """Return a time to the minute, in the zone of this machine, with the name of the zone.

    >>> format_timestamp(None)
    ''
    """
    return "" if time is None else f"{time.astimezone():%Y-%m-%d %H:%M %Z}"


def format_clock(time: datetime) -> str:
    """Return the time of a day to the second, in the zone of this machine."""
    return f"{time.astimezone():%H:%M:%S}"


def format_relation(name: str | None) -> str:
    """Return the name of a relation with as few quotes as SQL needs, and without schema public.

    >>> format_relation('"public"."penguins"'), format_relation('"Data"."a b"')
    ('penguins', '"Data"."a b"')
    """
    short = re.sub(r'"([a-z_][a-z0-9_]*)"', r"\1", name or "")
    return short.removeprefix("public.")


def format_field(value: object) -> str:
    """Return a value as a user types it in a form: text as it is, any other value as JSON.

    >>> format_field("selu"), format_field([1, 2]), format_field(0.5)
    ('selu', '[1, 2]', '0.5')
    """
    return value if isinstance(value, str) else json.dumps(value)


def format_percent(share: float | None) -> str:
    """Return a share in percent.

    >>> format_percent(0.1234), format_percent(None)
    ('12.3 %', '')
    """
    return "" if share is None else f"{100 * share:.1f} %"
