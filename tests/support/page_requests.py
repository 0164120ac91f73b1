"""Hostile requests to every route of a dashboard: one part of a request is wrong, the others are
right.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

from asgi import PORT, Answer, http_scope, request
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

import cerebro_db
from cerebro_db.dashboard.auth import Gate
from cerebro_db.dashboard.entrance import Entrance
from cerebro_db.dashboard.forms import MAX_BYTES
from cerebro_db.dashboard.run_pages import COMMANDS
from cerebro_db.dashboard.web_server import Pages

TEMPLATES = Path(cerebro_db.__file__).parent / "dashboard" / "templates"
# Values as they are sent in a query or a form.
HOSTILE = [
    b"", b"0", b"-1", b"1", b"1e999", b"NaN", b"2147483648", b"9223372036854775808", b"9" * 5000,
    "٣".encode(), b"%00",
    b"a%00b", b"\0", b"%FF", b"\xff\xfe", b"%ED%A0%80", b"%", b"%zz", b"%5Bx", b"null", b"true",
    b'"\\ud800"',
    b'"\\u0000"', b"[" * 100_000, b"[" * 900 + b"]" * 900, b'{"a":' * 100_000, b"x" * 60_000,
    b"' OR 1=1 --", b"%27",
    b'"', b"..%2f..%2fetc%2fpasswd", b"%25s", b"{}", b"{{7*7}}", b"a;b", b"a%0D%0Ab: c",
    b"%C2%85%E2%80%AE",
    b"public.no_table", b"a.b.c.d.e", b"pg_class", b"on",
]  # fmt: skip
# Some of them, each for a kind: no number, one that is too large, no text, no UTF-8, what no parser
# can hold.
HARDEST = [
    b"",
    b"-1",
    b"9" * 5000,
    b"a%00b",
    b"\xff\xfe",
    b"%ED%A0%80",
    b"[" * 100_000,
    b"..%2f..%2fetc%2fpasswd",
]
# What a person might fill in, but for what would train.
FORM = {
    b"source": b"public.no_table", b"target": b"y", b"budget": b"1", b"search": b"auto",
    b"model": b"m", b"owner": b"o",
    b"version": b"1", b"mst_key": b"1", b"epochs": b"1", b"configs": b"1", b"was.lr": b"1",
    b"new.lr": b"2", b"value.x": b"1",
    b"kind.x": b"json",
}  # fmt: skip
# All fields of the pages' forms; `{{ name }}` stands for one of a row or a configuration.
IN_PAGES = {
    re.sub(r"{{.*?}}", "lr" if name.startswith(("new", "was")) else "x", name).encode()
    for path in TEMPLATES.glob("*.html")
    for name in re.findall(
        r'<(?:input|select|button|textarea)\b[^>]*?\bname="([^"]*)"', path.read_text()
    )
}
FIELDS = sorted(
    IN_PAGES
    | {*FORM, b"value.", b"all", b"code", b"token", b"after", b"trial_ids", b"evaluator", b""}
)
# Routes that read nothing of a query: so one value tells as much as another. Drawn requests try
# them all the same.
UNREAD = {
    "/", "/runs", "/events", "/models", "/runs/{run}", "/runs/{run}/events", "/runs/{run}/progress",
    "/runs/{run}/log",
    "/runs/{run}/axes", "/runs/{run}/configs/{key}", "/runs/{run}/configs/{key}/state",
    "/runs/{run}/acts",
    "/train/plan", "/model/deploy", "/model/predict", "/model/evaluate", "/model/drift",
    "/static/{path}",
}  # fmt: skip
# Which free texts a route takes by its form; of a route that is not named, all.
READ_IN_FORMS = {
    "/train": (b"budget", b"source"), "/train/plan": (b"budget", b"source"),
    "/model/predict": (b"value.x",),
    "/model/evaluate": (b"source",), "/model/drift": (b"source",), "/model/deploy": (),
    "/runs/{run}/acts": (),
}  # fmt: skip
WITHOUT_VALUES = {
    "stop_config",
    "continue_config",
    "prioritize",
    "pause_run",
    "continue_run",
    "cancel",
    "resume",
}
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]

values = st.sampled_from(HOSTILE) | st.binary(max_size=20)
fields = st.dictionaries(st.sampled_from(FIELDS) | values, values, max_size=4)
actions = st.sampled_from([*COMMANDS, "drop_run", "%00"]).map(str.encode)


@dataclass(frozen=True)
class Target:
    """An application behind its gate, entered already."""

    app: ASGIApp
    cookie: str
    paths: Mapping[
        str, set[str]
    ]  # of its routes, with a name in braces for what varies; and their methods
    run: int  # a run that it has
    loop: asyncio.Runner

    def ask(self, target: str, method: str, body: bytes) -> Answer:
        headers = {"cookie": self.cookie, "hx-request": "true"}
        return self.loop.run(request(self.app, http_scope(target, method, headers), body))


def behind_gate(
    pages: Pages, paths: Mapping[str, set[str]], run: int, loop: asyncio.Runner
) -> Target:
    """What a command would serve."""
    entrance = Entrance()
    gate = Gate(pages.app, entrance, PORT, pages.policy, pages.read_only, lambda scope: None)
    session = entrance.start_session(entrance.issue_code(), None)
    return Target(gate, f"cerebro_{PORT}={session}", paths, run, loop)


def paths_of(routes: list[Any]) -> dict[str, set[str]]:
    """The paths of Starlette's routes, and the methods of each."""
    found = dict[str, set[str]]()
    for route in routes:
        assert isinstance(route, (Route, Mount)), f"this test does not know {route}"
        suffix, methods = ("", route.methods) if isinstance(route, Route) else ("/{path}", {"GET"})
        found.setdefault(re.sub(r":\w+}", "}", route.path) + suffix, set()).update(methods or ())
    return found


def encode(form: Mapping[bytes, bytes]) -> bytes:
    return b"&".join(name + b"=" + value for name, value in form.items())


@st.composite
def requests(draw: Callable[[Any], Any], target: Target) -> tuple[str, str, bytes]:
    """A target, a method and a body, of which one part is hostile: what is refused early hides what
    comes later.
    """
    hostile = draw(st.sampled_from(["path", "query", "form", "body", "method"]))
    form = {**FORM, b"action": draw(actions), **(draw(fields) if hostile == "form" else {})}
    method, body = draw(st.sampled_from([("GET", b""), ("POST", encode(form))]))
    if hostile == "body":
        method, body = (
            "POST",
            draw(st.binary(max_size=50) | st.just(encode(form) + b"x" * MAX_BYTES)),
        )
    elif hostile == "method":
        method = draw(st.sampled_from(METHODS))
    query = quote(encode(draw(fields)), safe="%&=") if hostile == "query" else ""
    parts = values.map(quote) if hostile == "path" else st.just(str(target.run))
    path = re.sub(r"{\w*}", lambda _: draw(parts), draw(st.sampled_from([*target.paths])))
    return f"{path[:9000]}?{query[:9000]}", method, body


def check_any(target: Target) -> None:
    """Check that none of the requests that hypothesis draws makes a page fail."""

    @settings(
        deadline=None, suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow]
    )
    @given(requests(target))
    def check(case: tuple[str, str, bytes]) -> None:
        answer = target.ask(*case)
        assert answer.status < 500, answer.body[:500]

    check()


def check_each_value(target: Target, hostile: Sequence[bytes] = HOSTILE) -> None:
    """Check that no route fails by one of the hostile values in its path, or where it reads a query
    or a form.
    """
    for (path, methods), value in product(target.paths.items(), hostile):
        usual, filled = (
            re.sub(r"{\w*}", text, path) for text in (str(target.run), quote(value[:9000]))
        )
        method, form = ("GET", b"") if "GET" in methods else ("POST", encode(FORM))
        cases = [(method, filled, form)] if filled != path else []
        if path not in UNREAD or value == HOSTILE[0]:
            query = quote(encode(dict.fromkeys(FIELDS, value[:200])), safe="%&=")
            cases.append((method, f"{usual}?{query}", form))
        if "POST" in methods:
            names = READ_IN_FORMS.get(path, (b"value.x", b"budget", b"source"))
            cases += [("POST", usual, encode({**FORM, name: value})) for name in names]
        for method, address, form in cases:
            answer = target.ask(address, method, form)
            assert answer.status < 500, (method, path, value[:80], answer.body[:500])


def check_acts(target: Target) -> None:
    """Check that no act fails by a hostile value of what it takes."""
    for action, value in product(COMMANDS, HOSTILE):
        if action in WITHOUT_VALUES and value != HOSTILE[0]:
            continue
        form = {
            **FORM,
            **dict.fromkeys((b"epochs", b"configs", b"new.lr", b"warm"), value),
            b"action": action.encode(),
        }
        answer = target.ask(f"/runs/{target.run}/acts", "POST", encode(form))
        assert answer.status < 500, (action, value[:80], answer.body[:500])
