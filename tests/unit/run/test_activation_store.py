"""A fingerprint covers everything that decides a layer's outputs, and nothing else.

Without a fingerprint, nothing is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.records import replace
from cerebro_plpy.run.activation_cache.store import ActivationCache
from cerebro_plpy.run.request.run_request import CacheKey
from cerebro_plpy.run.workers.workers import WorkerSet
from cerebro_plpy.scheduling.planning.activation_cuts import Cut

TABLE = PackedTable(
    relation=Relation("packed", "public", "packed", 7, "public.packed"),
    independent=("x",),
    dependent=("y",),
    dependent_types=("text",),
    class_values=(("a", "b"),),
    class_types=("text",),
    num_classes=(2,),
    normalizing_const=1.0,
    buffer_size=8,
    input_shapes=((4,),),
    target_shapes=((2,),),
    float_targets=(False,),
    segments=(0, 1),
    key="t.__dist_key__",
    rows=16,
)
CUT = Cut("front", "d1", (6,), 100)


class Server:
    """A control session that returns row versions in turn, and the number of stored rows."""

    def __init__(self) -> None:
        self.plain: list[tuple[bool | None]] = [(True,)]
        self.rows = [("100", 2, "h1")]
        self.stored = 2
        self.columns = [("x", 1), ("y", 2)]

    def run(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        if statement == sql("kept.plain"):
            return self.plain
        if statement == sql("kept.columns"):
            return self.columns
        if statement == sql("kept.count", table=TABLE.relation.quoted):
            return [(self.stored,)]
        assert "txid_current_snapshot" in statement
        return [self.rows.pop(0) if self.rows[1:] else self.rows[0]]


class Case:
    """A run that could store the outputs of a layer."""

    def __init__(self) -> None:
        self.server, self.cut, self.table = Server(), CUT, TABLE
        self.limit_mb, self.policy = 10, None
        self.framework, self.machine, self.threads = "tensorflow", "4 x processor", 2
        self.software = {"tensorflow": "2.16", "keras": "3.5", "python": "3.11"}

    @property
    def cache(self) -> Any:
        """The cache of that run."""
        worker: Any = SimpleNamespace(
            framework=self.framework,
            memory=SimpleNamespace(
                machine=self.machine, threads=self.threads, software=self.software
            ),
        )
        settings = SimpleNamespace(kept_features_mb=self.limit_mb)
        call = SimpleNamespace(control=self.server, settings=settings)
        visits: Any = None
        build = SimpleNamespace(call=call, worker_set=WorkerSet([worker], visits))
        spec = SimpleNamespace(dtype_policy=self.policy)
        request = SimpleNamespace(
            backends={1: self.framework}, spec=spec, source=self.table, validation=None
        )
        return ActivationCache(build, request)  # type: ignore[arg-type]

    @property
    def key(self) -> CacheKey | None:
        """The key of the outputs that it would store."""
        candidate = SimpleNamespace(config=SimpleNamespace(mst_key=1))
        return self.cache.make_key(candidate, self.cut, self.table)  # type: ignore[no-any-return]


def change_case(**values: object) -> Callable[[Case], None]:
    return lambda case: case.__dict__.update(values)


def change_server(**values: object) -> Callable[[Case], None]:
    return lambda case: case.server.__dict__.update(values)


CHANGES: dict[str, Callable[[Case], None]] = {
    "a version of a row": change_server(rows=[("100", 2, "h2")]),
    "more rows": change_server(rows=[("100", 3, "h1")]),
    "other columns of these names": change_server(columns=[("x", 3), ("y", 2)]),
    "another table": change_case(table=replace(TABLE, relation=replace(TABLE.relation, oid=8))),
    "other segments": change_case(table=replace(TABLE, key="t.buffer_id % 2")),
    "another constant": change_case(table=replace(TABLE, normalizing_const=255.0)),
    "layers or weights": change_case(cut=CUT._replace(digest="d2")),
    "another shape": change_case(cut=CUT._replace(shape=(2, 3))),
    "another policy": change_case(policy="mixed_bfloat16"),
    "another framework": change_case(framework="jax"),
    "another machine": change_case(machine="4 x other processor"),
    "more threads": change_case(threads=3),
    "a newer framework": change_case(
        software={"tensorflow": "2.17", "keras": "3.5", "python": "3.11"}
    ),
}


def test_equal_outputs_have_the_same_fingerprint() -> None:
    """The name of the layer and later transactions make no difference."""
    one, other = Case(), Case()
    other.cut, other.server.rows = CUT._replace(layer="renamed"), [("200", 2, "h1")]
    assert one.key is not None and other.key is not None
    assert one.key.fingerprint == other.key.fingerprint and one.key.source_oid == 7
    assert (one.key.snapshot_xmax, other.key.snapshot_xmax) == ("100", "200")


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_that_affects_outputs_changes_the_fingerprint(
    change: Callable[[Case], None],
) -> None:
    one, other = Case(), Case()
    change(other)
    assert one.key is not None and other.key is not None
    assert one.key.fingerprint != other.key.fingerprint


@pytest.mark.parametrize(
    "change",
    [change_server(plain=[(None,)]), change_server(plain=[(False,)]), change_case(limit_mb=0)],
)
def test_without_row_versions_or_a_limit_there_is_no_key(change: Callable[[Case], None]) -> None:
    case = Case()
    change(case)
    assert case.key is None


@pytest.mark.parametrize(
    ("after", "stored", "unchanged"),
    [
        (("150", 2, "h1"), 2, True),
        (("150", 2, "h2"), 2, False),
        (("150", 3, "h1"), 3, False),
        (("150", 2, "h1"), 3, False),
    ],
)
def test_a_change_of_rows_while_a_table_is_filled_is_detected(
    after: tuple[str, int, str], stored: int, unchanged: bool
) -> None:
    """A row that was added and removed meanwhile counts, too: it may have been stored."""
    case = Case()
    case.server.rows, case.server.stored = [("100", 2, "h1"), after], stored
    cache = case.cache
    assert (
        cache.make_key(SimpleNamespace(config=SimpleNamespace(mst_key=1)), CUT, TABLE) is not None
    )
    assert cache.is_unchanged(TABLE, TABLE) == unchanged
