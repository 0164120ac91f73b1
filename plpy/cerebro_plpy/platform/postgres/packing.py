"""Packing on PostgreSQL: one packer, of the caller's own session, to which a statement sends all
rows in order.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cerebro_plpy.database import progress
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.source_rows import caller_rows
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.trainer_client import segment_functions, settings
from cerebro_plpy.trainer_client.settings import TrainerOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cerebro_plpy.database.platform_protocol import Caller, Packers, Table
    from cerebro_plpy.database.progress import Progress

# A scan that starts in the middle of the table would number its rows differently, and a hashed
# aggregate would hold all buffers in memory at once. Rows are sorted in parts of 16 MB: with less
# they are written and read twice, with more a part no longer fits into the processor's cache.
PACKING_SETTINGS = {
    "work_mem": "16MB",
    "synchronize_seqscans": "off",
    "enable_hashagg": "off",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
}


@contextmanager
def ready(
    db: Caller, gd: dict[str, Any], source: Table, columns: Sequence[str]
) -> Iterator[Packers]:
    """That packer; it starts while the rows are counted."""
    spec = settings.trainer_spec(settings.read(db), TrainerOptions(framework="none"))
    segment_functions.begin_trainer(db.check_interrupts, gd, spec)
    try:
        with (
            progress.shown(db, gd, "packing", source.spelling) as shown,
            caller_rows(db, db.reading, {}) as rows,
        ):
            shown.begin(db, "copied")
            opened = rows.open_table(source, columns, _watched)
            yield PostgresPackers(db, opened, shown)
    finally:
        segment_functions.stop_trainer(gd)


class PostgresPackers:
    """See `database.platform.Packers`."""

    def __init__(self, db: Caller, source: Table, shown: Progress) -> None:
        self._db = db
        self._source, self._oid = source.quoted, source.oid
        self._shown = shown
        self.rows = source.quoted

    def begin(self, done: str, total: int | None = None) -> None:
        """Of a table nobody is told how many rows were counted: that is soon over, and may be done
        in parallel.
        """
        self._shown.begin(self._db, done, total)

    def about_image(self, key: int, column: str, sent: str, spec: str) -> Any:
        """What the packer says of the first image."""
        return self._db.value(sql("pack.image", source=self.rows, image=sent), spec)

    def fill(self, parts: Mapping[str, str], seed: int | None, arrays: str) -> None:
        """Pack all rows by one statement."""
        name = "pack.buffer_in_order" if seed is None else "pack.buffer_by_hash"
        buffer = sql(name, **{part: parts[part] for part in ("rows", "buffers", "seed")})
        apart = (
            seed is None
            and "buffer" not in parts
            and self._db.value(sql("pack.is_heap"), self._oid)
        )
        with self._db.configured(**PACKING_SETTINGS):
            self.begin("read", int(parts["rows"]))
            made = {"buffer": buffer, **parts, "source": self._source, "seen": sql("pack.seen")}
            self._db.rows(sql("pack.fill_in_order" if apart else "pack.fill", **made), arrays)


def _watched(source: str, columns: Sequence[str]) -> str:
    """Return the rows of a source, counted as they come; until then no column of its own has a name
    in the way.
    """
    carried = [f"c{number}" for number in range(len(columns))]
    names = [quote_identifier(each) for each in columns]
    return sql(
        "pack.watched",
        names=", ".join(f"n.{c} AS {name}" for c, name in zip(carried, names)),
        columns=", ".join(f"t.{name} AS {c}" for c, name in zip(carried, names)),
        source=source,
        seen=sql("pack.seen"),
    )
