"""Whoever asks for a page is checked first: its host, its session, its user and its address."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import stat
import sys
from html import unescape
from pathlib import Path
from urllib.parse import quote, urljoin, urlsplit

import pytest
from asgi import HOST, PORT, Answer, ask, http_scope
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import PlainTextResponse
from starlette.types import Scope

from cerebro_db.dashboard import web_server
from cerebro_db.dashboard.auth import POLICY, Gate
from cerebro_db.dashboard.entrance import CODE_SECONDS, Entrance
from cerebro_db.dashboard.peers import find_peer_user

ORIGIN = f"http://{HOST}"
ANN, EVE = 1000, 1001


class Users:
    """Says which user sends the next requests."""

    def __init__(self) -> None:
        self.current: int | None = ANN

    def __call__(self, scope: Scope) -> int | None:
        return self.current


@pytest.fixture
def users() -> Users:
    return Users()


@pytest.fixture
def entrance() -> Entrance:
    return Entrance()


@pytest.fixture
def gate(entrance: Entrance, users: Users) -> Gate:
    return Gate(PlainTextResponse("the page"), entrance, PORT, find_user=users)


def enter(gate: Gate, entrance: Entrance, path: str = "/") -> Answer:
    return ask(gate, f"{path}?code={entrance.issue_code()}")


def link(answer: Answer) -> str:
    """The address that a browser goes on to."""
    (address,) = re.findall(r'http-equiv="refresh" content="0;url=([^"]*)"', answer.text)
    return unescape(address)


def test_a_code_becomes_a_session_that_no_script_and_no_other_site_has(
    gate: Gate, entrance: Entrance
) -> None:
    code = entrance.issue_code()
    answer = ask(gate, f"/train?source=a%26b&code={code}")
    assert (answer.status, link(answer)) == (200, "/train?source=a%26b")
    name, _, session = answer.cookie.partition("=")
    assert name == f"cerebro_{PORT}" and len(session) >= 43 and code not in answer.text + session
    assert (
        "HttpOnly" in answer.headers["set-cookie"]
        and "SameSite=strict" in answer.headers["set-cookie"]
    )
    assert ask(gate, link(answer), cookie=answer.cookie).text == "the page"


def test_a_code_works_once(gate: Gate, entrance: Entrance) -> None:
    target = f"/?code={entrance.issue_code()}"
    first = ask(gate, target)
    assert ask(gate, target).status == 403
    assert (
        ask(gate, target, cookie=first.cookie).text == "the page"
    )  # such as the button that goes back


def test_each_code_begins_a_session_of_its_own(gate: Gate, entrance: Entrance) -> None:
    cookies = {enter(gate, entrance).cookie for _ in range(3)}
    assert len(cookies) == 3
    assert {ask(gate, "/", cookie=cookie).status for cookie in cookies} == {200}


def test_a_code_expires() -> None:
    now = [0.0]
    entrance = Entrance(lambda: now[0])
    in_time, too_late = entrance.issue_code(), entrance.issue_code()
    now[0] = CODE_SECONDS - 1
    assert entrance.start_session(in_time, ANN) is not None
    now[0] = CODE_SECONDS
    assert entrance.start_session(too_late, ANN) is None


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "DELETE"])
def test_only_a_browser_that_opens_the_page_uses_a_code(
    gate: Gate, entrance: Entrance, method: str
) -> None:
    target = f"/?code={entrance.issue_code()}"
    assert ask(gate, target, method).status == 403
    assert ask(gate, target).status == 200


def test_a_session_is_worth_nothing_to_another_user(
    gate: Gate, entrance: Entrance, users: Users
) -> None:
    """Browsers send cookies to all ports of a host, so to the servers of other users as well."""
    cookie = enter(gate, entrance).cookie
    users.current = EVE
    assert ask(gate, "/", cookie=cookie).status == 403
    assert ask(gate, "/", "POST", cookie=cookie, hx_request="true").status == 403
    users.current = None  # a socket that is closed already
    assert ask(gate, "/", cookie=cookie).status == 403
    users.current = ANN
    assert ask(gate, "/", cookie=cookie).status == 200


@given(
    guess=st.text(st.characters(codec="latin-1", exclude_categories=["Cc"])),
    name=st.sampled_from(["", "x"]),
)
def test_nothing_else_is_a_session_or_a_code(guess: str, name: str) -> None:
    entrance = Entrance()
    gate = Gate(PlainTextResponse("the page"), entrance, PORT, find_user=lambda scope: ANN)
    code = entrance.issue_code()
    for cookie in (
        guess,
        f"cerebro_{PORT}={guess}",
        f"cerebro_{PORT}={code}",
        f"cerebro_{PORT}{name}={code}",
    ):
        assert ask(gate, "/", cookie=cookie).status == 403
    assert ask(gate, f"/?code={quote(guess)}").status == 403


@given(
    path=st.lists(
        st.sampled_from(
            ["/", "\\", "%5C", "%2F", "evil.com", ":", "@", "'", '"', ";", "%0A", "%09", "é"]
        )
    )
)
def test_no_address_leads_elsewhere(path: list[str]) -> None:
    entrance = Entrance()
    gate = Gate(PlainTextResponse("the page"), entrance, PORT, find_user=lambda scope: ANN)
    answer = enter(gate, entrance, "/" + quote("".join(path), safe="/%\\;:@'\""))
    address = link(answer)
    assert address.startswith("/") and not re.match(r"/[/\\]", address)
    assert urlsplit(urljoin(ORIGIN, address)).netloc == HOST and "\n" not in address


@pytest.mark.parametrize(
    "host",
    ["evil.com", f"evil.com:{PORT}", "127.0.0.1", "127.0.0.1:1", f"localhost.evil.com:{PORT}", ""],
)
def test_no_other_name_leads_here(gate: Gate, entrance: Entrance, host: str) -> None:
    cookie, code = enter(gate, entrance).cookie, entrance.issue_code()
    assert ask(gate, "/", cookie=cookie, host=host).status == 421
    assert ask(gate, f"/?code={code}", host=host).status == 421
    assert ask(gate, "/", cookie=cookie, host=f"localhost:{PORT}").status == 200


def test_what_changes_something_comes_from_a_page(gate: Gate, entrance: Entrance) -> None:
    cookie = enter(gate, entrance).cookie
    for origin, marked in ((ORIGIN, "false"), ("http://127.0.0.1:1", "true"), ("null", "true")):
        assert ask(gate, "/", "POST", cookie=cookie, hx_request=marked, origin=origin).status == 403
    assert ask(gate, "/", "POST", cookie=cookie).status == 403
    assert ask(gate, "/", "POST", cookie=cookie, hx_request="true", origin=ORIGIN).status == 200


def test_what_changes_nothing_takes_nothing_else(entrance: Entrance) -> None:
    gate = Gate(
        PlainTextResponse("the page"), entrance, PORT, read_only=True, find_user=lambda scope: ANN
    )
    cookie = enter(gate, entrance).cookie
    assert ask(gate, "/", "POST", cookie=cookie, hx_request="true").status == 405
    assert ask(gate, "/", cookie=cookie).status == 200


@pytest.mark.parametrize(
    "target", ["/%00", "/a?b=%00", "/?%00=a", "/%FF", "/?a=%C3", "/?a=é", "/%ED%A0%80"]
)
def test_an_address_is_text(gate: Gate, entrance: Entrance, target: str) -> None:
    assert ask(gate, target, cookie=enter(gate, entrance).cookie).status == 400


def test_all_answers_have_the_policy(gate: Gate, entrance: Entrance) -> None:
    cookie = enter(gate, entrance).cookie
    for answer in (
        ask(gate, "/"),
        ask(gate, "/", host="x"),
        ask(gate, "/%00"),
        ask(gate, "/", cookie=cookie),
    ):
        assert answer.headers["content-security-policy"] == POLICY
        assert (
            answer.headers["referrer-policy"] == "no-referrer"
            and answer.headers["cache-control"] == "no-store"
        )


def test_nothing_but_http_passes(gate: Gate) -> None:
    async def nothing() -> dict[str, object]:
        raise AssertionError("the application was asked")

    async def send(message: object) -> None:
        raise AssertionError("the application has answered")

    with pytest.raises(RuntimeError, match="websocket"):
        asyncio.run(gate({**http_scope("/"), "type": "websocket"}, nothing, send))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What would be the argument of a browser."""
    arguments = list[str]()
    monkeypatch.setattr("webbrowser.open", arguments.append)
    return arguments


def test_the_browser_has_no_secret_among_its_arguments(opened: list[str], tmp_path: Path) -> None:
    web_server.open_browser("http://127.0.0.1:8080/?code=c0de&x", tmp_path)
    (address,) = opened
    assert "c0de" not in address
    file = Path(urlsplit(address).path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert 'url=http://127.0.0.1:8080/?code=c0de&amp;x"' in file.read_text()


class Interrupted(web_server.Server):
    """A server that ends when it listens; it keeps what it would have served, and where the browser
    was sent.
    """

    def run(self, sockets: object = None) -> None:
        served.append(self.config.app)
        self._begin()
        raise KeyboardInterrupt


served = list[object]()


def test_whatever_is_served_stands_behind_the_gate(
    opened: list[str], monkeypatch: pytest.MonkeyPatch, entrance: Entrance
) -> None:
    """The address that is printed and the one for the browser have a code each, and either works
    once.
    """
    monkeypatch.setattr(web_server, "Server", Interrupted)
    files = list[str]()
    monkeypatch.setattr(
        "webbrowser.open", lambda address: files.append(Path(urlsplit(address).path).read_text())
    )
    said = list[str]()
    served.clear()
    web_server.serve(lambda: web_server.Pages(PlainTextResponse("the page")), 0, said.append, True)
    (gate,) = served
    assert isinstance(gate, Gate)
    (for_browser,) = re.findall(r'url=([^"]*)"', files[0])
    host = urlsplit(said[0]).netloc
    for address in (said[0], for_browser):
        target = address.removeprefix(f"http://{host}")
        assert ask(gate, "/", host=host).status == 403
        assert ask(gate, target, host=host).status == 200
        assert ask(gate, target, host=host).status == 403


@pytest.mark.skipif(sys.platform != "linux", reason="no other system lists the users of sockets")
def test_the_find_user_a_socket_is_found_while_it_is_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for family in (socket.AF_INET, socket.AF_INET6):
            host = "127.0.0.1" if family == socket.AF_INET else "::ffff:127.0.0.1"
            with socket.socket(family) as client:
                client.connect((host, listener.getsockname()[1]))
                server, address = listener.accept()
                scope = {"client": address, "server": server.getsockname()}
                assert find_peer_user(scope) == os.getuid()
            with server:
                assert find_peer_user(scope) is None  # nobody's, who has closed it


def test_without_a_list_of_sockets_no_user_is_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("cerebro_db.dashboard.peers.SOCKETS", (tmp_path / "none",))
    assert find_peer_user(http_scope("/")) is None
    assert find_peer_user({"client": None, "server": None}) is None
