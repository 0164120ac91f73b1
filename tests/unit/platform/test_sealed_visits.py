"""Weights that a session must not see come by a function of their owner: no row is read before that
has ended.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from cerebro_plpy.database.sessions.async_dispatcher import Statement
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.platform.job import Dataset, Job, StateSource
from cerebro_plpy.platform.postgres.adapter import Postgres
from cerebro_plpy.platform.postgres.visits import PostgresVisits
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.trainer_client.settings import TrainerOptions

TABLE = SimpleNamespace(
    relation=SimpleNamespace(oid=1, quoted='"packed"', spelling="packed"),
    independent=("x",),
    dependent=("y",),
    weight=None,
    copied_columns=("y",),
    key="k",
)
HELLO = {
    "machine": "m",
    "pid": 0,
    "framework": "f",
    "framework_version": "1",
    "keras_version": "1",
    "python_version": "1",
    "compilations": [],
}
ANSWER = {
    **HELLO,
    "threads": 1,
    "cache_bytes": 1,
    "cached": True,
    "bytes": 1,
    "limit": 1,
    "datasets": {},
    "cost": {},
}


@pytest.mark.parametrize("segments", [1, 3])
def test_rows_come_after_the_owner_s_function(segments: int) -> None:
    worker = Worker(0, cast(Any, SimpleNamespace(platform=Postgres(), pid=0)))
    visits = PostgresVisits([TrainerOptions()], 1, print)
    said: list[str] = []
    for segment in range(segments):
        dataset = Dataset(cast(PackedTable, TABLE), segment)
        state = StateSource(
            "sealed", "1/1", 0, "SELECT cerebro_internal.sealed_job(1, %s, %s)", (1,)
        )
        steps = visits.measure(worker, (dataset,), state, Job("evaluate", {}, "1/1"))
        said += [statement.sql for statement in answered(steps)]
    sealed = [number for number, text in enumerate(said) if "sealed_job" in text]
    read = [number for number, text in enumerate(said) if "dataset_add" in text]
    assert len(sealed) == len(read) == segments and all(
        a < b for a, b in zip(sealed, read, strict=True)
    )
    assert not [text for text in said if "dataset_close" in text], (
        "rows that are kept would be there the next time"
    )


def answered(steps: Any) -> list[Statement]:
    """The statements of steps, each of which is answered well."""
    said = [next(steps)]
    while True:
        try:
            said.append(steps.send([(ANSWER,)]))
        except StopIteration:
            return said
