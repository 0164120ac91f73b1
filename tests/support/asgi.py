"""Requests to an ASGI application without a socket, as a server would hand them on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import unquote

from starlette.types import ASGIApp, Message, Scope

PORT = 8080
HOST = f"127.0.0.1:{PORT}"


@dataclass(frozen=True)
class Answer:
    """The response to a request."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def cookie(self) -> str:
        """The cookie that it sets, as a browser sends it back."""
        ((name, morsel),) = SimpleCookie(self.headers["set-cookie"]).items()
        return f"{name}={morsel.value}"


def http_scope(target: str, method: str = "GET", headers: Mapping[str, str] | None = None) -> Scope:
    """Return the scope of a request for a path with its query, percent-encoded."""
    path, _, query = target.partition("?")
    sent = {"host": HOST, **(headers or {})}
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in sent.items()],
        "client": ("127.0.0.1", 40000),
        "server": ("127.0.0.1", PORT),
    }


async def request(app: ASGIApp, scope: Scope, body: bytes = b"") -> Answer:
    """Return the response of an application; the browser leaves once an endless one has begun.

    What the application raises is raised here.
    """
    messages: list[Message] = []
    has_begun = asyncio.Event()
    parts = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if parts:
            return parts.pop()
        await has_begun.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        messages.append(message)
        has_begun.set()

    await app(scope, receive, send)
    start: Any = messages[0]
    headers = {name.decode().lower(): value.decode("latin-1") for name, value in start["headers"]}
    return Answer(
        start["status"], headers, b"".join(message.get("body", b"") for message in messages[1:])
    )


def ask(
    app: ASGIApp, target: str, method: str = "GET", body: bytes = b"", **headers: str
) -> Answer:
    """Send one request; names of headers have _ for -."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return asyncio.run(request(app, http_scope(target, method, named), body))
