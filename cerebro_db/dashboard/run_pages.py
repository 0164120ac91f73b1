"""The pages of runs: their list, and one with what is asked of it while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from cerebro_db.dashboard.base_views import Site
from cerebro_db.dashboard.forms import fields, read_json, whole_number
from cerebro_db.dashboard.model_pages import address
from cerebro_db.dashboard.queries import Reader, Row
from cerebro_db.display.axes import make_axes
from cerebro_db.display.boards import describe_differences
from cerebro_db.errors import InvalidParameter, UndefinedObject
from cerebro_db.session import Session

LOG_LINES = 100
BOARD_LINES = 100
"""So many configurations are listed, unless all are asked for."""

LIVE = ("running", "queued", "paused")
ACTS: Mapping[str, Callable[[Session, int, Mapping[str, str]], object]] = {
    "stop_config": lambda session, run, form: session.stop_config(
        run, whole_number(form, "mst_key")
    ),
    "continue_config": lambda session, run, form: session.continue_config(
        run, whole_number(form, "mst_key")
    ),
    "prioritise": lambda session, run, form: session.prioritise(run, whole_number(form, "mst_key")),
    "clone_config": lambda session, run, form: session.clone_config(
        run, whole_number(form, "mst_key"), _change(form), warm="warm" in form
    ),
    "set_epochs": lambda session, run, form: session.set_epochs(
        run,
        whole_number(form, "epochs"),
        whole_number(form, "mst_key") if form.get("mst_key") else None,
    ),
    "add_configs": lambda session, run, form: session.add_configs(run, n=whole_number(form, "n")),
    "pause_run": lambda session, run, form: session.pause_run(run),
    "continue_run": lambda session, run, form: session.continue_run(run),
    "cancel": lambda session, run, form: session.cancel_run(run),
    "resume": lambda session, run, form: session.resume(run, background=True),
}
"""What a button of a run does, by the name of the function of SQL."""


class KeyConvertor(IntegerConvertor):
    """The number of a run or a configuration in an address: one that PostgreSQL has."""

    regex = "[0-9]{1,18}"


register_url_convertor("key", KeyConvertor())


def _change(form: Mapping[str, str]) -> dict[str, Any]:
    """The parameters of a clone that are others than those of the configuration."""
    before = {name[4:]: text for name, text in form.items() if name.startswith("was.")}
    return {
        name: typed(form[f"new.{name}"])
        for name, text in before.items()
        if form.get(f"new.{name}", text) != text
    }


def typed(text: str) -> Any:
    """What somebody has typed as a parameter: JSON where it is that, else a text.

    >>> typed("0.01"), typed("selu"), typed('[1, "a"]')
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
        self._reader, self._again = site.reader, site.again
        self._ended: dict[tuple[int, str], Row] = {}

    def routes(self) -> list[Route]:
        """Where they are."""
        return [
            Route("/", self.runs),
            Route("/runs", self.list),
            Route("/events", self.events),
            Route("/runs/{run:key}", self.run),
            Route("/runs/{run:key}/events", self.events),
            Route("/runs/{run:key}/progress", self.progress),
            Route("/runs/{run:key}/board", self.board),
            Route("/runs/{run:key}/log", self.log),
            Route("/runs/{run:key}/axes", self.axes),
            Route("/runs/{run:key}/configs/{key:key}", self.config),
            Route("/runs/{run:key}/configs/{key:key}/state", self.config_state),
            Route("/runs/{run:key}/acts", self.act, methods=["POST"]),
        ]

    async def runs(self, request: Request) -> Response:
        """The first page: all runs, or what is missing for one."""
        role = await run_in_threadpool(self._reader.role)
        if not (role["extension"] and role["usage"]):
            return self._site.page("unready.html", role=role)
        runs = await run_in_threadpool(self._recent, self._reader)
        return self._site.page("runs.html", role=role, runs=runs)

    async def list(self, request: Request) -> Response:
        """The rows of the list of runs."""
        return await self._part("run_list.html", lambda: {"runs": self._recent(self._again)})

    def _recent(self, reader: Reader) -> Sequence[Row]:
        """The newest runs. What those have come to that have ended is read once."""
        marks = reader.mark_of_runs()
        fresh = reader.runs_of([run for run, status in marks if (run, status) not in self._ended])
        rows = self._ended | {(row["run_id"], row["status"]): row for row in fresh}
        self._ended = {mark: rows[mark] for mark in marks if mark in rows and mark[1] not in LIVE}
        return [rows[mark] for mark in marks if mark in rows]

    async def events(self, request: Request) -> Response:
        """What is new, for as long as the page is open."""
        run = request.path_params.get("run")
        if run is not None:
            await run_in_threadpool(self._reader.run, run)
        events = self._site.hub.events(run)
        return StreamingResponse(events, media_type="text/event-stream")

    async def run(self, request: Request) -> Response:
        """One run, whole; its curves and lanes follow as events."""
        run = request.path_params["run"]

        def facts() -> dict[str, Any]:
            return {
                "role": self._reader.role(),
                **progress_of(self._reader, run),
                **board_of(self._reader, run, BOARD_LINES),
                **log_of(self._reader, run),
            }

        return self._site.page("run.html", **await run_in_threadpool(facts))

    async def progress(self, request: Request) -> Response:
        """How far it is."""
        run = request.path_params["run"]
        return await self._part("progress.html", lambda: progress_of(self._again, run))

    async def board(self, request: Request) -> Response:
        """The leaderboard, at its full length with `?all`."""
        run = request.path_params["run"]
        lines = None if "all" in request.query_params else BOARD_LINES
        return await self._part("board.html", lambda: board_of(self._again, run, lines))

    async def log(self, request: Request) -> Response:
        """What people and the search have decided last."""
        run = request.path_params["run"]
        return await self._part("log.html", lambda: log_of(self._again, run))

    async def axes(self, request: Request) -> Response:
        """Parallel coordinates: names, what stands at which places, and where configurations
        cross.
        """
        run = request.path_params["run"]

        def facts() -> list[list[object]]:
            self._again.run(run)
            found = make_axes(self._again.standings(run), self._again.parameters(run))
            return [[axis.name, axis.ticks, list(axis.positions.items())] for axis in found]

        return JSONResponse(await run_in_threadpool(facts))

    async def config(self, request: Request) -> Response:
        """One configuration, and what can be asked of it."""
        return self._site.page(
            "config.html", **await run_in_threadpool(config_of, self._reader, **request.path_params)
        )

    async def config_state(self, request: Request) -> Response:
        """How a configuration stands."""
        return await self._part(
            "config_state.html", lambda: config_of(self._again, **request.path_params)
        )

    async def act(self, request: Request) -> Response:
        """Asks something of a run, and says what became of it."""
        form, run = await fields(request), request.path_params["run"]
        action = form.get("action", "")
        if action not in ACTS:
            raise InvalidParameter(
                f"there is no act {action!r}", hint=f"There are {', '.join(ACTS)}."
            )
        desk = self._site.work if action == "resume" else self._site.acts
        answer, said = await run_in_threadpool(
            desk.ask, lambda session: ACTS[action](session, run, form)
        )
        return self._site.page(
            "acted.html", action=action, answer=answer, said=said, mst_key=form.get("mst_key")
        )

    async def _part(self, template: str, facts: Callable[[], dict[str, Any]]) -> Response:
        return self._site.page(template, **await run_in_threadpool(facts))


def config_of(reader: Reader, run: int, key: int) -> dict[str, Any]:
    """What a page says of one configuration."""
    config = reader.config(run, key)
    if config is None:
        raise UndefinedObject(f"run {run} has no configuration {key}")
    return {"run": run, "config": config, "live": reader.run(run)["status"] in LIVE}


def progress_of(reader: Reader, run: int) -> dict[str, Any]:
    """What it says of how far a run is."""
    advance = reader.advance(run)
    return {
        "run": advance,
        "about": reader.run(run),
        "address": address,
        "live": advance["status"] in LIVE,
    }


def board_of(reader: Reader, run: int, lines: int | None) -> dict[str, Any]:
    """The best so many configurations of a run, or all of them, with what tells them apart."""
    reader.run(run)
    standings = reader.standings(run)
    told = describe_differences([standing.params for standing in standings])
    rows = [
        {**vars(standing), "told": text} for standing, text in zip(standings, told, strict=True)
    ]
    return {"board": rows[:lines], "count": len(rows), "run_id": run, "whole": lines is None}


def log_of(reader: Reader, run: int) -> dict[str, Any]:
    """What people and the search have decided of a run."""
    reader.run(run)
    return {"acts": reader.acts(run, LOG_LINES), "decisions": reader.decisions(run, LOG_LINES)}
