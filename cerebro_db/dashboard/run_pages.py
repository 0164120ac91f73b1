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
from cerebro_db.dashboard.model_pages import make_address
from cerebro_db.dashboard.queries import ACT, DECISION, Reader, Row
from cerebro_db.display.axes import make_axes
from cerebro_db.display.boards import describe_configs
from cerebro_db.display.watch import LIVE_STATUSES
from cerebro_db.errors import InvalidParameter, UndefinedObject
from cerebro_db.session import Session

MAX_LOG_LINES = 100
MAX_BOARD_LINES = 100
"""Number of configurations that are shown, unless the user asks for all."""

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
        runs = await run_in_threadpool(self._read_newest_runs, self._reader)
        return self._site.render("runs.html", role=role, runs=runs)

    async def show_run_list(self, request: Request) -> Response:
        """Show the list on the page of all runs."""
        runs = await run_in_threadpool(self._read_newest_runs, self._refresh_reader)
        return self._site.render("run_list.html", runs=runs)

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
                **describe_board(self._reader, run, MAX_BOARD_LINES),
                **describe_log(self._reader, run),
            }

        return self._site.render("run.html", **await run_in_threadpool(read_variables))

    async def show_progress(self, request: Request) -> Response:
        """Show the progress of a run."""
        return await self._render_part("progress.html", describe_progress, **request.path_params)

    async def show_board(self, request: Request) -> Response:
        """Show the leaderboard; with `?all` in its full length."""
        lines = None if "all" in request.query_params else MAX_BOARD_LINES
        return await self._render_part(
            "board.html", describe_board, **request.path_params, lines=lines
        )

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
            return [[axis.name, axis.ticks, list(axis.positions.items())] for axis in axes]

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
    return {"run": run, "config": config, "is_live": is_live}


def describe_progress(reader: Reader, run: int) -> Variables:
    """Return the template variables for the progress of a run."""
    progress = reader.read_progress(run)
    return {
        "run": progress,
        "details": reader.read_run(run),
        "make_address": make_address,
        "is_live": progress["status"] in LIVE_STATUSES,
    }


def describe_board(reader: Reader, run: int, lines: int | None) -> Variables:
    """Return the template variables for the leaderboard of a run.

    Args:
        lines: number of the best configurations to show; None for all.
    """
    reader.read_run(run)  # raises UndefinedObject if the run does not exist
    standings = reader.read_standings(run)
    texts = describe_configs(standings)
    rows = [
        {**vars(standing), "differences": texts[standing.mst_key]} for standing in standings[:lines]
    ]
    return {"board": rows, "count": len(standings), "run_id": run, "shows_all": lines is None}


def describe_log(reader: Reader, run: int) -> Variables:
    """Return the template variables for the commands and decisions of a run."""
    reader.read_run(run)  # raises UndefinedObject if the run does not exist
    return {
        "acts": reader.read_newest(ACT.c.act_id, run, MAX_LOG_LINES),
        "decisions": reader.read_newest(DECISION.c.decision_no, run, MAX_LOG_LINES),
    }
