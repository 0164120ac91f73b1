"""Stored outputs of frozen layers, which later runs of their owner can reuse.

A table is reused only if it contains what would be computed again. Its fingerprint covers the
versions of the rows, the layers with their weights, the policy, and all software and hardware that
the bits depend on.

A run claims the tables that it uses, so that they are not dropped while they are read, and returns
them at its end. If they take more than `kept_features_mb`, the oldest are dropped.
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
from cerebro_plpy.records import asdict
from cerebro_plpy.run.activation_cache.selection import MEGABYTE, BuildContext, Candidate
from cerebro_plpy.run.request.run_request import CacheKey, FitRequest
from cerebro_plpy.scheduling.planning.activation_cuts import Cut
from cerebro_plpy.trainer_client.settings import Settings

UNAVAILABLE_STATES = ("42P01", "55P03")
"""SQLSTATEs of a table that was claimed or dropped, or is being read, for example by a backup."""


class CachedTable(NamedTuple):
    """A stored table; the fields are the columns of the query `kept.tables`."""

    name: str
    nbytes: int
    fingerprint: str
    is_valid: bool  # the fingerprint can still be that of a table
    source_oid: int  # table of the rows

    @property
    def quoted(self) -> str:
        """The quoted name with its schema."""
        return features_table(self.name)


class RowVersions(NamedTuple):
    """The versions of a table's rows."""

    snapshot_xmax: str  # all rows were written by transactions before this one
    row_count: int
    digest: str


class ActivationCache:
    """The stored tables of the caller, at the begin of a run."""

    def __init__(self, build: BuildContext, request: FitRequest) -> None:
        self._control = build.call.control
        self._settings = build.call.settings
        self._worker_set = build.worker_set
        self._request = request
        self._versions: dict[int, RowVersions | None] = {}

    @cached_property
    def _tables(self) -> dict[str, CachedTable]:
        """The valid tables by fingerprint; of equal ones, the newest."""
        tables = reversed(list_cached_tables(self._control))
        return {table.fingerprint: table for table in tables if table.is_valid}

    def is_cached(self, candidate: Candidate, cut: Cut) -> bool:
        """Return whether the outputs of a layer for all rows of a configuration are stored."""
        if not self._settings.kept_features_mb or not self._tables:
            return False
        keys = [self.make_key(candidate, cut, table) for table in self._request.row_tables]
        return all(key is not None and key.fingerprint in self._tables for key in keys)

    def make_key(self, candidate: Candidate, cut: Cut, table: PackedTable) -> CacheKey | None:
        """Return the key of a layer's outputs for the rows of a table.

        Returns:
            None if outputs for this table cannot be reused.
        """
        if not self._settings.kept_features_mb:
            return None
        oid = table.relation.oid
        if oid not in self._versions:
            self._versions[oid] = self._read_versions(table)
        versions = self._versions[oid]
        if versions is None:
            return None
        framework = self._request.backends[candidate.config.mst_key]
        memory = self._worker_set.list_with(framework)[0].memory
        text = json.dumps(
            [
                _describe_table(self._control, table, versions),
                [cut.digest, cut.shape, self._request.spec.dtype_policy],
                [framework, memory.machine, memory.threads, sorted(memory.software.items())],
            ]
        )
        fingerprint = hashlib.sha256(text.encode()).hexdigest()
        return CacheKey(fingerprint, oid, versions.snapshot_xmax)

    def claim(self, key: CacheKey | None, features: str, name: str) -> int | None:
        """Rename the table with a key to one of the run.

        Args:
            features: quoted name of the run's table, with its schema.
            name: the same without the schema.

        Returns:
            The oid of the table, or None if there is no such table.
        """
        if key is None or key.fingerprint not in self._tables:
            return None
        table = self._tables[key.fingerprint]
        statement = sql(
            "kept.take",
            kept=table.quoted,
            features=features,
            renamed=name,
            literal=f"'{features}'",
        )
        try:
            ((oid,),) = self._control.run(statement)
        except CerebroError as error:
            if error.sqlstate not in UNAVAILABLE_STATES:
                raise
            return None
        return int(oid)

    def is_unchanged(self, table: PackedTable, filled: PackedTable) -> bool:
        """Return whether no row of a table was changed while the filled table was computed."""
        before = self._versions.get(table.relation.oid)
        if before is None:
            return False
        now = self._read_versions(table)
        statement = sql("kept.count", table=filled.relation.quoted)
        ((count,),) = self._control.run(statement)
        return now is not None and before[1:] == now[1:] and count == now.row_count

    def _read_versions(self, table: PackedTable) -> RowVersions | None:
        if self._control.run(sql("kept.plain"), (table.relation.oid,)) != [(True,)]:
            return None
        text = sql("kept.rows", key=table.key, table=table.relation.quoted)
        ((snapshot_xmax, count, digest),) = self._control.run(text)
        return RowVersions(snapshot_xmax, count, digest)


def _describe_table(control: Session, table: PackedTable, versions: RowVersions) -> object:
    """Return everything about a table that decides a layer's outputs."""
    # Other columns may have these names by now.
    names = [*table.independent, *table.dependent]
    if table.weight:
        names.append(table.weight)
    names += [f"{name}_shape" for name in names]
    columns = control.run(sql("kept.columns"), (table.relation.oid, names))
    fields = {name: value for name, value in asdict(table).items() if name != "relation"}
    return [table.relation.oid, versions.row_count, versions.digest, columns, fields]


def list_cached_tables(control: Session) -> list[CachedTable]:
    """Return the stored tables of the caller, last stored first."""
    return [CachedTable(*row) for row in control.run(sql("kept.tables"))]


def store_activations(control: Session, settings: Settings, request: FitRequest) -> None:
    """Store the tables that a run has used for later runs, if there is room for them."""
    tables: dict[int, tuple[CacheKey, PackedTable]] = {}
    for activations in request.activations.values():
        for key, table in zip(activations.cache_keys, activations.tables):
            if key is not None:
                tables.setdefault(table.relation.oid, (key, table))
    for key, table in tables.values():
        with suppress(CerebroError):  # then it is dropped with the states of the run
            _store(control, key, table)
    if tables:
        evict(control, settings)


def _store(control: Session, key: CacheKey, table: PackedTable) -> None:
    name = f"kept_{table.relation.oid}"
    index = f"{name}_index"
    for (quoted,) in control.run(sql("kept.index"), (table.relation.oid, index)):
        control.run(sql("kept.rename_index", index=quoted, renamed=index))
    comment = f"features {key.fingerprint} of {key.source_oid} at {key.snapshot_xmax}"
    statement = sql(
        "kept.keep",
        features=table.relation.quoted,
        renamed=name,
        kept=features_table(name),
        comment=f"'{comment}'",
    )
    control.run(statement)


def evict(control: Session, settings: Settings) -> int:
    """Drop stored tables that cannot be reused or exceed the limit; return their bytes."""
    max_bytes = settings.kept_features_mb * MEGABYTE
    evicted = select_evicted(list_cached_tables(control), max_bytes)
    return sum(table.nbytes for table in evicted if drop_unread(control, table.quoted))


def select_evicted(tables: Iterable[CachedTable], max_bytes: int) -> list[CachedTable]:
    """Return the tables that are invalid, duplicates of earlier ones, or exceed the limit.

    Args:
        tables: in the order of their priority.

    >>> tables = [CachedTable(*row) for row in [
    ...     ("a", 6, "1", True, 1), ("b", 5, "2", True, 1), ("c", 4, "3", True, 1),
    ...     ("a", 6, "1", True, 1), ("c", 4, "3", False, 1)]]
    >>> [table.name for table in select_evicted(tables, 10)]
    ['b', 'a', 'c']
    """
    remaining_bytes = max_bytes
    fingerprints = set[str]()
    evicted = []
    for table in tables:
        is_duplicate = table.fingerprint in fingerprints
        if table.is_valid and not is_duplicate and table.nbytes <= remaining_bytes:
            fingerprints.add(table.fingerprint)
            remaining_bytes -= table.nbytes
        else:
            evicted.append(table)
    return evicted


def drop_unread(control: Session, table: str) -> bool:
    """Drop a table; return False if it is being read for long, for example by a backup."""
    try:
        control.run(sql("run.drop_unread_table", table=table))
    except CerebroError as error:
        if error.sqlstate not in UNAVAILABLE_STATES:
            raise
        return False
    return True
