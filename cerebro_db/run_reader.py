"""What can be asked about runs, from any session, while they go on and afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from operator import index
from typing import Any, TypeVar

import sqlalchemy as sa

from cerebro_db import errors, records
from cerebro_db.driver import translate_errors
from cerebro_db.records import (
    Cost,
    Parameter,
    Point,
    Progress,
    QueueEntry,
    Run,
    Span,
    Standing,
    Visit,
)
from cerebro_db.result_set import Records

R = TypeVar("R")


class RunReader:
    """The runs that the engine's user may see, and tables. A run id that names none of them gives
    no records.

    Records come in a list, whose method frame() makes a pandas DataFrame of it.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine

    def runs(self) -> Records[Run]:
        """All runs, newest first."""
        return self._read(Run, sa.select(records.RUN).order_by(records.RUN.c.run_id.desc()))

    def newest_run(self) -> int | None:
        """The id of the newest run."""
        with translate_errors(), self.engine.connect() as connection:
            found = connection.execute(sa.select(sa.func.max(records.RUN.c.run_id))).scalar_one()
        return None if found is None else int(found)

    def newest_run_of(self, pid: int) -> int | None:
        """The id of the newest run that server process `pid` has begun in its present session."""
        run, process = records.RUN.c, records.ACTIVITY.c
        query = (
            sa.select(sa.func.max(run.run_id))
            .join_from(records.RUN, records.ACTIVITY, process.pid == run.pid)
            .where(run.pid == pid, process.backend_start <= run.started_at)
        )
        with translate_errors(), self.engine.connect() as connection:
            found = connection.execute(query).scalar_one()
        return None if found is None else int(found)

    def progress(self, run_id: int) -> Progress:
        """How far one run is; UndefinedObject where there is none such."""
        found = self._read(Progress, _of(records.PROGRESS, run_id))
        if not found:
            raise unknown_run_error(run_id)
        return found[0]

    def queue(self) -> Records[QueueEntry]:
        """All runs that are under way, those of others too, those that are queued at the end."""
        queue = records.QUEUE
        return self._read(
            QueueEntry,
            sa.select(queue).order_by(queue.c.position.nulls_first(), queue.c.arrived_at),
        )

    def leaderboard(self, run_id: int) -> Records[Standing]:
        """The configs of a run, best first."""
        board = records.LEADERBOARD
        return self._read(Standing, _of(board, run_id).order_by(board.c.rank, board.c.mst_key))

    def learning_curve(self, run_id: int) -> Records[Point]:
        """Every metric of every config after every epoch at which it was computed."""
        curve = records.LEARNING_CURVE
        order = (curve.c.mst_key, curve.c.dataset, curve.c.name, curve.c.epoch)
        return self._read(Point, _of(curve, run_id).order_by(*order))

    def timeline(self, run_id: int) -> Records[Span]:
        """What each segment did when, in order of time."""
        return self._read(
            Span, _of(records.TIMELINE, run_id).order_by(records.TIMELINE.c.started_at)
        )

    def parameters(self, run_id: int) -> Records[Parameter]:
        """What the configs of a run differ by, one value a record."""
        table = records.PARAMETER
        return self._read(Parameter, _of(table, run_id).order_by(table.c.mst_key, table.c.name))

    def cost(self, run_id: int | None = None) -> Records[Cost]:
        """What a run has cost, by config, the run itself first; of all runs without one, newest
        first.
        """
        table = records.COST
        wanted = sa.select(table) if run_id is None else _of(table, run_id)
        return self._read(
            Cost, wanted.order_by(table.c.run_id.desc(), table.c.mst_key.nulls_first())
        )

    def visits(self, run_id: int) -> Records[Visit]:
        """Every visit, also those going on and those that failed, in order of time."""
        return self._read(Visit, _of(records.VISIT, run_id).order_by(records.VISIT.c.started_at))

    def rows(self, table: str, /, **equal: object) -> Records[dict[str, Any]]:
        """The rows of a table or view, such as an output of evaluate or predict, in no particular
        order.

        All of them, or those whose columns have the values that are given by the columns' names.
        """
        relation, schema = records.CLASS, records.NAMESPACE
        named = (
            sa.select(schema.c.nspname, relation.c.relname)
            .join_from(relation, schema, schema.c.oid == relation.c.relnamespace)
            .where(relation.c.oid == sa.func.to_regclass(table))
        )
        with translate_errors(), self.engine.connect() as connection:
            found = connection.execute(named).first()
            if found is None:
                raise errors.UndefinedTable(
                    f"table {table} does not exist",
                    hint="Name it as in SQL, with its schema if need be.",
                )
            wanted = [sa.column(name) == value for name, value in equal.items()]
            everything = (
                sa.select(sa.text("*"))
                .select_from(sa.table(found.relname, schema=found.nspname))
                .where(*wanted)
            )
            # Else the columns would be those that a table of this name had when it was read first.
            result = connection.execution_options(compiled_cache=None).execute(everything)
            return Records(map(dict, result.mappings()), result.keys())

    def _read(self, record: type[R], query: sa.Select[tuple[object, ...]]) -> Records[R]:
        columns = [field.name for field in fields(record)]  # type: ignore[arg-type]
        with translate_errors(), self.engine.connect() as connection:
            return Records((record(**row) for row in connection.execute(query).mappings()), columns)


def unknown_run_error(run_id: int) -> errors.UndefinedObject:
    """What is wrong with the number of a run that nobody sees."""
    return errors.UndefinedObject(
        f"run {run_id} does not exist, or belongs to a role that you do not have",
        hint="SELECT run_id, name, status FROM cerebro.run lists the runs that you may see.",
    )


def _of(table: sa.TableClause, run_id: int) -> sa.Select[tuple[object, ...]]:
    return sa.select(table).where(
        table.c.run_id == index(run_id)
    )  # one of numpy's, from a DataFrame, will do


def group_by_config(points: Iterable[Point]) -> dict[int, list[Point]]:
    """The points of a learning curve by the `mst_key` of their config, each in the order that they
    have there.
    """
    found: dict[int, list[Point]] = {}
    for point in points:
        found.setdefault(point.mst_key, []).append(point)
    return found
