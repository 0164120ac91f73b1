"""No request makes a page fail: what is wrong with its input is refused, on every route that there is."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest
from asgi import PORT, Answer, http_scope, request
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.routing import Mount, Route
from starlette.types import ASGIApp
from workbench import Workbench, compile_text

from cerebro_db.dashboard import optuna
from cerebro_db.dashboard.access import Gate
from cerebro_db.dashboard.application import application
from cerebro_db.dashboard.entrance import Entrance
from cerebro_db.dashboard.reading import engine
from cerebro_db.dashboard.run_pages import ACTS
from cerebro_db.dashboard.site import Site

pytestmark = pytest.mark.postgresql("pages know nothing of the platform")

# Bytes of a query or a form, as they are sent.
HOSTILE = [
    b"", b"0", b"-1", b"1", b"1e999", b"NaN", b"2147483648", b"9223372036854775808", b"9" * 5000, "٣".encode(), b"%00",
    b"a%00b", b"\0", b"%FF", b"\xff\xfe", b"%ED%A0%80", b"%", b"%zz", b"%5Bx", b"null", b"true", b'"\\ud800"',
    b'"\\u0000"', b"[" * 100_000, b"[" * 900 + b"]" * 900, b'{"a":' * 100_000, b"x" * 60_000, b"' OR 1=1 --", b"%27",
    b'"', b"..%2f..%2fetc%2fpasswd", b"%25s", b"{}", b"{{7*7}}", b"a;b", b"a%0D%0Ab: c", b"%C2%85%E2%80%AE",
    b"public.no_table", b"a.b.c.d.e", b"pg_class", b"on",
]  # fmt: skip
NAMES = [
    b"source", b"target", b"budget", b"search", b"model", b"version", b"owner", b"action", b"mst_key", b"epochs", b"n",
    b"warm", b"was.lr", b"new.lr", b"configs", b"seed", b"columns", b"value.x", b"kind.x", b"value.", b"all", b"code",
    b"token", b"after", b"evaluator", b"%00", b"\xff", b"",
]  # fmt: skip
NUMBERS = ["0", "1", "7", "2147483648", "9223372036854775808", "9" * 5000, "-1", "x", "%00", "%FF", "1%2F2", "٣"]
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]

pairs = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(HOSTILE) | st.binary(max_size=20)), max_size=8)
actions = st.sampled_from([*ACTS, "drop_run", "%00"]).map(lambda action: [(b"action", action.encode())])


@dataclass(frozen=True)
class Target:
    """An application behind its gate, with the routes that it has."""

    app: ASGIApp
    cookie: str
    paths: list[str]  # with a name in braces for what varies

    async def ask(self, target: str, method: str, body: bytes) -> Answer:
        headers = {"cookie": self.cookie, "hx-request": "true"}
        return await request(self.app, http_scope(target, method, headers), body)


@contextmanager
def behind_gate(app: ASGIApp, paths: list[str]) -> Iterator[Target]:
    entrance = Entrance()
    gate = Gate(app, entrance, PORT, user_of=lambda scope: None)
    session = entrance.begin_session(entrance.issue_code(), None)
    yield Target(gate, f"cerebro_{PORT}={session}", paths)


@pytest.fixture(scope="module")
def run(bench: Workbench) -> int:
    bench.pack("packed", 2)
    bench.configure("configs", [compile_text()], ["batch_size=8"])
    return bench.fit("packed", "outputs", "configs", 1)


def paths_of(routes: list[Any]) -> list[str]:
    """The paths of Starlette's routes, with braces for what varies."""
    found = list[str]()
    for route in routes:
        assert isinstance(route, (Route, Mount)), f"this test does not know {route}"
        suffix = "/{path}" if isinstance(route, Mount) else ""
        found.append(re.sub(r":\w+}", "}", route.path) + suffix)
    return found


@pytest.fixture(scope="module")
def pages(bench: Workbench, run: int) -> Iterator[Target]:
    site = Site(engine(bench.url))
    app = application(site)
    paths = paths_of(app.routes)
    assert "/runs/{run}/configs/{key}" in paths and "/model/predict" in paths
    with behind_gate(app, paths) as target:
        yield target
    site.close()


@pytest.fixture(scope="module")
def optunas(bench: Workbench, run: int) -> Iterator[Target]:
    adapter = optuna.application(optuna.storage(bench.url))
    paths = sorted({re.sub(r"<(\w*)(?::[^<>]*)?>", r"{\1}", route.rule) for route in adapter.app.routes})
    assert "/api/studies/{study_id}" in paths
    with behind_gate(adapter, paths) as target:
        yield target


@st.composite
def requests(draw: Callable[[Any], Any], paths: list[str], run: int) -> tuple[str, str, bytes]:
    """A path, a method and a body; each of them is hostile here and there."""
    numbers = st.sampled_from([str(run), *NUMBERS])
    path = re.sub(r"{\w*}", lambda _: draw(numbers | st.sampled_from(HOSTILE).map(quote)), draw(st.sampled_from(paths)))
    query = b"&".join(name + b"=" + value[:4000] for name, value in draw(pairs))
    form = b"&".join(name + b"=" + value for name, value in [*draw(st.just([]) | actions), *draw(pairs)])
    body = draw(st.just(form) | st.binary(max_size=50) | st.just(form + b"x" * 2_000_000))
    return f"{path[:8000]}?{quote(query, safe='%&=')}", draw(st.sampled_from(METHODS)), body


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    """The event loop of all requests, as a server has one."""
    with asyncio.Runner() as runner:
        yield runner


def check_answers(loop: asyncio.Runner, target: Target, run: int) -> None:
    """Check that none of the requests that hypothesis draws fails."""

    async def whole(cases: list[tuple[str, str, bytes]]) -> list[tuple[int, str]]:
        found = []
        for path, method, body in cases:
            answer = await target.ask(path, method, body)
            found.append((answer.status, f"{method} {path[:200]} {body[:200]!r}: {answer.body[:300]!r}"))
        return found

    @settings(deadline=None, suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow])
    @given(st.lists(requests(target.paths, run), min_size=5, max_size=20))
    def check(cases: list[tuple[str, str, bytes]]) -> None:
        failed = [text for status, text in loop.run(whole(cases)) if status >= 500]
        assert failed == []

    check()


def test_no_request_makes_a_page_fail(loop: asyncio.Runner, pages: Target, run: int) -> None:
    check_answers(loop, pages, run)


def test_no_request_makes_a_page_of_optuna_fail(loop: asyncio.Runner, optunas: Target, run: int) -> None:
    check_answers(loop, optunas, run)


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("action", ACTS)
def test_no_field_makes_an_act_fail(loop: asyncio.Runner, pages: Target, run: int, action: str, value: bytes) -> None:
    fields = ("mst_key", "epochs", "n", "new.lr", "warm")
    form = b"&".join([b"action=" + action.encode(), b"was.lr=1", *(f"{name}=".encode() + value for name in fields)])
    answer = loop.run(pages.ask(f"/runs/{run}/acts", "POST", form))
    assert answer.status < 500
