"""Packing on PostgreSQL: a statement sends all rows in order to the packer of the caller's session.

There is only one packer.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cerebro_plpy.database import progress
from cerebro_plpy.database.platform_protocol import Globals, SqlParts
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.source_rows import caller_rows
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.trainer_client import segment_functions, settings
from cerebro_plpy.trainer_client.settings import TrainerOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cerebro_plpy.database.platform_protocol import Caller, Packers, Table
    from cerebro_plpy.database.progress import Progress

# A scan that starts in the middle of the table would number its rows differently, and a hashed
# aggregate would keep all buffers in memory at once. Rows are sorted in parts of 16 MB: with less
# memory they are written and read twice; a larger part does not fit into the CPU's cache.
PACKING_SETTINGS = {
    "work_mem": "16MB",
    "synchronize_seqscans": "off",
    "enable_hashagg": "off",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
}


@contextmanager
def open_packers(
    db: Caller, gd: Globals, source: Table, columns: Sequence[str]
) -> Iterator[Packers]:
    """Return the packer, which starts while the rows are counted."""
    spec = settings.trainer_spec(settings.read(db), TrainerOptions(framework="none"))
    segment_functions.begin_trainer(db.check_interrupts, gd, spec)
    try:
        with (
            progress.shown_progress(db, gd, "packing", source.spelling) as report,
            caller_rows(db, db.reading, {}) as rows,
        ):
            report.begin(db, "copied")
            opened = rows.open_table(source, columns, _watch_rows)
            yield PostgresPackers(db, opened, report)
    finally:
        segment_functions.stop_trainer(gd)


class PostgresPackers:
    """See `platform_protocol.Packers`."""

    def __init__(self, db: Caller, source: Table, report: Progress) -> None:
        self._db = db
        self._oid = source.oid
        self._report = report
        self.from_item = source.quoted

    def begin(self, activity: str, total: int | None = None) -> None:
        """Show the activity.

        The counted rows of a table are not reported: counting is fast, and may run in parallel.
        """
        self._report.begin(self._db, activity, total)

    def inspect_image(self, key: int, column: str, encoding: str, spec: str) -> Any:
        """Return what the packer finds about the first image."""
        return self._db.value(sql("pack.image", source=self.from_item, image=encoding), spec)

    def fill(self, parts: SqlParts, seed: int | None, arrays: str) -> None:
        """Pack all rows with one statement."""
        order = "pack.buffer_by_hash"
        if seed is None:
            order = "pack.buffer_in_order"
        buffer = sql(order, **{part: parts[part] for part in ("rows", "buffers", "seed")})
        keeps_order = seed is None and "buffer" not in parts
        statement = "pack.fill"
        if keeps_order and self._db.value(sql("pack.is_heap"), self._oid):
            statement = "pack.fill_in_order"
        with self._db.configured(**PACKING_SETTINGS):
            self.begin("read", int(parts["rows"]))
            values = {"buffer": buffer, **parts}
            values.update(source=self.from_item, seen=sql("pack.seen"))
            self._db.rows(sql(statement, **values), arrays)


def _watch_rows(source: str, columns: Sequence[str]) -> str:
    """Return an item of FROM that counts the rows of a source as they are read.

    Columns have aliases until then, because their own names could clash with those of the query.
    """
    aliases = [f"c{number}" for number in range(len(columns))]
    names = [quote_identifier(column) for column in columns]
    return sql(
        "pack.watched",
        names=", ".join(f"n.{alias} AS {name}" for alias, name in zip(aliases, names)),
        columns=", ".join(f"t.{name} AS {alias}" for alias, name in zip(aliases, names)),
        source=source,
        seen=sql("pack.seen"),
    )
