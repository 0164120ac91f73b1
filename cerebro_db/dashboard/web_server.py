"""Serve an application to the user who starts it.

No other module listens, so that all pages are behind the gate.
"""

from __future__ import annotations

import asyncio
import html
import logging
import os
import socket
import sys
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from cerebro_db.dashboard.auth import CODE, POLICY, Gate
from cerebro_db.dashboard.entrance import CODE_SECONDS, Entrance
from cerebro_db.errors import ObjectInUse

Echo = Callable[[str], None]  # prints a line
HOST = "127.0.0.1"
SHUTDOWN_SECONDS = 1
"""Time that open pages get for their last events."""
ADVICE = f"The address works once, within {CODE_SECONDS // 60} minutes; Enter prints another."
OPENER = (
    '<!doctype html><meta charset="utf-8"><meta name="referrer" '
    'content="no-referrer"><title>cerebro_db</title><meta http-equiv="refresh" '
    'content="0;url={0}"><a href="{0}">To the page</a>\n'
)


@dataclass(frozen=True)
class Pages:
    """An application to serve."""

    app: ASGIApp
    policy: str = POLICY  # Content-Security-Policy of its responses
    read_only: bool = False  # its pages change nothing
    # Ends requests that would last as long as the server.
    end: Callable[[], None] = lambda: None


def serve(make_pages: Callable[[], Pages], port: int, echo: Echo, browser: bool) -> None:
    """Serve pages on this machine until Ctrl-C.

    Args:
        make_pages: called once the port is taken.
        port: port on 127.0.0.1; 0 takes any that is free.
        echo: receives the address to open, whose code works once.
        browser: open the address in the browser.

    Raises:
        ObjectInUse: another program uses the port.
    """
    with _listen(port) as listener, TemporaryDirectory(prefix="cerebro-db-") as folder:
        port = listener.getsockname()[1]
        entrance = Entrance()

        def print_address() -> None:
            echo(_make_address(entrance, port))

        def begin() -> None:
            print_address()
            if browser:
                open_browser(_make_address(entrance, port), Path(folder))
            if _has_keyboard():
                echo(ADVICE)
                _call_on_enter(print_address)

        with suppress(KeyboardInterrupt):  # the way to stop the server
            pages = make_pages()
            gate = Gate(EndingApp(pages.app), entrance, port, pages.policy, pages.read_only)
            Server(gate, begin, pages.end).run([listener])


def open_browser(address: str, folder: Path) -> None:
    """Open an address in the browser, through a file that only this user may read.

    All users of a machine see the arguments of programs, which must not contain the code.
    """
    file = folder / "open.html"
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w") as page:
        page.write(OPENER.format(html.escape(address)))
    webbrowser.open(file.as_uri())


def _make_address(entrance: Entrance, port: int) -> str:
    return f"http://{HOST}:{port}/?{CODE}={entrance.issue_code()}"


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        raise ObjectInUse(
            f"cannot listen on {HOST}, port {port}: {error.strerror}",
            hint="Choose another port by --port; with --port 0 any that is free is taken.",
        ) from error


def _has_keyboard() -> bool:
    """Return True if this process is in the foreground of a terminal."""
    if sys.stdin is None or not sys.stdin.isatty():
        return False
    return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()


def _call_on_enter(function: Callable[[], None]) -> None:
    """Call a function for each line that is typed."""
    loop = asyncio.get_running_loop()
    keyboard = sys.stdin.fileno()

    def read_line() -> None:
        # In the background, reading would stop the process.
        if not _has_keyboard() or not os.read(keyboard, 1024):
            loop.remove_reader(keyboard)
            return
        function()

    loop.add_reader(keyboard, read_line)


def is_worth_reading(record: logging.LogRecord) -> bool:
    """Return False for the line about requests that the end of the server cancels."""
    return not str(record.msg).startswith("Cancel %s running task(s)")


class EndingApp:
    """An application whose open requests are answered when the server ends, without a traceback."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; answer it if the server ends before the application does."""
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            response = PlainTextResponse("The dashboard has ended.\n", 503)
            await response(scope, receive, send)


class Server(uvicorn.Server):
    """A server that calls `begin` when it listens, and `end` before it waits for open requests."""

    def __init__(self, app: ASGIApp, begin: Callable[[], None], end: Callable[[], None]) -> None:
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,  # a header must not decide about the user of a request
            ws="none",
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
        super().__init__(config)
        self._begin = begin
        self._end = end

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._begin()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        logging.getLogger("uvicorn.error").addFilter(is_worth_reading)
        self._end()
        await super().shutdown(sockets)
