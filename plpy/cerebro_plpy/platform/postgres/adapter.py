"""PostgreSQL: any session reads the rows of any segment with an index.

A trainer belongs to its session.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from cerebro_plpy.database.platform_protocol import (
    Caller,
    Distribution,
    Globals,
    Packers,
    Platform,
    Reader,
    Row,
    Rules,
    SqlParts,
    Table,
    Wait,
)
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.reading import SettingValues
from cerebro_plpy.database.sessions.connection_options import common_options
from cerebro_plpy.database.sql.literals import literal
from cerebro_plpy.trainer_client.process import host_resources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cerebro_plpy.platform.job import RawRows
    from cerebro_plpy.platform.visits import Visits
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


class Postgres(Platform):
    """See `platform_protocol.Platform` for the laws."""

    name = "PostgreSQL"
    clauses: SqlParts = CLAUSES
    writes_during_run = True
    logs_with_output = True
    caller_holds_run_lock = True
    stores_features = True
    binds_workers = False

    def session_options(self, db: Caller) -> SettingValues:
        """Return the settings of a worker session."""
        return common_options(db)

    def park(self, session: Reader, seconds: int) -> None:
        """Let the server end the session after an idle time."""
        session.run(sql("session.idle"), (f"{seconds}s",))

    def wake(self, session: Reader, label: str) -> None:
        """Reset idle_session_timeout."""
        session.run(sql("session.busy"), (label,))

    def clean_message(self, text: str) -> str:
        """Return the message, to which the server adds nothing."""
        return text

    def check_interrupts(self, db: Caller) -> None:
        """Run a statement, any of which checks for interrupts."""
        db.rows("SELECT 1")

    def uninterrupted(self) -> AbstractContextManager[None]:
        """Do nothing: a cancel never harms a statement."""
        return nullcontext()

    def find_waits(
        self, db: Caller, watch: Callable[[], Reader | None], pids: Sequence[int]
    ) -> Sequence[Wait]:
        """Find the waits in the caller's own session."""
        return [Wait(**row) for row in db.rows(sql("session.waits"), pids, os.getpid())]

    def read_granting_function(self, db: Caller, model: int, name: str) -> Sequence[Row]:
        """Return the function of a model that grants predictions."""
        return db.rows(sql("grant.found"), model, name)

    def grant_hint(self, model: str) -> str:
        """Return how an owner grants predictions."""
        return f"let you predict: SELECT cerebro.grant_predict('{model}', your role); or "

    def dispatch_clause(self, segment_id: int | None) -> str:
        """Return '': the trainer belongs to the session's own process."""
        return ""

    def assign_segments(self, segments: Sequence[int], workers: int) -> Sequence[int | None]:
        """Let any worker serve any segment."""
        return [None] * workers

    def default_workers(self, segments: int) -> int:
        """Return the number of trainers that this machine can run."""
        return host_resources.parallel_trainers()

    def trainer_threads(self, workers: int) -> Mapping[int, int]:
        """Divide the cores of this machine among the trainers."""
        return {
            number: host_resources.threads_per_trainer(number) for number in range(1, workers + 1)
        }

    def count_machines(self, db: Caller) -> int:
        """Return 1: all trainers run on this machine."""
        return 1

    def read_hosts(self, session: Reader, segments: Mapping[int, int | None]) -> Mapping[int, str]:
        """Return '' for all workers: all trainers run on this machine."""
        return dict.fromkeys(segments, "")

    def list_gpus(
        self, db: Caller, source: str, list_local: Callable[[], Iterable[str]]
    ) -> Iterator[tuple[str, str]]:
        """Yield the GPUs of this machine."""
        return (("localhost", gpu) for gpu in list_local())

    def choose_distribution(
        self, db: Caller, module: str, rules: Rules, segments: int | None
    ) -> Distribution:
        """Return the requested number of segments, by default one per parallel trainer.

        Segments are only numbers here.
        """
        return Distribution(tuple(range(segments or host_resources.parallel_trainers())))

    def follow_distribution(
        self, db: Caller, module: str, keys: Sequence[int], rules: Rules
    ) -> Distribution:
        """Return the same numbers."""
        return Distribution(tuple(keys))

    def ordered_rows_sql(self, output: str, rows: SqlParts) -> str:
        """Return the statement that writes all rows in order."""
        return sql("features.raw_rows", output=output, **rows)

    def open_packers(
        self, db: Caller, gd: Globals, source: Table, columns: Sequence[str]
    ) -> AbstractContextManager[Packers]:
        """Return the packer of the caller's own session, which starts while rows are counted."""
        from cerebro_plpy.platform.postgres import packing

        return packing.open_packers(db, gd, source, columns)

    def ensure_packer(self, is_running: bool, has_rows: bool, start: Callable[[], object]) -> bool:
        """Return True: `open_packers` has started the packer."""
        return True

    def state_table_sql(self, name: str) -> str:
        """Return the statement for a table that contains one state at a time."""
        return sql(
            "run.state_table",
            state=name,
            made=sql("run.new_state_table", state=name, literal=literal(name)),
        )

    def state_rows_sql(self, table: str, segment_id: int | None, base: str | None = None) -> str:
        """Return the query for all chunks of the table, then those of its base."""
        if base:
            return sql("visit.state_with_base", state=table, base=base)
        return sql("visit.state_rows", state=table)

    def state_range_sql(self, table: str, segment_id: int | None) -> str | None:
        """Return the query for a range of blocks; each row fills a block."""
        return sql("visit.state_between", state=table)

    def copy_state_sql(
        self, table: str, segment_id: int | None, base: str | None, copy: str
    ) -> str:
        """Return the statement that copies all chunks in order."""
        return self.state_from_rows_sql(self.state_rows_sql(table, segment_id, base), copy)

    def state_from_rows_sql(self, rows: str, table: str) -> str:
        """Return the statement that copies all chunks in order."""
        return sql("visit.state_copy", rows=rows, copy=table)

    def visits(
        self,
        trainers: Sequence[TrainerOptions],
        settings: Settings,
        workers: int,
        note: Callable[[str], None],
    ) -> Visits:
        """Return the visits of workers that share the memory of this machine."""
        from cerebro_plpy.platform.postgres.visits import PostgresVisits
        from cerebro_plpy.trainer_client.settings import cache_bytes

        return PostgresVisits(trainers, cache_bytes(settings, workers), note)

    def scoring_trainers(self, trainers: int, is_local: bool) -> int:
        """Return as many trainers as a usual fit has, so that its trainers can be reused."""
        return trainers if is_local else host_resources.parallel_trainers()

    def raw_rows(self, session: Reader, table: int, rows: RawRows) -> RawRows:
        """Return the rows unchanged: any worker can read them."""
        return rows
