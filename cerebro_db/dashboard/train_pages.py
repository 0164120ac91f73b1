"""The page on which a model is trained without a line of SQL."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cerebro_db.dashboard.base_views import Site
from cerebro_db.dashboard.forms import fields, text, whole_number

BUDGETS = ((1, "a minute"), (5, "5 minutes"), (15, "15 minutes"), (60, "an hour"), (480, "8 hours"))
SEARCHES = (
    ("auto", "usual values, earlier versions, then drawn at random"),
    ("asha", "many are begun, the better ones go on"),
    ("tpe", "learns from what was tried where to look next"),
    ("hyperband", "several mixtures of many short and few long ones"),
    ("pbt", "the best are cloned with other values while they train"),
    ("random", "drawn at random"),
)
NUMBERS = ("configs", "epochs", "seed")
TEXTS = ("model", "columns")


class TrainPages:
    """The form, and what comes of it."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def routes(self) -> list[Route]:
        """Where they are."""
        return [
            Route("/train", self.form, methods=["GET"]),
            Route("/train", self.train, methods=["POST"]),
            Route("/train/columns", self.columns),
            Route("/train/plan", self.plan, methods=["POST"]),
        ]

    async def form(self, request: Request) -> Response:
        """Which table, which column; with `?source=` a table is chosen already."""
        source = request.query_params.get("source", "")
        reader = self._site.reader

        def facts() -> dict[str, Any]:
            return {
                "role": reader.role(),
                "tables": reader.tables(),
                "columns": reader.columns(source),
            }

        found = await run_in_threadpool(facts)
        return self._site.page(
            "train.html", **found, source=source, budgets=BUDGETS, searches=SEARCHES
        )

    async def columns(self, request: Request) -> Response:
        """The columns of the table that was chosen."""
        source = request.query_params.get("source", "")
        columns = await run_in_threadpool(self._site.reader.columns, source)
        return self._site.page("columns.html", columns=columns)

    async def plan(self, request: Request) -> Response:
        """What would be done."""
        form = await fields(request)
        plan, said = await run_in_threadpool(
            self._site.work.ask,
            lambda session: session.plan(
                text(form, "source"), text(form, "target"), **_options(form)
            ),
        )
        return self._site.page("plan.html", plan=plan, said=said)

    async def train(self, request: Request) -> Response:
        """Begins a run in the background, and goes on to its page."""
        form = await fields(request)
        board, _ = await run_in_threadpool(
            self._site.work.ask,
            lambda session: session.train(
                text(form, "source"),
                text(form, "target"),
                progress=False,
                background=True,
                **_options(form),
            ),
        )
        return Response(headers={"HX-Redirect": f"/runs/{board[0].run_id}"})


def _options(form: Mapping[str, str]) -> dict[str, Any]:
    """Arguments of cerebro.train; what was left empty has its default.

    >>> _options({"budget": "5", "search": "asha", "configs": "", "model": "m"})
    {'budget': datetime.timedelta(seconds=300), 'search': 'asha', 'model': 'm'}
    """
    return {
        "budget": timedelta(minutes=whole_number(form, "budget")),
        "search": text(form, "search"),
        **{name: text(form, name) for name in TEXTS if form.get(name)},
        **{name: whole_number(form, name) for name in NUMBERS if form.get(name)},
    }
