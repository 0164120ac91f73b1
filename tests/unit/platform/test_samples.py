"""What a trainer is given of a table from which boosted trees learn only a sample."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.platform.greenplum.adapter import Greenplum
from cerebro_plpy.platform.greenplum.visits import GreenplumVisits
from cerebro_plpy.platform.job import Dataset
from cerebro_plpy.platform.postgres.adapter import Postgres
from cerebro_plpy.platform.statements import load_dataset
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.records import replace
from cerebro_plpy.trainer_client.settings import TrainerOptions

CACHE_BYTES = 1000
CONDITION = "t.buffer_id % 3 = 0"


def make_worker(platform: object, segment_id: int | None = None) -> Worker:
    """A worker whose trainer may cache some bytes."""
    session = cast(Any, SimpleNamespace(platform=platform, pid=0))
    worker = Worker(0, session, segment_id=segment_id)
    worker.memory.cache_bytes = CACHE_BYTES
    return worker


def make_dataset(**values: Any) -> Dataset:
    """A partition of a packed table."""
    columns: dict[str, Any] = dict.fromkeys(PackedTable.__annotations__)
    columns["relation"] = SimpleNamespace(oid=7, quoted="public.packed")
    columns.update(independent=("x",), dependent=("y",), key="t.__dist_key__")
    return Dataset(PackedTable(**columns), 2, **values)


def test_a_sample_has_a_name_of_its_own_and_all_of_the_cache() -> None:
    whole = make_dataset()
    sample = replace(whole, period=3)
    others = replace(whole, cache_share=0.5)
    assert whole.key == others.key == "7/2" != sample.key
    worker = make_worker(Postgres())
    loads = [load_dataset(worker, dataset.key, dataset) for dataset in (whole, sample, others)]
    assert [load.values[1] for load in loads] == [CACHE_BYTES, CACHE_BYTES, CACHE_BYTES // 2]
    assert [CONDITION in load.sql for load in loads] == [False, True, False]


def test_only_a_sample_is_brought_to_another_segment() -> None:
    visits = GreenplumVisits([TrainerOptions()], None, print)
    sample = make_dataset(period=3)
    bring, rows = visits._bring_rows(make_worker(Greenplum(), 5), sample)
    assert [CONDITION in statement.sql for statement in bring] == [False] * (len(bring) - 1) + [
        True
    ]
    assert (rows.segment_id, rows.period, rows.buffers) == (5, 1, None)
    assert visits._bring_rows(make_worker(Greenplum(), 2), sample) == ([], sample)
