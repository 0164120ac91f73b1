"""PostgreSQL: any session reads any segment's rows by an index, and a trainer belongs to its session."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from cerebro_plpy.database import progress
from cerebro_plpy.database.dispatch import Statement, Steps
from cerebro_plpy.database.driver import options
from cerebro_plpy.database.platform import Caller, Distribution, Packers, Reader, Row, Rules, Table, Wait
from cerebro_plpy.database.progress import Progress
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import CerebroError
from cerebro_plpy.platform.job import Job, RawRows, StateSource
from cerebro_plpy.platform.protocol import TrainVisit, Visits, Worker
from cerebro_plpy.platform.shared_visits import SharedVisits
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.platform.statements import chunks
from cerebro_plpy.trainer import machine, segment, settings
from cerebro_plpy.trainer.settings import Settings, TrainerOptions

CLAUSES = dict.fromkeys(
    (
        "distributed_by_mst_key",
        "distributed_by_dist_key",
        "distributed_replicated",
        "distributed_randomly",
    ),
    "",
)
# A scan that starts in the middle of the table would number its rows differently, and a hashed aggregate
# would hold all buffers in memory at once. Rows are sorted in parts of 16 MB: with less they are written and read
# twice, with more a part no longer fits into the processor's cache.
PACKING_SETTINGS = {
    "work_mem": "16MB",
    "synchronize_seqscans": "off",
    "enable_hashagg": "off",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
}


class Postgres:
    """See `database.platform.Platform` for the laws."""

    name = "PostgreSQL"
    clauses: Mapping[str, str] = CLAUSES

    def here(self) -> bool:
        """Whether this very process is one of its servers': where it is no other's."""
        return True

    def session_options(self, db: Caller) -> Mapping[str, str]:
        """The settings of a worker session."""
        return options(int(db.value(sql("session.setting"), "server_version_num")))

    def rest(self, session: Reader, seconds: int) -> None:
        """The server ends sessions that are idle for so long."""
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

    def waiting(self, db: Caller, watch: Callable[[], Reader | None], pids: Sequence[int]) -> Sequence[Wait]:
        """Whoever waits, the caller's session can ask itself."""
        return [Wait(**row) for row in db.rows(sql("session.waits"), pids, os.getpid())]

    def look_anew(self, db: Caller) -> None:
        """Each statement does."""

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
        return machine.parallel_trainers()

    def hosts(self, session: Reader, posts: Mapping[int, int | None]) -> Mapping[int, str]:
        """All are on this machine."""
        return dict.fromkeys(posts, "")

    def gpus(self, db: Caller, source: str, here: Callable[[], Iterable[str]]) -> Iterator[tuple[str, str]]:
        """Those of this machine."""
        return (("localhost", gpu) for gpu in here())

    def distribution(self, db: Caller, module: str, rules: Rules, wanted: int | None) -> Distribution:
        """As many segments as are wanted, or as can be trained on at a time: they are numbers."""
        return Distribution(tuple(range(wanted or machine.parallel_trainers())))

    def distribution_along(self, db: Caller, module: str, keys: Sequence[int], rules: Rules) -> Distribution:
        """The same numbers."""
        return Distribution(tuple(keys))

    def ordered_rows(self, output: str, rows: Mapping[str, str]) -> str:
        """One after another."""
        return sql("features.raw_rows", output=output, **rows)

    @contextmanager
    def packers(self, db: Caller, gd: dict[str, Any], source: Table, columns: Sequence[str]) -> Iterator[Packers]:
        """The one packer of the caller's own session; it starts while the rows are counted."""
        spec = settings.trainer_spec(settings.read(db), TrainerOptions(framework="none"))
        segment.begin_trainer(db.check_interrupts, gd, spec)
        try:
            with progress.shown(db, gd, "packing", source.spelling) as shown:
                yield PostgresPackers(db, source, columns, shown)
        finally:
            segment.stop_trainer(gd)

    def packer_ready(self, running: bool, rows: bool, start: Callable[[], object]) -> bool:
        """Whoever packs has started it."""
        return True

    def check_distributed(self, session: Reader, module: str, table: Table) -> None:
        """Rows lie in one place."""

    def check_keys(self, session: Reader, module: str, table: Table, segments: Sequence[int]) -> None:
        """Any key will do."""

    def state_table(self, name: str) -> str:
        """A table for one state at a time."""
        return sql("run.state_table", state=name)

    def state_rows(self, table: str, segment_id: int | None) -> str:
        """All that the table has."""
        return sql("visit.state_rows", state=table)

    def state_copy(self, table: str, segment_id: int | None, copy: str) -> str:
        """Chunk by chunk, in their order."""
        return self.state_of_rows(self.state_rows(table, segment_id), copy)

    def state_of_rows(self, rows: str, table: str) -> str:
        """Chunk by chunk, in their order."""
        return sql("visit.state_copy", rows=rows, copy=table)

    def visits(
        self, trainers: Sequence[TrainerOptions], chosen: Settings, workers: int, note: Callable[[str], None]
    ) -> Visits:
        """The visits of workers that share the memory of this machine."""
        return PostgresVisits(trainers, settings.cache_bytes(chosen, workers), note)

    def scoring_trainers(self, together: int, local: bool) -> int:
        """As many as in a fit of the usual size, so that its trainers can be used again."""
        return together if local else machine.parallel_trainers()

    def raw_rows(self, session: Reader, table: int, rows: RawRows) -> RawRows:
        """Any worker reads them where they are."""
        return rows


class PostgresPackers:
    """See `database.platform.Packers`."""

    def __init__(self, db: Caller, source: Table, columns: Sequence[str], shown: Progress) -> None:
        self._db = db
        self._source, self._oid = source.quoted, source.oid
        self._shown = shown
        self.rows = source.quoted
        if not db.value(sql("pack.is_table"), source.oid):
            self.rows = _watched(source.quoted, columns)

    def begin(self, done: str, total: int | None = None) -> None:
        """Of a table nobody is told how many rows were counted: that is soon over, and may be done in parallel."""
        self._shown.begin(self._db, done, total)

    def about_image(self, key: int, column: str, sent: str, spec: str) -> Any:
        """What the packer says of the first image."""
        return self._db.value(sql("pack.image", source=self.rows, image=sent), spec)

    def fill(self, parts: Mapping[str, str], seed: int | None, arrays: str) -> None:
        """Pack all rows by one statement."""
        name = "pack.buffer_in_order" if seed is None else "pack.buffer_by_hash"
        buffer = sql(name, **{part: parts[part] for part in ("rows", "buffers", "seed")})
        apart = seed is None and self._db.value(sql("pack.is_heap"), self._oid)
        with self._db.configured(**PACKING_SETTINGS):
            self.begin("read", int(parts["rows"]))
            made = {**parts, "source": self._source, "buffer": buffer, "seen": sql("pack.seen")}
            self._db.rows(sql("pack.fill_in_order" if apart else "pack.fill", **made), arrays)


def _watched(source: str, columns: Sequence[str]) -> str:
    """The rows of a view, under names that no column can have in the way until they are counted."""
    carried = [f"c{number}" for number in range(len(columns))]
    return sql(
        "pack.watched",
        names=", ".join(f"n.{c} AS {name}" for c, name in zip(carried, columns)),
        columns=", ".join(f"t.{name} AS {c}" for c, name in zip(carried, columns)),
        source=source,
        seen=sql("pack.seen"),
    )


class PostgresVisits(SharedVisits):
    """See `protocol.Visits` for the laws."""

    def predict(
        self, worker: Worker, rows: RawRows, state: StateSource, job: Job, request: Mapping[str, Any]
    ) -> Steps[str | None]:
        """Predict all rows, as they are read from their table."""
        yield from self._collect(worker, state, job, request)
        return sql("score.declare", id=rows.id, data=rows.data, table=rows.table)

    def _pass_state(self, worker: Worker, state: StateSource, first: bool) -> list[Statement]:
        read = chunks(worker, state)
        return [Statement(sql("visit.state_read", source=read.sql), read.values)]

    def _visit_end(self, visit: TrainVisit, table: str) -> str:
        return sql("visit.visit_end", state=table)

    def _stored(self, stored: StoredState) -> Statement:
        return Statement(sql("visit.state_store", state=stored.table))
