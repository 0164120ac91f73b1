"""Queries about runs, live or finished, from any session."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import fields
from operator import index
from typing import Any, TypeVar

import sqlalchemy as sa

from cerebro_db.driver import translate_errors
from cerebro_db.errors import UndefinedObject, UndefinedTable
from cerebro_db.records import (
    ACTIVITY,
    COST,
    LEADERBOARD,
    LEARNING_CURVE,
    PARAMETER,
    PROGRESS,
    QUEUE,
    RUN,
    TIMELINE,
    VISIT,
    Cost,
    Parameter,
    Point,
    Progress,
    QueueEntry,
    Run,
    Span,
    Standing,
    Visit,
    select_relation,
)
from cerebro_db.result_set import Records, Rows

R = TypeVar("R")


class RunReader:
    """Reader of tables, and of the runs that the engine's user may see.

    Methods return lists of records, whose method frame() converts them to a pandas DataFrame. For
    an unknown run id the list is empty.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine

    def runs(self) -> Records[Run]:
        """Return all runs, the newest first."""
        return self._read(Run, sa.select(RUN).order_by(RUN.c.run_id.desc()))

    def newest_run(self) -> int | None:
        """Return the id of the newest run."""
        return self._read_run_id(sa.select(sa.func.max(RUN.c.run_id)))

    def newest_run_of(self, pid: int) -> int | None:
        """Return the id of the newest run of a server process, started in its current session."""
        run = RUN.c
        process = ACTIVITY.c
        query = (
            sa.select(sa.func.max(run.run_id))
            .join_from(RUN, ACTIVITY, process.pid == run.pid)
            .where(run.pid == pid, process.backend_start <= run.started_at)
        )
        return self._read_run_id(query)

    def progress(self, run_id: int) -> Progress:
        """Return the progress of a run.

        Raises:
            UndefinedObject: the run does not exist or is not visible.
        """
        rows = self._read_run(Progress, PROGRESS, run_id)
        if not rows:
            raise unknown_run_error(run_id)
        return rows[0]

    def queue(self) -> Records[QueueEntry]:
        """Return all runs in progress, then all queued runs; runs of other users are included."""
        queue = QUEUE
        query = sa.select(queue).order_by(queue.c.position.nulls_first(), queue.c.arrived_at)
        return self._read(QueueEntry, query)

    def leaderboard(self, run_id: int) -> Records[Standing]:
        """Return the configs of a run, the best first."""
        return self._read_run(Standing, LEADERBOARD, run_id, "rank", "mst_key")

    def learning_curve(self, run_id: int) -> Records[Point]:
        """Return every metric of every config after every epoch in which it was computed."""
        order = ("mst_key", "dataset", "name", "epoch")
        return self._read_run(Point, LEARNING_CURVE, run_id, *order)

    def timeline(self, run_id: int) -> Records[Span]:
        """Return the work of each segment, in order of time."""
        return self._read_run(Span, TIMELINE, run_id, "started_at")

    def parameters(self, run_id: int) -> Records[Parameter]:
        """Return the parameters by which the configs of a run differ, one value a record."""
        return self._read_run(Parameter, PARAMETER, run_id, "mst_key", "name")

    def cost(self, run_id: int | None = None) -> Records[Cost]:
        """Return the cost of a run and of its configs, the run itself first.

        Args:
            run_id: id of the run; None for all runs, the newest first.
        """
        cost = COST
        query = sa.select(cost).order_by(cost.c.run_id.desc(), cost.c.mst_key.nulls_first())
        if run_id is not None:
            query = query.where(cost.c.run_id == index(run_id))
        return self._read(Cost, query)

    def visits(self, run_id: int) -> Records[Visit]:
        """Return all visits, also running and failed ones, in order of time."""
        return self._read_run(Visit, VISIT, run_id, "started_at")

    def rows(self, table: str, /, **equal: object) -> Rows:
        """Return rows of a table or view, such as an output of evaluate, in no particular order.

        Args:
            table: name of the table, as in SQL.
            equal: values by column; only rows with these values are returned.

        Raises:
            UndefinedTable: the table does not exist.
        """
        with translate_errors(), self.engine.connect() as connection:
            name = connection.execute(select_relation(table)).first()
            if name is None:
                raise UndefinedTable(
                    f"table {table} does not exist",
                    hint="Name it as in SQL, with its schema if need be.",
                )
            conditions = [sa.column(column) == value for column, value in equal.items()]
            query = (
                sa.select(sa.text("*"))
                .select_from(sa.table(name.relname, schema=name.nspname))
                .where(*conditions)
            )
            # A cached query would return the columns of an earlier table of this name.
            result = connection.execution_options(compiled_cache=None).execute(query)
            return Records(map(dict, result.mappings()), result.keys())

    def _read_run_id(self, query: sa.Select[tuple[Any]]) -> int | None:
        with translate_errors(), self.engine.connect() as connection:
            run_id: int | None = connection.execute(query).scalar_one()
        return run_id

    def _read_run(
        self, record_type: type[R], table: sa.TableClause, run_id: int, *order: str
    ) -> Records[R]:
        """Return the rows of a run, ordered by columns."""
        # `index` accepts an integer of numpy, as from a DataFrame.
        query = sa.select(table).where(table.c.run_id == index(run_id))
        return self._read(record_type, query.order_by(*(table.c[name] for name in order)))

    def _read(self, record_type: type[R], query: sa.Select[tuple[object, ...]]) -> Records[R]:
        columns = [field.name for field in fields(record_type)]  # type: ignore[arg-type]
        with translate_errors(), self.engine.connect() as connection:
            rows = connection.execute(query).mappings()
            return Records((record_type(**row) for row in rows), columns)


def unknown_run_error(run_id: int) -> UndefinedObject:
    """Return the error for a run id that does not exist or is not visible."""
    return UndefinedObject(
        f"run {run_id} does not exist, or belongs to a role that you do not have",
        hint="`cerebro-db runs` lists the runs that you may see; in SQL: "
        "SELECT run_id, name, status FROM cerebro.run;",
    )


def group_by_config(points: Iterable[Point]) -> defaultdict[int, list[Point]]:
    """Return the points of a learning curve by `mst_key`, in their original order."""
    curves = defaultdict(list)
    for point in points:
        curves[point.mst_key].append(point)
    return curves
