"""Check the host, the session, the origin and the text of every request to the pages."""

from __future__ import annotations

import html
from collections.abc import Callable
from urllib.parse import quote, unquote_to_bytes, urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cerebro_db.dashboard.entrance import Entrance
from cerebro_db.dashboard.peers import find_peer_user

# Nothing from another host, and nothing inline, so that a text of a user cannot become a program.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
CODE = "code"
"""Parameter of an address that carries a one-time code."""
REFUSAL = (
    "This page is for whoever has started it. Open the address that `cerebro-db dashboard` "
    "printed: it works once.\n"
    "Press Enter where the command runs for another address, or start it again.\n"
)
# A navigation by this page, not a redirect. After a link from another site, such as the local file
# that opens the browser, browsers would withhold the strict cookie from a redirect.
WELCOME = (
    '<!doctype html><meta charset="utf-8"><title>cerebro_db</title>'
    '<meta http-equiv="refresh" content="0;url={0}"><a href="{0}">To the page</a>\n'
)


class Gate:
    """An application behind a check of every request.

    * The host must be one of this machine's own names, against DNS rebinding.
    * The session cookie must have been issued to this user for a one-time code.
    * A request that changes something must have a header that other sites' pages cannot send.
    * The address must be text.

    Args:
        app: application to protect.
        entrance: codes and sessions.
        port: port of the server.
        policy: Content-Security-Policy of all responses.
        read_only: refuse every request that would change something.
        find_user: returns the user id of the process that sent a request; None if it is unknown.
    """

    def __init__(
        self,
        app: ASGIApp,
        entrance: Entrance,
        port: int,
        policy: str = POLICY,
        read_only: bool = False,
        find_user: Callable[[Scope], int | None] = find_peer_user,
    ) -> None:
        self._app = app
        self._entrance = entrance
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        self._cookie = f"cerebro_{port}"
        self._headers = {**HEADERS, "Content-Security-Policy": policy}
        self._read_only = read_only
        self._find_user = find_user

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it to the application."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            # A request of another type must not pass unchecked.
            raise RuntimeError(f"a dashboard has no {scope['type']}")

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        refusal = self._refuse(Request(scope))
        await (refusal or self._app)(scope, receive, send_with_headers)

    def _refuse(self, request: Request) -> Response | None:
        """Return the response that replaces the page; None if the page may answer."""
        host = request.headers.get("host")
        if host not in self._hosts:
            return PlainTextResponse("There is no such host here.\n", 421)
        if not _is_text(request.scope):
            return PlainTextResponse("The address must be text in UTF-8 without zero bytes.\n", 400)
        user = self._find_user(request.scope)
        code = request.query_params.get(CODE)
        if code is not None and request.method == "GET":
            session = self._entrance.start_session(code, user)
            if session is not None:
                return self._welcome(request, session)
        if not self._entrance.admits(request.cookies.get(self._cookie), user):
            return PlainTextResponse(REFUSAL, 403)
        if request.method in ("GET", "HEAD"):
            return None
        if self._read_only:
            return PlainTextResponse("Nothing can be changed here.\n", 405, {"Allow": "GET, HEAD"})
        if not _is_from_own_page(request, host):
            return PlainTextResponse("This did not come from a page of the dashboard.\n", 403)
        return None

    def _welcome(self, request: Request, session: str) -> Response:
        """Return a page that sets the session cookie and opens the address without the code."""
        parameters = [
            (name, value) for name, value in request.query_params.multi_items() if name != CODE
        ]
        address = _make_local_path(request.url.path)
        if parameters:
            address += f"?{urlencode(parameters)}"
        page = HTMLResponse(WELCOME.format(html.escape(address)))
        page.set_cookie(self._cookie, session, httponly=True, samesite="strict")
        return page


def _make_local_path(path: str) -> str:
    """Return a path without the leading slashes that would make it name another server.

    >>> [_make_local_path(path) for path in ("//example.org/a b", "/%5Cexample.org", "/")]
    ['/example.org/a%20b', '/%255Cexample.org', '/']
    """
    return "/" + quote(path.lstrip("/\\"))


def _is_text(scope: Scope) -> bool:
    """Return True if the path and the query are UTF-8 without zero bytes, also when unquoted."""
    query = scope["query_string"]
    if not query.isascii():
        return False
    try:
        text = scope["path"] + unquote_to_bytes(query).decode()
        text += unquote_to_bytes(scope.get("raw_path") or b"").decode()
    except UnicodeDecodeError:
        return False
    return "\0" not in text


def _is_from_own_page(request: Request, host: str) -> bool:
    origin = request.headers.get("origin", f"http://{host}")
    return request.headers.get("hx-request") == "true" and origin == f"http://{host}"
