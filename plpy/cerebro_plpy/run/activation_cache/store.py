"""What frozen layers gave for the rows of a packed table is kept for later runs of its owner, and
never used when it is not what would be computed.

A fingerprint decides: of the versions of the rows, the layers with their weights, the policy, and
all of the software and the machine that bits depend on. A run that uses such a table takes it over,
so that it is never gone while somebody reads it, and gives it back at its end. Where there is more
than `kept_features_mb` allow, the oldest goes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.errors import CerebroError
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.platform.state_tables import features_table
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.records import asdict
from cerebro_plpy.run.activation_cache.selection import BuildContext, Candidate
from cerebro_plpy.run.request.run_request import CacheKey, FitRequest
from cerebro_plpy.scheduling.planning.activation_cuts import Cut
from cerebro_plpy.trainer_client.settings import Settings

MEGABYTE = 1 << 20


class CachedTable(NamedTuple):
    """A table that is kept: its name, its bytes, what it is of, and whether that is still told by
    its fingerprint.
    """

    name: str
    bytes: int
    fingerprint: str
    valid: bool
    source: int

    @property
    def quoted(self) -> str:
        """Its name with its schema."""
        return features_table(self.name)


class Rows(NamedTuple):
    """The versions of a table's rows: the transaction before which all were there, how many, and a
    hash of them.
    """

    moment: str
    number: int
    hash: str


class ActivationCache:
    """What was kept by then, as a run sees it that begins."""

    def __init__(self, site: BuildContext, request: FitRequest) -> None:
        self._control, self._settings = site.context.control, site.context.settings
        self._request, self._workers = request, site.worker_set.workers
        self._rows: dict[int, Rows | None] = {}

    @cached_property
    def _kept(self) -> dict[str, CachedTable]:
        return {
            each.fingerprint: each
            for each in reversed(list_cached_tables(self._control))
            if each.valid
        }

    def has(self, candidate: Candidate, cut: Cut) -> bool:
        """Whether all that a layer gives for a configuration's rows is there."""
        if not self._settings.kept_features_mb or not self._kept:
            return False
        prints = [self.print(candidate, cut, table) for table in self._request.row_tables]
        return all(each is not None and each.fingerprint in self._kept for each in prints)

    def print(self, candidate: Candidate, cut: Cut, table: PackedTable) -> CacheKey | None:
        """What tells what a layer gives for the rows of a table; None where nothing is kept of such
        a table.
        """
        if not self._settings.kept_features_mb:
            return None
        oid = table.relation.oid
        if oid not in self._rows:
            self._rows[oid] = self._seen(table)
        rows = self._rows[oid]
        if rows is None:
            return None
        framework = self._request.backends[candidate.config.mst_key]
        worker = next(each for each in self._workers if each.framework == framework)
        text = json.dumps(
            [
                _of_table(self._control, table, rows),
                _of_layer(self._request, cut),
                _of_worker(worker),
            ]
        )
        return CacheKey(hashlib.sha256(text.encode()).hexdigest(), oid, rows.moment)

    def take(self, found: CacheKey | None, features: str, name: str) -> int | None:
        """Take over the table with that fingerprint, under a name of the run's: its oid; None where
        there is none.
        """
        kept = self._kept.get(found.fingerprint) if found else None
        if kept is None:
            return None
        names = {
            "kept": kept.quoted,
            "features": features,
            "renamed": name,
            "literal": f"'{features}'",
        }
        try:
            ((oid,),) = self._control.run(sql("kept.take", **names))
        except CerebroError as error:
            if error.sqlstate not in GONE:
                raise
            return None
        return int(oid)

    def unchanged(self, table: PackedTable, filled: PackedTable) -> bool:
        """Whether a table that was filled has what it would have of rows that nobody has changed
        meanwhile.
        """
        before = self._rows.get(table.relation.oid)
        if before is None:
            return False
        now = self._seen(table)
        ((count,),) = self._control.run(sql("kept.count", table=filled.relation.quoted))
        return now is not None and before[1:] == now[1:] and count == now.number

    def _seen(self, table: PackedTable) -> Rows | None:
        if self._control.run(sql("kept.plain"), (table.relation.oid,)) != [(True,)]:
            return None
        text = sql("kept.rows", key=table.key, table=table.relation.quoted)
        ((moment, count, digest),) = self._control.run(text)
        return Rows(moment, count, digest)


GONE = ("42P01", "55P03")
"""Somebody has taken or dropped it, or reads it, such as a backup."""


def _of_table(control: Session, table: PackedTable, rows: Rows) -> object:
    # Other columns of the same rows may have these names by now.
    weight = (table.weight,) if table.weight else ()
    names = [*table.independent, *table.dependent, *weight]
    columns = control.run(
        sql("kept.columns"), (table.relation.oid, [*names, *(f"{name}_shape" for name in names)])
    )
    said = {name: value for name, value in asdict(table).items() if name != "relation"}
    return [table.relation.oid, rows.number, rows.hash, columns, said]


def _of_layer(request: FitRequest, cut: Cut) -> object:
    return [cut.digest, cut.shape, request.spec.dtype_policy]


def _of_worker(worker: Worker) -> object:
    memory = worker.memory
    return [worker.framework, memory.machine, memory.threads, sorted(memory.software.items())]


def list_cached_tables(control: Session) -> list[CachedTable]:
    """All that is kept of the caller's, what was kept last first."""
    return [CachedTable(*row) for row in control.run(sql("kept.tables"))]


def store_activations(control: Session, settings: Settings, request: FitRequest) -> None:
    """Give back what a run has used, for later ones, as much as may be kept."""
    done = set[int]()
    for features in request.activations.values():
        for found, table in zip(features.cache_keys, features.tables):
            if found is not None and table.relation.oid not in done:
                done.add(table.relation.oid)
                with suppress(CerebroError):  # then it goes with the states of the run
                    _keep(control, found, table)
    if done:
        sweep(control, settings)


def _keep(control: Session, found: CacheKey, table: PackedTable) -> None:
    name = f"kept_{table.relation.oid}"
    comment = f"'features {found.fingerprint} of {found.source_oid} at {found.snapshot_xmax}'"
    index = f"{name}_index"
    for (quoted,) in control.run(sql("kept.index"), (table.relation.oid, index)):
        control.run(sql("kept.rename_index", index=quoted, renamed=index))
    names = {
        "features": table.relation.quoted,
        "renamed": name,
        "kept": features_table(name),
        "comment": comment,
    }
    control.run(sql("kept.keep", **names))


def sweep(control: Session, settings: Settings) -> int:
    """Remove what is of no use any more, and what there is no room for; the bytes."""
    gone = select_evicted(list_cached_tables(control), settings.kept_features_mb * MEGABYTE)
    return sum(_drop(control, each) for each in gone)


def select_evicted(kept: Iterable[CachedTable], most: int) -> list[CachedTable]:
    """Which tables go, of all in their order, where they may have so many bytes: what does not fit
    any more, what nothing tells any more, and what there is twice.

    >>> tables = [CachedTable(*row) for row in [
    ...     ("a", 6, "1", True, 1), ("b", 5, "2", True, 1), ("c", 4, "3", True, 1),
    ...     ("a", 6, "1", True, 1), ("c", 4, "3", False, 1)]]
    >>> [table.name for table in select_evicted(tables, 10)]
    ['b', 'a', 'c']
    """
    left, seen, gone = most, set[str](), list[CachedTable]()
    for each in kept:
        if each.valid and each.fingerprint not in seen and each.bytes <= left:
            seen.add(each.fingerprint)
            left -= each.bytes
        else:
            gone.append(each)
    return gone


def _drop(control: Session, kept: CachedTable) -> int:
    return kept.bytes if drop_unread(control, kept.quoted) else 0


def drop_unread(control: Session, table: str) -> bool:
    """Drop a table, and return whether it is dropped: one that somebody, such as a backup, reads
    for long stays.
    """
    try:
        control.run(sql("run.drop_unread_table", table=table))
    except CerebroError as error:
        if error.sqlstate not in GONE:
            raise
        return False
    return True
