"""A trainer that is killed while it scores rows is replaced, and the answer is what it would have
been.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from contextlib import closing

import pytest
from processes import eventually, trainers
from workbench import Row, Workbench

from cerebro_plpy.trainer_client.process.standstill import is_stopped, read_state

pytestmark = pytest.mark.long

FIT_WORKERS = 1
BUSY = "SELECT pid FROM pg_stat_activity WHERE pid = ANY (%s) AND state = 'active'"
TABLE = """
    CREATE TABLE rows AS
    SELECT n AS id, n * 7919 % 97 AS age, (ARRAY['a', 'b', 'c'])[n % 3 + 1] AS place,
        n * 7919 % 97 > 40 AS stays
    FROM generate_series(1, 200) n;
    ALTER TABLE rows ADD PRIMARY KEY (id)"""
RECORD = json.dumps({"age": 3, "place": "b"})
NAMED = {
    "predict": "SELECT id, prediction, probabilities FROM cerebro.predict('named', 'rows') ORDER "
    "BY id::integer",
    "predict_row": f"SELECT cerebro.predict_row('named', '{RECORD}')",
    "evaluate": "SELECT metric, value FROM cerebro.evaluate('named', 'rows') ORDER BY 1, 2",
    "importance": "SELECT column_name, importance FROM cerebro.importance('named', 'rows') ORDER "
    "BY 1",
    "attribution": "SELECT id, column_name, attribution FROM cerebro.attribution('named', 'rows') "
    "ORDER BY 1, 2",
}
TABLES = {
    "madlib_predict": "SELECT madlib_predict('fitted', 'points', 'id', 'x', '{0}', mst_key => 1)",
    "madlib_evaluate": "SELECT madlib_evaluate('fitted', 'packed', '{0}', mst_key => 1)",
}


@pytest.fixture(scope="module")
def scored(bench: Workbench) -> Workbench:
    bench.rows(TABLE)
    options = (
        "models => '{linear}', configs => 1, epochs => 1, seed => 1, ensemble => 1, "
        "refit => 'none', workers => 1"
    )
    bench.rows(
        f"SELECT * FROM cerebro.train('rows', 'stays', 'named', columns => 'age, place', {options})"
    )
    bench.pack("packed", 2)
    bench.configure(
        "one", ["optimizer='SGD()',loss='categorical_crossentropy',metrics=['accuracy']"]
    )
    bench.fit("packed", "fitted", "one", 1)
    return bench


def stop(found: set[int]) -> None:
    for pid in found:
        os.kill(pid, signal.SIGSTOP)
    eventually(lambda: all(map(is_stopped, found)))


def killed_meanwhile(
    bench: Workbench, backends: Callable[[Workbench], set[int]], call: Callable[[], list[Row]]
) -> list[Row]:
    """What a call gives if the trainers of these backends, which are stopped before, are killed
    while it waits.
    """
    with closing(bench.another()) as watcher:
        found = trainers(backends(watcher))
        assert found
        stop(found)
        with bench.calling(call) as called:
            eventually(
                lambda: any(
                    read_state(pid) == "S" for (pid,) in watcher.rows(BUSY, list(backends(watcher)))
                )
            )
            for pid in found:
                os.kill(pid, signal.SIGKILL)
            answer = called.result()
        now = trainers(backends(watcher))
    assert now and not now & found, "other trainers have answered"
    return answer


@pytest.mark.parametrize("call", NAMED)
def test_a_model_by_name_answers_as_if_its_trainer_had_not_been_killed(
    scored: Workbench, call: str
) -> None:
    expected = scored.rows(NAMED[call])
    assert expected
    found = killed_meanwhile(scored, lambda _: {scored.pid()}, lambda: scored.rows(NAMED[call]))
    assert found == expected


@pytest.mark.parametrize("call", TABLES)
def test_a_model_table_answers_as_if_its_trainer_had_not_been_killed(
    scored: Workbench, call: str
) -> None:
    """Each row stands in the output once, whichever of them were there when the trainer died."""
    outputs = [f"{call}_{which}" for which in ("expected", "found")]
    scored.rows(TABLES[call].format(outputs[0]))
    killed_meanwhile(
        scored, Workbench.workers, lambda: scored.rows(TABLES[call].format(outputs[1]))
    )
    expected, found = (sorted(scored.rows(f"SELECT t::text FROM {name} t")) for name in outputs)
    assert found == expected and expected
