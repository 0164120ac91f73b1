"""A server in a process of its own: its address works once, and Enter prints another."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from processes import eventually

from cerebro_db.dashboard import web_server

SERVER = """
from starlette.responses import PlainTextResponse
from cerebro_db.dashboard.web_server import Pages, serve
serve(lambda: Pages(PlainTextResponse("the page")), 0, lambda text: print(text, flush=True), False)
"""
SLOW_SERVER = """
import asyncio
from cerebro_db.dashboard.web_server import Pages, serve
async def page(scope, receive, send):
    if scope["type"] == "http":
        print("asked", flush=True)
        await asyncio.sleep(3600)
serve(lambda: Pages(page), 0, lambda text: print(text, flush=True), False)
"""
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/\?code=[\w-]+")


@dataclass
class Terminal:
    """A terminal in which the server runs."""

    descriptor: int
    text: str = ""

    def addresses(self) -> list[str]:
        """All addresses that were printed up to now."""
        self.text += os.read(self.descriptor, 4096).decode()
        return ADDRESS.findall(self.text)

    def press(self, key: bytes) -> None:
        os.write(self.descriptor, key)


@contextmanager
def server() -> Iterator[Terminal]:
    """The server in the foreground of a terminal, until Ctrl-C."""
    own, its = os.openpty()
    command = [sys.executable, "-I", "-c", SERVER]
    with subprocess.Popen(
        command, preexec_fn=lambda: os.login_tty(its), stderr=subprocess.PIPE
    ) as process:
        os.close(its)
        try:
            yield Terminal(own)
        finally:
            os.write(own, b"\x03")
            assert process.wait(timeout=60) == 0
            os.close(own)


def ask(address: str, **headers: str) -> tuple[int, str, str | None]:
    """Status, text and cookie of an answer."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urllib.request.urlopen(
            urllib.request.Request(address, headers=named), timeout=60
        ) as answer:
            return answer.status, answer.read().decode(), answer.headers["set-cookie"]
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), None


def test_each_address_works_once_and_enter_prints_another() -> None:
    with server() as terminal:
        (first,) = eventually(terminal.addresses)
        root = first.partition("?")[0]
        assert ask(root)[0] == 403
        assert ask(first)[0] == 200 and ask(first)[0] == 403
        terminal.press(b"\n")
        (second,) = eventually(lambda: terminal.addresses()[1:])
        assert web_server.ADVICE in terminal.text
        status, _, cookie = ask(second)
        assert status == 200 and cookie is not None and ask(second)[0] == 403
        assert ask(root, cookie=cookie)[:2] == (200, "the page")


@pytest.mark.skipif(sys.platform != "linux", reason="no other system lists the users of sockets")
def test_no_header_says_whose_a_request_is() -> None:
    """The session belongs to the user of the socket, so that a claim of a proxy changes nothing."""
    with server() as terminal:
        (address,) = eventually(terminal.addresses)
        cookie = ask(address, x_forwarded_for="10.0.0.1")[2]
        assert cookie is not None
        root = address.partition("?")[0]
        for headers in (
            {},
            {"x_forwarded_for": "10.0.0.1"},
            {"x_forwarded_for": "127.0.0.1"},
            {"forwarded": "for=1"},
        ):
            assert ask(root, cookie=cookie, **headers)[0] == 200


def test_an_open_request_is_answered_when_the_server_ends() -> None:
    """Ctrl-C in the midst of a call prints no traceback."""
    command = [sys.executable, "-I", "-c", SLOW_SERVER]
    with (
        ThreadPoolExecutor(1) as pool,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        assert process.stdout and process.stderr
        address = process.stdout.readline().strip()
        cookie = ask(address)[2]
        assert cookie is not None
        root = address.partition("?")[0]
        answer = pool.submit(ask, root, cookie=cookie.partition(";")[0])
        assert process.stdout.readline() == "asked\n"
        process.send_signal(2)
        assert (process.wait(timeout=60), process.stderr.read()) == (0, "")
        assert answer.result(timeout=60)[:2] == (503, "The dashboard has ended.\n")
