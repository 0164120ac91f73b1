"""Who may see the pages: the one who has the token that was printed where they were started, from this machine."""

from __future__ import annotations

import hmac
from urllib.parse import urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Nothing from elsewhere, and nothing that stands in a page itself: a text of a user cannot become a program.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
REFUSAL = (
    "This page is for whoever has started it. Open the address that `cerebro-db dashboard` has printed, "
    "with its token.\n"
)


class Gate:
    """Stands before the pages. The token in the first address becomes a cookie that no script reads.

    The name of the host is checked, so that no other name leads here (DNS rebinding), and what changes something must
    have a header that another page cannot send without being asked first.
    """

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = token
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        self._cookie = f"cerebro_{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refusal = self._answer(Request(scope))
        await (refusal or self._app)(scope, receive, send_with_headers)

    def _answer(self, request: Request) -> Response | None:
        """What is answered in place of the page; None where the page may answer."""
        host = request.headers.get("host")
        if host not in self._hosts:
            return Response("There is no such host here.\n", 421, media_type="text/plain")
        if self._is_token(request.query_params.get("token")):
            return self._entered(request)
        if not self._is_token(request.cookies.get(self._cookie)):
            return Response(REFUSAL, 403, media_type="text/plain")
        if request.method not in ("GET", "HEAD") and not self._own(request, host):
            return Response("This did not come from a page of the dashboard.\n", 403, media_type="text/plain")
        return None

    def _is_token(self, text: str | None) -> bool:
        return text is not None and hmac.compare_digest(text.encode(), self._token.encode())

    def _own(self, request: Request, host: str) -> bool:
        origin = request.headers.get("origin", f"http://{host}")
        return request.headers.get("hx-request") == "true" and origin == f"http://{host}"

    def _entered(self, request: Request) -> Response:
        rest = urlencode([(name, value) for name, value in request.query_params.multi_items() if name != "token"])
        page = RedirectResponse(request.url.path + (f"?{rest}" if rest else ""), 303)
        page.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
        return page
