"""The page that trains a model without SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cerebro_db.dashboard.base_views import Site, Variables
from cerebro_db.dashboard.forms import read_form, read_text
from cerebro_db.dashboard.sources import read_columns, read_tables
from cerebro_db.dashboard.train_arguments import (
    BUDGETS,
    KINDS,
    LEFT_OUT,
    SEARCHES,
    TASKS,
    TEMPLATES,
    parse_argument_help,
    read_options,
    write_call,
)

FUNCTION = "cerebro.train"


class PlanSection(NamedTuple):
    """A section of a plan that the page folds."""

    name: str
    title: str


PLAN_SECTIONS = (
    PlanSection("column", "Columns"),
    PlanSection("template", "Templates"),
    PlanSection("configuration", "Configurations"),
    PlanSection("execution", "Execution"),
)
"""The long sections; all others are the summary of a plan."""


class TrainPages:
    """The form that trains a model, and the requests that it sends."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._help: Mapping[str, str] | None = None

    def list_routes(self) -> list[Route]:
        """Return the routes of these pages."""
        return [
            Route("/train", self.show_form, methods=["GET"]),
            Route("/train", self.train, methods=["POST"]),
            Route("/train/columns", self.show_columns),
            Route("/train/plan", self.show_plan, methods=["POST"]),
        ]

    async def show_form(self, request: Request) -> Response:
        """Show the form; `?source=` selects a table, and other parameters fill other fields."""
        filled = dict(request.query_params)
        source = filled.get("source", "")
        reader = self._site.reader
        role = await run_in_threadpool(reader.read_role)
        if not (role["extension"] and role["usage"]):
            return self._site.render("unready.html", role=role)

        def read_variables() -> Variables:
            return {
                "role": role,
                "tables": read_tables(reader),
                **self._describe_columns(source, filled),
            }

        variables = await run_in_threadpool(read_variables)
        return self._site.render(
            "train.html",
            **variables,
            source=source,
            budgets=BUDGETS,
            searches=SEARCHES,
            tasks=TASKS,
            templates=TEMPLATES,
        )

    async def show_columns(self, request: Request) -> Response:
        """Show the columns of the selected table."""
        source = request.query_params.get("source", "")
        variables = await run_in_threadpool(self._describe_columns, source, {})
        return self._site.render("columns.html", **variables)

    def _describe_columns(self, source: str, filled: Mapping[str, str]) -> Variables:
        """Return the template variables for the fields that name columns."""
        return {
            "filled": filled,
            "columns": read_columns(self._site.reader, source),
            "kinds": KINDS,
            "left_out": LEFT_OUT,
            "explain": self._make_explain(),
        }

    def _make_explain(self) -> Callable[[str], Markup]:
        """Return a function that returns the help of an argument as HTML."""
        if self._help is None:
            self._help = parse_argument_help(self._site.reader.read_help(FUNCTION))
        texts = self._help

        def explain(name: str) -> Markup:
            return format_help(texts.get(name, ""))

        return explain

    async def show_plan(self, request: Request) -> Response:
        """Show the plan of a training."""
        form = await read_form(request)
        source = read_text(form, "source")
        target = read_text(form, "target")
        options = read_options(form)
        plan, notices = await run_in_threadpool(
            self._site.slow_session.call, lambda session: session.plan(source, target, **options)
        )
        call = write_call(source, target, options)
        return self._site.render("plan.html", **divide_plan(plan), notices=notices, call=call)

    async def train(self, request: Request) -> Response:
        """Start a run in the background, and redirect to its page."""
        form = await read_form(request)
        source = read_text(form, "source")
        target = read_text(form, "target")
        options = read_options(form)
        board, _ = await run_in_threadpool(
            self._site.slow_session.call,
            lambda session: session.train(
                source, target, progress=False, background=True, **options
            ),
        )
        return Response(headers={"HX-Redirect": f"/runs/{board[0].run_id}"})


def format_help(text: str) -> Markup:
    """Return the help of an argument as HTML, with the values between backticks as code.

    >>> print(format_help("`'cnn'` or <b>"))
    <small><code>cnn</code> or &lt;b&gt;</small>
    """
    html = Markup("")
    parts = text.split("`")
    for index, part in enumerate(parts):
        if index % 2:
            html += Markup("<code>{}</code>").format(part.strip("'"))
        else:
            html += part
    return Markup("<small>{}</small>").format(html)


def divide_plan(plan: Sequence[Mapping[str, Any]]) -> Variables:
    """Return the summary of a plan and its long sections."""
    folded = {section.name for section in PLAN_SECTIONS}
    summary = [row for row in plan if row["section"] not in folded]
    details: list[tuple[PlanSection, list[Mapping[str, Any]]]] = []
    for section in PLAN_SECTIONS:
        rows = [row for row in plan if row["section"] == section.name]
        if rows:
            details.append((section, rows))
    return {"summary": summary, "details": details}
