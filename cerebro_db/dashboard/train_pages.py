"""The page that trains a model without SQL."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cerebro_db.dashboard.base_views import Site, Variables
from cerebro_db.dashboard.forms import Form, read_form, read_integer, read_text

BUDGETS = ((1, "a minute"), (5, "5 minutes"), (15, "15 minutes"), (60, "an hour"), (480, "8 hours"))
SEARCHES = (
    ("auto", "usual values, earlier versions, then drawn at random"),
    ("asha", "many are begun, the better ones go on"),
    ("tpe", "learns from what was tried where to look next"),
    ("hyperband", "several mixtures of many short and few long ones"),
    ("pbt", "the best are cloned with other values while they train"),
    ("random", "drawn at random"),
)
INTEGER_OPTIONS = ("configs", "epochs", "seed")
TEXT_OPTIONS = ("model", "columns")


class TrainPages:
    """The form that trains a model, and the requests that it sends."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def list_routes(self) -> list[Route]:
        """Return the routes of these pages."""
        return [
            Route("/train", self.show_form, methods=["GET"]),
            Route("/train", self.train, methods=["POST"]),
            Route("/train/columns", self.show_columns),
            Route("/train/plan", self.show_plan, methods=["POST"]),
        ]

    async def show_form(self, request: Request) -> Response:
        """Show the form; `?source=` selects a table."""
        source = request.query_params.get("source", "")
        reader = self._site.reader

        def read_variables() -> Variables:
            return {
                "role": reader.read_role(),
                "tables": reader.read_tables(),
                "columns": reader.read_columns(source),
            }

        variables = await run_in_threadpool(read_variables)
        return self._site.render(
            "train.html", **variables, source=source, budgets=BUDGETS, searches=SEARCHES
        )

    async def show_columns(self, request: Request) -> Response:
        """Show the columns of the selected table."""
        source = request.query_params.get("source", "")
        columns = await run_in_threadpool(self._site.reader.read_columns, source)
        return self._site.render("columns.html", columns=columns)

    async def show_plan(self, request: Request) -> Response:
        """Show the plan of a training."""
        form = await read_form(request)
        plan, notices = await run_in_threadpool(
            self._site.slow_session.call,
            lambda session: session.plan(
                read_text(form, "source"), read_text(form, "target"), **_read_options(form)
            ),
        )
        return self._site.render("plan.html", plan=plan, notices=notices)

    async def train(self, request: Request) -> Response:
        """Start a run in the background, and redirect to its page."""
        form = await read_form(request)
        board, _ = await run_in_threadpool(
            self._site.slow_session.call,
            lambda session: session.train(
                read_text(form, "source"),
                read_text(form, "target"),
                progress=False,
                background=True,
                **_read_options(form),
            ),
        )
        return Response(headers={"HX-Redirect": f"/runs/{board[0].run_id}"})


def _read_options(form: Form) -> dict[str, Any]:
    """Return the arguments of cerebro.train; an empty field means the default.

    >>> _read_options({"budget": "5", "search": "asha", "configs": "", "model": "m"})
    {'budget': datetime.timedelta(seconds=300), 'search': 'asha', 'model': 'm'}
    """
    return {
        "budget": timedelta(minutes=read_integer(form, "budget")),
        "search": read_text(form, "search"),
        **{name: read_text(form, name) for name in TEXT_OPTIONS if form.get(name)},
        **{name: read_integer(form, name) for name in INTEGER_OPTIONS if form.get(name)},
    }
