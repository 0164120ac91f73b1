"""How many workers share the cores where earlier runs have shown what a trainer makes of
several.
"""

from __future__ import annotations

import os

import psycopg2
import pytest
from models import NOISY
from processes import cores_of, eventually, trainers
from roles import refused
from timings import remember
from workbench import Workbench, compile_text, setting, several

from cerebro_plpy.trainer_client.process.host_resources import count_cores, threads_per_trainer

EPOCHS, SEGMENTS = 2, 2


def threads_of(bench: Workbench, run: int) -> tuple[int, list[int]]:
    """How many workers made visits, and with how many threads."""
    asked = (
        "SELECT count(DISTINCT worker_pid), array_agg(DISTINCT threads) FROM cerebro.visit WHERE "
        "run_id = %s"
    )
    return bench.rows(asked + " AND status = 'completed'", run)[0]


@pytest.mark.long
@pytest.mark.skipif(count_cores() < 2, reason="one core cannot be shared in two ways")
@pytest.mark.postgresql("on Greenplum each segment has a worker of its own")
def test_few_wide_trainers_where_they_proved_faster_and_a_run_goes_on_with_them(
    bench: Workbench,
) -> None:
    bench.pack("halves", SEGMENTS)
    bench.configure("two", several(2), ["batch_size=1,epochs=8"], bench.model(NOISY))
    remember(bench, compile_text(), 1, threads_per_trainer(1), {"graph_loop": 0.1})
    remember(bench, compile_text(), 1, threads_per_trainer(2), {"graph_loop": 1.0})
    before, watcher = bench.last_run_id(), bench.another()
    done = "SELECT count(*) FROM cerebro.visit WHERE run_id > %s AND status = 'completed'"
    with bench.fitting("halves", "wide", "two", EPOCHS, schedule="rotation", seed=3) as fitted:
        eventually(lambda: watcher.value(done, before) >= 1)
        watcher.rows("SELECT pg_cancel_backend(%s)", bench.pid())
        with pytest.raises(psycopg2.errors.QueryCanceled):
            fitted.result()
    run = watcher.newest_run()
    watcher.close()
    assert threads_of(bench, run) == (1, [threads_per_trainer(1)])
    bench.rows("SELECT cerebro.resume(%s)", run)
    assert threads_of(bench, run) == (2, [threads_per_trainer(1)]), (
        "one worker before, and another one since"
    )
    again = bench.fit("halves", "wide_again", "two", EPOCHS, schedule="replay", replay_run=run)
    assert threads_of(bench, again)[1] == [threads_per_trainer(1)]
    assert bench.weights("wide_again") == bench.weights("wide")


@pytest.mark.skipif(count_cores() < 2, reason="of one core nothing can be spared")
@pytest.mark.postgresql("on Greenplum sessions have their trainers on segments")
def test_trainers_keep_off_spare_cores_and_come_to_the_same(bench: Workbench) -> None:
    bench.pack("shared_out", SEGMENTS)
    bench.configure("of_any_core", several(2), ["batch_size=4"])
    everywhere = bench.fit(
        "shared_out", "everywhere", "of_any_core", 1, schedule="rotation", seed=3, workers=1
    )
    with setting(bench, "spare_cores", str(2 * count_cores())):
        apart = bench.fit(
            "shared_out", "apart", "of_any_core", 1, schedule="rotation", seed=3, workers=1
        )
        kept = [cores_of(pid) for pid in trainers({*bench.workers()})]
        sessions = [cores_of(pid) for pid in (bench.pid(), *bench.workers())]
        other = bench.another()
        refused(
            other,
            "SELECT madlib_fit_multiple_model('nowhere', 'apart', 'of_any_core', 1)",
            code="42P01",
        )
        sessions.append(cores_of(other.pid()))
        other.close()
    assert all(each == os.sched_getaffinity(0) for each in sessions), (
        "they kept off while they began alone"
    )
    assert kept == [{max(os.sched_getaffinity(0))}]
    assert (
        threads_of(bench, apart) == threads_of(bench, everywhere) == (1, [threads_per_trainer(1)])
    )
    assert bench.weights("apart") == bench.weights("everywhere")
