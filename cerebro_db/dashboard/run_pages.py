"""The pages of runs: their list, and a page for each run with commands for a live one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from cerebro_db.dashboard.base_views import Site, Variables
from cerebro_db.dashboard.forms import Form, read_form, read_integer, read_json
from cerebro_db.dashboard.leaderboard import (
    describe_board,
    describe_comparison,
    read_compared,
    read_order,
)
from cerebro_db.dashboard.longer_training import CALL_FIELDS, is_budget_over, make_longer_address
from cerebro_db.dashboard.model_pages import make_address
from cerebro_db.dashboard.queries import Reader, Row
from cerebro_db.dashboard.run_log_lines import describe_log
from cerebro_db.display.axes import MISSING, Axis, make_axes
from cerebro_db.display.axis_choice import choose_axes, thin_ticks
from cerebro_db.display.csv_files import format_csv
from cerebro_db.display.watch import LIVE_STATUSES
from cerebro_db.errors import InvalidParameter, UndefinedObject
from cerebro_db.session import Session

TICK_DISTANCE = 0.075
"""Smallest distance of two ticks of an axis on a page: the height of a line of their text."""
CURVE_COLUMNS = ("mst_key", "template", "epoch", "dataset", "metric", "value")
"""Columns of the file of learning curves."""

COMMANDS: Mapping[str, Callable[[Session, int, Form], object]] = {
    "stop_config": lambda session, run, form: session.stop_config(
        run, read_integer(form, "mst_key")
    ),
    "continue_config": lambda session, run, form: session.continue_config(
        run, read_integer(form, "mst_key")
    ),
    "prioritize": lambda session, run, form: session.prioritize(run, read_integer(form, "mst_key")),
    "clone_config": lambda session, run, form: session.clone_config(
        run, read_integer(form, "mst_key"), _read_changes(form), warm="warm" in form
    ),
    "set_epochs": lambda session, run, form: session.set_epochs(
        run,
        read_integer(form, "epochs"),
        read_integer(form, "mst_key") if form.get("mst_key") else None,
    ),
    "add_configs": lambda session, run, form: session.add_configs(
        run, configs=read_integer(form, "configs")
    ),
    "pause_run": lambda session, run, form: session.pause_run(run),
    "continue_run": lambda session, run, form: session.continue_run(run),
    "cancel": lambda session, run, form: session.cancel_run(run),
    "resume": lambda session, run, form: session.resume(run, background=True),
}
"""The calls of a run page's buttons, by the names of the SQL functions."""


class KeyConvertor(IntegerConvertor):
    """The id of a run or a configuration in an address, within the range of PostgreSQL."""

    regex = "[0-9]{1,18}"


register_url_convertor("key", KeyConvertor())


def _read_changes(form: Form) -> dict[str, Any]:
    """Return the parameters of a clone that differ from those of the configuration."""
    changes = {}
    for field, old_text in form.items():
        if not field.startswith("was."):
            continue
        parameter = field.removeprefix("was.")
        new_text = form.get(f"new.{parameter}", old_text)
        if new_text != old_text:
            changes[parameter] = read_parameter(new_text)
    return changes


def read_parameter(text: str) -> Any:
    """Return the value of a typed parameter: JSON if possible, else the text.

    >>> read_parameter("0.01"), read_parameter("selu"), read_parameter('[1, "a"]')
    (0.01, 'selu', [1, 'a'])
    """
    try:
        return read_json(text)
    except ValueError:
        return text


class RunPages:
    """The pages of one site's runs."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._reader = site.reader
        self._refresh_reader = site.refresh_reader
        self._ended_runs: dict[tuple[int, str], Row] = {}  # by run_id and status

    def list_routes(self) -> list[Route]:
        """Return the routes of these pages."""
        return [
            Route("/", self.show_runs),
            Route("/runs", self.show_run_list),
            Route("/events", self.stream_events),
            Route("/runs/{run:key}", self.show_run),
            Route("/runs/{run:key}/events", self.stream_events),
            Route("/runs/{run:key}/progress", self.show_progress),
            Route("/runs/{run:key}/board", self.show_board),
            Route("/runs/{run:key}/comparison", self.show_comparison),
            Route("/runs/{run:key}/curves.csv", self.send_curves),
            Route("/runs/{run:key}/log", self.show_log),
            Route("/runs/{run:key}/axes", self.send_axes),
            Route("/runs/{run:key}/configs/{key:key}", self.show_config),
            Route("/runs/{run:key}/configs/{key:key}/state", self.show_config_state),
            Route("/runs/{run:key}/acts", self.execute_command, methods=["POST"]),
        ]

    async def show_runs(self, request: Request) -> Response:
        """Show all runs, or the reason why the role cannot use the extension."""
        role = await run_in_threadpool(self._reader.read_role)
        if not (role["extension"] and role["usage"]):
            return self._site.render("unready.html", role=role)
        search = request.query_params.get("search", "").strip()
        runs = await run_in_threadpool(self._read_runs, self._reader, search)
        return self._site.render("runs.html", role=role, runs=runs, search=search)

    async def show_run_list(self, request: Request) -> Response:
        """Show the list on the page of all runs; `?search=` selects runs."""
        search = request.query_params.get("search", "").strip()
        runs = await run_in_threadpool(self._read_runs, self._refresh_reader, search)
        return self._site.render("run_list.html", runs=runs, search=search)

    def _read_runs(self, reader: Reader, search: str) -> Sequence[Row]:
        """Return the newest runs, or the newest that a search matches."""
        if not search:
            return self._read_newest_runs(reader)
        rows = {row["run_id"]: row for row in reader.read_runs(reader.find_runs(search))}
        return [rows[run_id] for run_id in sorted(rows, reverse=True)]

    def _read_newest_runs(self, reader: Reader) -> Sequence[Row]:
        """Return the newest runs; those that have ended are read once."""
        keys = reader.read_run_statuses()
        new_rows = reader.read_runs([key[0] for key in keys if key not in self._ended_runs])
        rows = self._ended_runs | {(row["run_id"], row["status"]): row for row in new_rows}
        visible_keys = [key for key in keys if key in rows]
        self._ended_runs = {key: rows[key] for key in visible_keys if key[1] not in LIVE_STATUSES}
        return [rows[key] for key in visible_keys]

    async def stream_events(self, request: Request) -> Response:
        """Send the news of a run, or of the list of runs, while the page is open."""
        run = request.path_params.get("run")
        if run is not None:
            await run_in_threadpool(self._reader.read_run, run)
        events = self._site.hub.stream_events(run)
        return StreamingResponse(events, media_type="text/event-stream")

    async def show_run(self, request: Request) -> Response:
        """Show one run; its curves and lanes follow as events."""
        run = request.path_params["run"]

        def read_variables() -> Variables:
            return {
                "role": self._reader.read_role(),
                **describe_progress(self._reader, run),
                **describe_board(self._reader, run, read_order(request.query_params)),
                **describe_log(self._reader, run),
            }

        return self._site.render("run.html", **await run_in_threadpool(read_variables))

    async def show_progress(self, request: Request) -> Response:
        """Show the progress of a run."""
        return await self._render_part("progress.html", describe_progress, **request.path_params)

    async def show_board(self, request: Request) -> Response:
        """Show the leaderboard in the order and with the filter of the address."""
        order = read_order(request.query_params)
        return await self._render_part(
            "board.html", describe_board, **request.path_params, order=order
        )

    async def show_comparison(self, request: Request) -> Response:
        """Show the parameters and metrics of some configurations side by side."""
        keys = read_compared(request.query_params)
        return await self._render_part(
            "comparison.html", describe_comparison, **request.path_params, keys=keys
        )

    async def send_curves(self, request: Request) -> Response:
        """Send the learning curves of a run as a CSV file."""
        run = request.path_params["run"]

        def read_rows() -> list[Row]:
            self._reader.read_run(run)
            standings = self._reader.read_standings(run)
            templates = {standing.mst_key: standing.template for standing in standings}
            metrics = self._reader.read_run_metrics(run)
            rows: list[Row] = []
            for point in self._reader.learning_curve(run):
                metric = metrics.rename(point.name)
                template = templates.get(point.mst_key)
                rows.append({**vars(point), "metric": metric, "template": template})
            return rows

        text = format_csv(CURVE_COLUMNS, await run_in_threadpool(read_rows))
        disposition = f'attachment; filename="run-{run}-curves.csv"'
        return Response(text, media_type="text/csv", headers={"Content-Disposition": disposition})

    async def show_log(self, request: Request) -> Response:
        """Show the newest commands and decisions."""
        return await self._render_part("log.html", describe_log, **request.path_params)

    async def send_axes(self, request: Request) -> Response:
        """Send the parallel coordinates as lists of names, ticks, and positions by mst_key."""
        run = request.path_params["run"]
        reader = self._refresh_reader

        def read_axes() -> list[list[object]]:
            reader.read_run(run)
            axes = make_axes(reader.read_standings(run), reader.parameters(run))
            return [
                [axis.name, thin_ticks(axis.ticks, TICK_DISTANCE), list(axis.positions.items())]
                for axis in choose_axes(drop_partial_axes(axes))
            ]

        return JSONResponse(await run_in_threadpool(read_axes))

    async def show_config(self, request: Request) -> Response:
        """Show one configuration with its commands."""
        variables = await run_in_threadpool(describe_config, self._reader, **request.path_params)
        return self._site.render("config.html", **variables)

    async def show_config_state(self, request: Request) -> Response:
        """Show the state of a configuration."""
        return await self._render_part("config_state.html", describe_config, **request.path_params)

    async def execute_command(self, request: Request) -> Response:
        """Send a command to a run, and show the result."""
        form = await read_form(request)
        run = request.path_params["run"]
        action = form.get("action", "")
        if action not in COMMANDS:
            raise InvalidParameter(
                f"there is no act {action!r}", hint=f"There are {', '.join(COMMANDS)}."
            )
        is_slow = action == "resume"
        shared_session = self._site.slow_session if is_slow else self._site.quick_session
        result, notices = await run_in_threadpool(
            shared_session.call, lambda session: COMMANDS[action](session, run, form)
        )
        return self._site.render(
            "acted.html",
            action=action,
            result=result,
            notices=notices,
            mst_key=form.get("mst_key"),
        )

    async def _render_part(
        self, template: str, describe: Callable[..., Variables], **arguments: Any
    ) -> Response:
        """Return a part of a page that the page reads again by itself."""
        variables = await run_in_threadpool(describe, self._refresh_reader, **arguments)
        return self._site.render(template, **variables)


def describe_config(reader: Reader, run: int, key: int) -> Variables:
    """Return the template variables for one configuration."""
    config = reader.read_config(run, key)
    if config is None:
        raise UndefinedObject(f"run {run} has no configuration {key}")
    is_live = reader.read_run(run)["status"] in LIVE_STATUSES
    reason = reader.read_run_metrics(run).rename_reason(config["reason"] or "")
    return {"run": run, "config": {**config, "reason": reason}, "is_live": is_live}


def describe_progress(reader: Reader, run: int) -> Variables:
    """Return the template variables for the progress of a run."""
    progress = reader.read_progress(run)
    details = reader.read_run(run)
    is_over = progress["status"] == "failed" and is_budget_over(details["error"])
    call = reader.read_train_call(run, CALL_FIELDS) if is_over else None
    longer_address = None if call is None else make_longer_address(call)
    return {
        "run": progress,
        "details": details,
        "is_budget_over": is_over,
        "longer_address": longer_address,
        "make_address": make_address,
        "is_live": progress["status"] in LIVE_STATUSES,
    }


def drop_partial_axes(axes: Sequence[Axis]) -> list[Axis]:
    """Return the axes of parameters that all configurations have, and last that of the metric.

    Other parameters belong to some templates only; a line would skip their axes.
    """
    *parameters, metric = axes
    return [*(axis for axis in parameters if MISSING not in axis.positions.values()), metric]
