"""No request makes a page fail: what is wrong with its input is refused, on every route that there is."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
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
from cerebro_db.dashboard.forms import LARGEST
from cerebro_db.dashboard.reading import engine
from cerebro_db.dashboard.run_pages import ACTS
from cerebro_db.dashboard.serving import Pages
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
# Fields that a form of some page has, as somebody might fill them in, but for what would train.
FORM = {
    b"source": b"public.no_table", b"target": b"y", b"budget": b"1", b"search": b"auto", b"model": b"m", b"owner": b"o",
    b"version": b"1", b"mst_key": b"1", b"epochs": b"1", b"n": b"1", b"was.lr": b"1", b"new.lr": b"2", b"value.x": b"1",
    b"kind.x": b"json",
}  # fmt: skip
OTHERS = [
    b"action", b"warm", b"configs", b"seed", b"columns", b"value.", b"all", b"code", b"token", b"after", b"evaluator",
    b"",
]  # fmt: skip
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]

values = st.sampled_from(HOSTILE) | st.binary(max_size=20)
fields = st.dictionaries(st.sampled_from([*FORM, *OTHERS]) | values, values, max_size=4)
actions = st.sampled_from([*ACTS, "drop_run", "%00"]).map(str.encode)


def encode(form: Mapping[bytes, bytes]) -> bytes:
    return b"&".join(name + b"=" + value for name, value in form.items())


@dataclass(frozen=True)
class Target:
    """An application behind its gate, with the routes that it has."""

    app: ASGIApp
    cookie: str
    paths: list[str]  # with a name in braces for what varies

    async def ask(self, target: str, method: str, body: bytes) -> Answer:
        headers = {"cookie": self.cookie, "hx-request": "true"}
        return await request(self.app, http_scope(target, method, headers), body)


def behind_gate(pages: Pages, paths: list[str]) -> Target:
    """What a command would serve, entered already."""
    entrance = Entrance()
    gate = Gate(pages.app, entrance, PORT, pages.policy, pages.read_only, lambda scope: None)
    session = entrance.begin_session(entrance.issue_code(), None)
    return Target(gate, f"cerebro_{PORT}={session}", paths)


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
    yield behind_gate(Pages(app), paths)
    site.close()


@pytest.fixture(scope="module")
def optunas(bench: Workbench, run: int) -> Target:
    pages = optuna.make_pages(bench.url)
    adapter: Any = pages.app
    paths = sorted({re.sub(r"<(\w*)(?::[^<>]*)?>", r"{\1}", route.rule) for route in adapter.app.app.routes})
    assert "/api/studies/{study_id}" in paths
    return behind_gate(pages, paths)


@st.composite
def requests(draw: Callable[[Any], Any], paths: list[str], run: int) -> tuple[str, str, bytes]:
    """A target, a method and a body, of which one part is hostile: what is refused early hides what comes later."""
    hostile = draw(st.sampled_from(["path", "query", "form", "body", "method"]))
    form = {**FORM, b"action": draw(actions), **(draw(fields) if hostile == "form" else {})}
    method, body = draw(st.sampled_from([("GET", b""), ("POST", encode(form))]))
    if hostile == "body":
        method, body = "POST", draw(st.binary(max_size=50) | st.just(encode(form) + b"x" * LARGEST))
    elif hostile == "method":
        method = draw(st.sampled_from(METHODS))
    query = quote(encode(draw(fields)), safe="%&=") if hostile == "query" else ""
    parts = values.map(quote) if hostile == "path" else st.just(str(run))
    path = re.sub(r"{\w*}", lambda _: draw(parts), draw(st.sampled_from(paths)))
    return f"{path[:9000]}?{query[:9000]}", method, body


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    """The event loop of all requests, as a server has one."""
    with asyncio.Runner() as runner:
        yield runner


def check_answers(loop: asyncio.Runner, target: Target, run: int) -> None:
    """Check that none of the requests that hypothesis draws fails."""

    @settings(deadline=None, suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow])
    @given(requests(target.paths, run))
    def check(case: tuple[str, str, bytes]) -> None:
        answer = loop.run(target.ask(*case))
        assert answer.status < 500, answer.body[:500]

    check()


def check_each_value(loop: asyncio.Runner, target: Target, run: int) -> None:
    """Check that no route fails by one of the hostile values, wherever it stands."""
    for path, value in product(target.paths, HOSTILE):
        usual = re.sub(r"{\w*}", str(run), path)
        query = quote(encode(dict.fromkeys([*FORM, *OTHERS], value[:200])), safe="%&=")
        cases = [("GET", f"{usual}?{query}", b""), ("GET", re.sub(r"{\w*}", quote(value[:9000]), path), b"")]
        cases += [
            ("POST", usual, encode({**FORM, name: value})) for name in (b"value.x", b"budget", b"model", b"source")
        ]
        for method, address, form in cases:
            answer = loop.run(target.ask(address, method, form))
            assert answer.status < 500, (method, path, value[:80], answer.body[:500])


def test_no_request_makes_a_page_fail(loop: asyncio.Runner, pages: Target, run: int) -> None:
    check_each_value(loop, pages, run)
    check_answers(loop, pages, run)


def test_no_request_makes_a_page_of_optuna_fail(loop: asyncio.Runner, optunas: Target, run: int) -> None:
    check_each_value(loop, optunas, run)
    check_answers(loop, optunas, run)


def test_no_field_makes_an_act_fail(loop: asyncio.Runner, pages: Target, run: int) -> None:
    rest = (b"epochs", b"n", b"new.lr", b"warm")
    for action, value in product(ACTS, HOSTILE):
        for hostile in (rest, (b"mst_key",)) if action == "clone_config" else (rest,):
            form = encode({**FORM, b"action": action.encode(), **dict.fromkeys(hostile, value)})
            answer = loop.run(pages.ask(f"/runs/{run}/acts", "POST", form))
            assert answer.status < 500, (action, hostile, value[:80], answer.body[:500])
