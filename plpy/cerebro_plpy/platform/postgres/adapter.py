"""PostgreSQL: any session reads any segment's rows by an index, and a trainer belongs to its
session.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from cerebro_plpy.database.platform_protocol import (
    Caller,
    Distribution,
    Packers,
    Reader,
    Row,
    Rules,
    Table,
    Wait,
)
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.connection_options import options
from cerebro_plpy.database.sql.literals import literal
from cerebro_plpy.trainer_client.process import host_resources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cerebro_plpy.errors import CerebroError
    from cerebro_plpy.platform.job import RawRows
    from cerebro_plpy.platform.visit_protocol import Visits
    from cerebro_plpy.trainer_client.settings import Settings, TrainerOptions

CLAUSES = dict.fromkeys(
    (
        "distributed_by_mst_key",
        "distributed_by_dist_key",
        "distributed_by_window_id",
        "distributed_replicated",
        "distributed_randomly",
    ),
    "",
)


class Postgres:
    """See `database.platform.Platform` for the laws."""

    name = "PostgreSQL"
    clauses: Mapping[str, str] = CLAUSES
    works_beside = True
    logs_with_tables = True
    alive_by_lock = True
    stores_features = True

    def session_options(self, db: Caller) -> Mapping[str, str]:
        """The settings of a worker session."""
        return options(int(db.value(sql("session.setting"), "server_version_num")))

    def rest(self, session: Reader, seconds: int, at: str | None) -> None:
        """The server ends sessions that are idle for so long."""
        if at is not None:
            session.run(sql("visit.trainer_rest", at=at))
        session.run(sql("session.idle"), (f"{seconds}s",))

    def wake(self, session: Reader, label: str) -> None:
        """It may be idle again for any time."""
        session.run(sql("session.busy"), (label,))

    def message(self, text: str) -> str:
        """The server adds nothing."""
        return text

    def lost(self, sqlstate: str, message: str) -> CerebroError | None:
        """The server has no parts."""
        return None

    def settle(self, session: Reader) -> None:
        """The server has no parts."""

    def check_interrupts(self, db: Caller) -> None:
        """Any statement does."""
        db.rows("SELECT 1")

    def uninterrupted(self) -> AbstractContextManager[None]:
        """It never does."""
        return nullcontext()

    def check_process(self, module: str | None = None) -> None:
        """One process does all, and may ask at any time."""

    def refuse_held(self, held: Sequence[str], why: str) -> None:
        """The caller's session can train alone."""

    def waiting(
        self, db: Caller, watch: Callable[[], Reader | None], pids: Sequence[int]
    ) -> Sequence[Wait]:
        """Whoever waits, the caller's session can ask itself."""
        return [Wait(**row) for row in db.rows(sql("session.waits"), pids, os.getpid())]

    def look_anew(self, db: Caller) -> None:
        """Each statement does."""

    def check_groups(self, module: str) -> None:
        """One packer sees all rows."""

    def check_grants(self, module: str) -> None:
        """Anybody can be granted predictions."""

    def granting_function(self, db: Caller, model: int, name: str) -> Sequence[Row]:
        """The function of a model that grants predictions with it."""
        return db.rows(sql("grant.found"), model, name)

    def grant_hint(self, model: str) -> str:
        """How an owner grants them."""
        return f"let you predict: SELECT cerebro.grant_predict('{model}', your role); or "

    def at(self, segment_id: int | None) -> str:
        """The session's own process has the trainer."""
        return ""

    def posts(self, segments: Sequence[int], workers: int) -> Sequence[int | None]:
        """Any worker serves any segment."""
        return [None] * workers

    def most_workers(self, segments: int) -> int:
        """As many as this machine has room for."""
        return host_resources.parallel_trainers()

    def widths(self, workers: int) -> Mapping[int, int]:
        """They share the cores of this machine."""
        return {number: host_resources.width(number) for number in range(1, workers + 1)}

    def machines(self, db: Caller) -> int:
        """All trainers are on this one."""
        return 1

    def hosts(self, session: Reader, posts: Mapping[int, int | None]) -> Mapping[int, str]:
        """All are on this machine."""
        return dict.fromkeys(posts, "")

    def gpus(
        self, db: Caller, source: str, here: Callable[[], Iterable[str]]
    ) -> Iterator[tuple[str, str]]:
        """Those of this machine."""
        return (("localhost", gpu) for gpu in here())

    def distribution(
        self, db: Caller, module: str, rules: Rules, wanted: int | None
    ) -> Distribution:
        """As many segments as are wanted, or as can be trained on at a time: they are numbers."""
        return Distribution(tuple(range(wanted or host_resources.parallel_trainers())))

    def distribution_along(
        self, db: Caller, module: str, keys: Sequence[int], rules: Rules
    ) -> Distribution:
        """The same numbers."""
        return Distribution(tuple(keys))

    def ordered_rows(self, output: str, rows: Mapping[str, str]) -> str:
        """One after another."""
        return sql("features.raw_rows", output=output, **rows)

    def packers(
        self, db: Caller, gd: dict[str, Any], source: Table, columns: Sequence[str]
    ) -> AbstractContextManager[Packers]:
        """The one packer of the caller's own session; it starts while the rows are counted."""
        from cerebro_plpy.platform.postgres import packing

        return packing.ready(db, gd, source, columns)

    def packer_ready(self, running: bool, rows: bool, start: Callable[[], object]) -> bool:
        """Whoever packs has started it."""
        return True

    def check_distributed(self, session: Reader, module: str, table: Table) -> None:
        """Rows lie in one place."""

    def check_keys(
        self, session: Reader, module: str, table: Table, segments: Sequence[int]
    ) -> None:
        """Any key will do."""

    def state_table(self, name: str) -> str:
        """A table for one state at a time."""
        return sql(
            "run.state_table",
            state=name,
            made=sql("run.new_state_table", state=name, literal=literal(name)),
        )

    def state_rows(self, table: str, segment_id: int | None, base: str | None = None) -> str:
        """All that the table has, and then what its base has."""
        return (
            sql("visit.state_with_base", state=table, base=base)
            if base
            else sql("visit.state_rows", state=table)
        )

    def state_between(self, table: str, segment_id: int | None) -> str | None:
        """A row fills a block."""
        return sql("visit.state_between", state=table)

    def state_copy(self, table: str, segment_id: int | None, base: str | None, copy: str) -> str:
        """Chunk by chunk, in their order."""
        return self.state_of_rows(self.state_rows(table, segment_id, base), copy)

    def state_of_rows(self, rows: str, table: str) -> str:
        """Chunk by chunk, in their order."""
        return sql("visit.state_copy", rows=rows, copy=table)

    def visits(
        self,
        trainers: Sequence[TrainerOptions],
        chosen: Settings,
        workers: int,
        note: Callable[[str], None],
    ) -> Visits:
        """The visits of workers that share the memory of this machine."""
        from cerebro_plpy.platform.postgres.visits import PostgresVisits
        from cerebro_plpy.trainer_client.settings import cache_bytes

        return PostgresVisits(trainers, cache_bytes(chosen, workers), note)

    def scoring_trainers(self, together: int, local: bool) -> int:
        """As many as in a fit of the usual size, so that its trainers can be used again."""
        return together if local else host_resources.parallel_trainers()

    def raw_rows(self, session: Reader, table: int, rows: RawRows) -> RawRows:
        """Any worker reads them where they are."""
        return rows
