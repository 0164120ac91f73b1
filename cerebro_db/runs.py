"""What can be asked about runs, from any session, while they go on and afterwards."""

from __future__ import annotations

from typing import TypeVar

import sqlalchemy as sa

from cerebro_db import errors, tables
from cerebro_db.driver import translated
from cerebro_db.tables import Point, Progress, Run, Span, Standing, Visit

R = TypeVar("R")


class RunReader:
    """The runs that the engine's user may see. A run id that names none of them gives empty lists."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine

    def runs(self) -> list[Run]:
        """All runs, newest first."""
        return self._read(Run, sa.select(tables.RUN).order_by(tables.RUN.c.run_id.desc()))

    def newest_run_of(self, pid: int) -> int | None:
        """The id of the newest run that server process `pid` has begun in its present session."""
        run, process = tables.RUN.c, tables.ACTIVITY.c
        query = (
            sa.select(sa.func.max(run.run_id))
            .join_from(tables.RUN, tables.ACTIVITY, process.pid == run.pid)
            .where(run.pid == pid, process.backend_start <= run.started_at)
        )
        with translated(), self.engine.connect() as connection:
            found = connection.execute(query).scalar_one()
        return None if found is None else int(found)

    def progress(self, run_id: int) -> Progress:
        """How far one run is; UndefinedObject where there is none such."""
        found = self._read(Progress, _of(tables.PROGRESS, run_id))
        if not found:
            raise errors.UndefinedObject(
                f"run {run_id} does not exist, or belongs to a role that you do not have",
                hint="SELECT run_id, name, status FROM cerebro.run lists the runs that you may see.",
            )
        return found[0]

    def leaderboard(self, run_id: int) -> list[Standing]:
        """The configs of a run, best first."""
        board = tables.LEADERBOARD
        return self._read(Standing, _of(board, run_id).order_by(board.c.rank, board.c.mst_key))

    def learning_curve(self, run_id: int) -> list[Point]:
        """Every metric of every config after every epoch at which it was computed."""
        curve = tables.LEARNING_CURVE
        order = (curve.c.mst_key, curve.c.dataset, curve.c.name, curve.c.epoch)
        return self._read(Point, _of(curve, run_id).order_by(*order))

    def timeline(self, run_id: int) -> list[Span]:
        """What each segment did when, in order of time."""
        return self._read(Span, _of(tables.TIMELINE, run_id).order_by(tables.TIMELINE.c.started_at))

    def visits(self, run_id: int) -> list[Visit]:
        """Every visit, also those going on and those that failed, in order of time."""
        return self._read(Visit, _of(tables.VISIT, run_id).order_by(tables.VISIT.c.started_at))

    def _read(self, record: type[R], query: sa.Select[tuple[object, ...]]) -> list[R]:
        with translated(), self.engine.connect() as connection:
            return [record(**row) for row in connection.execute(query).mappings()]


def _of(table: sa.TableClause, run_id: int) -> sa.Select[tuple[object, ...]]:
    return sa.select(table).where(table.c.run_id == run_id)
