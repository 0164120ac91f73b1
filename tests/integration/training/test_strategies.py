"""How a run is divided among workers: as somebody says, or as measured times do, also while it goes
on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg2
import pytest
from models import NOISY
from processes import eventually
from timings import fastest, remember
from workbench import Workbench, compile_text, setting, several, superuser

from cerebro_plpy.trainer_client.process.host_resources import threads_per_trainer

SEGMENTS = 3
HALVES = 2
ADAM = compile_text("Adam(learning_rate=0.01)")
LONG = 6
"""Epochs after whose first visit nearly all is still to be done, so that nobody cancels too late.
"""
CHANGING = 6
"""The same, where each worker is to make some visits before it is seen what they take."""
DEAR = """
CREATE FUNCTION public.dear_hops() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status = 'completed' AND NEW.kind = 'train' THEN
        NEW.training_seconds := 0.01;
        NEW.ended_at := NEW.started_at + CASE WHEN NEW.mst_key IS DISTINCT FROM (
            SELECT v.mst_key FROM cerebro.visit v
            WHERE v.run_id = NEW.run_id AND v.worker_pid = NEW.worker_pid
                AND v.started_at < NEW.started_at
            ORDER BY v.started_at DESC LIMIT 1) THEN interval '1 s' ELSE interval '0.01 s' END;
        NEW.stored_at := NEW.ended_at;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER dear_hops BEFORE INSERT OR UPDATE ON cerebro.visit FOR EACH ROW EXECUTE FUNCTION
    public.dear_hops()"""
HOPS = """
INSERT INTO cerebro.decision_log (run_id, decision_no, action, rule, epoch, visits, last_epoch,
    reason)
VALUES (%s, 1, 'replan', 'mop', 0, 0, %s, 'for a test')"""


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> int:
    """A packed table, and a model with noise, of which the id is given."""
    bench.pack("thirds", SEGMENTS)
    bench.configure("two", several(2))
    return bench.model(NOISY)


@contextmanager
def dear_hops(bench: Workbench) -> Iterator[None]:
    """Within the block the log has all visits as if they took no time, but a second where a state
    is read.
    """
    with closing(superuser(bench)) as administrator:
        administrator.rows(DEAR)
        try:
            yield
        finally:
            administrator.rows(
                "DROP TRIGGER dear_hops ON cerebro.visit; DROP FUNCTION public.dear_hops()"
            )


def chosen(bench: Workbench, run: int) -> str:
    """The strategy of a run when it began."""
    return str(
        bench.value(
            "SELECT plan -> 'chosen' ->> 'name' FROM cerebro.run_log WHERE run_id = %s", run
        )
    )


@pytest.fixture(scope="module")
def hopped(bench: Workbench) -> int:
    """A run of which somebody has said that configurations hop."""
    return bench.fit("thirds", "hopped", "two", 1, workers=2, seed=3, strategy="mop")


@pytest.mark.postgresql("on Greenplum configurations hop always")
def test_whoever_names_a_strategy_has_it(bench: Workbench, hopped: int) -> None:
    stayed = bench.fit("thirds", "stayed", "two", 1, workers=2, seed=3, strategy="task")
    for strategy, run in (("mop", hopped), ("task", stayed)):
        assert chosen(bench, run) == strategy
        logged = bench.value("SELECT spec ->> 'strategy' FROM cerebro.run WHERE run_id = %s", run)
        assert logged == strategy
        planned = bench.rows(
            "SELECT cerebro.plan_fit('thirds', 'two', 2, workers => 2, strategy => %s)", strategy
        )
        assert planned[0][0].startswith(f"Fit  (strategy={strategy} ")


@pytest.mark.long
@pytest.mark.postgresql("on Greenplum configurations hop always")
def test_a_run_changes_its_strategy_when_it_knows_better_and_is_repeated_so(
    bench: Workbench, tables: int
) -> None:
    """One that was interrupted goes on as it was decided: here somebody makes believe that
    configurations are to hop. As soon as the log tells what hops take, they stay."""
    bench.pack("halves", HALVES)
    bench.configure("long", several(2), ["batch_size=1,epochs=4"], tables)
    before, watcher = bench.last_run_id(), bench.another()
    done = "SELECT count(*) FROM cerebro.visit WHERE run_id > %s AND status = 'completed'"
    with (
        closing(watcher),
        bench.fitting("halves", "changed", "long", CHANGING, workers=HALVES, seed=3) as fitted,
    ):
        eventually(lambda: watcher.value(done, before) >= 1)
        watcher.rows("SELECT pg_cancel_backend(%s)", bench.pid())
        with pytest.raises(psycopg2.errors.QueryCanceled):
            fitted.result()
    run = bench.newest_run()
    assert chosen(bench, run) == "task"
    bench.rows(HOPS, run, CHANGING)
    begun = bench.value("SELECT clock_timestamp()")
    bench.messages()
    with dear_hops(bench):
        bench.rows("SELECT cerebro.resume(%s)", run)
    columns = "decision_no, mst_key, action, rule, last_epoch"
    found = bench.rows(
        f"SELECT {columns} FROM cerebro.decision WHERE run_id = %s ORDER BY decision_no", run
    )
    assert found == [(1, None, "replan", "mop", CHANGING), (2, None, "replan", "task", CHANGING)]
    asked = "SELECT epoch, reason, time FROM cerebro.decision WHERE run_id = %s AND decision_no = 2"
    epoch, reason, changed = bench.row(asked, run)
    assert 1 <= epoch < CHANGING and "instead of" in reason
    assert any("from now on configurations stay" in message for message in bench.messages())
    served = (
        "SELECT count(DISTINCT worker_pid) FROM cerebro.visit WHERE run_id = %s AND started_at "
        "BETWEEN %s AND %s GROUP BY segment_id"
    )
    assert bench.rows(served, run, begun, changed) == [(1,)] * HALVES, (
        "until then each segment had its worker"
    )
    shown = [
        line
        for (line,) in bench.rows("SELECT cerebro.plan_of(%s)", run)
        if line.startswith("  Changed: ")
    ]
    assert shown == [
        f"  Changed: to mop after epoch 0: for a test; to task after epoch {epoch}: {reason}"
    ]
    again = bench.fit(
        "halves", "changed_again", "long", CHANGING, schedule="replay", replay_run=run
    )
    assert bench.weights("changed_again") == bench.weights("changed")
    assert bench.rows("SELECT FROM cerebro.decision WHERE run_id = %s", again) == []
    first, *_ = bench.rows(
        "SELECT cerebro.plan_fit('halves', 'long', %s, workers => %s)", CHANGING, HALVES
    )
    assert "strategy=task" in first[0]


@pytest.fixture(scope="module")
def means(bench: Workbench, tables: int) -> int:
    """A run that averages; its output is `means`."""
    bench.configure("averaged", [ADAM, compile_text()], ["batch_size=8"], tables)
    bench.messages()
    return bench.fit(
        "thirds", "means", "averaged", 2, seed=4, strategy="average", validation_table="thirds"
    )


def test_averaging_is_what_the_single_model_learns(
    bench: Workbench, tables: int, means: int
) -> None:
    """Of several configurations each by itself; the same bits in a replay, whoever is first."""
    run = means
    assert any(f"the mean of {SEGMENTS}" in message for message in bench.messages())
    kinds = (
        "SELECT kind, count(*) FROM cerebro.visit WHERE run_id = %s AND status = 'completed' "
        "GROUP BY kind ORDER BY 1"
    )
    assert bench.rows(kinds, run) == [("average", 2 * 2), ("train", 2 * 2 * SEGMENTS)]
    early = (
        "SELECT FROM cerebro.visit a JOIN cerebro.visit t USING (run_id, mst_key, epoch) WHERE "
        "run_id = %s AND a.kind = 'average' AND t.kind = 'train' AND a.started_at < t.ended_at"
    )
    assert bench.rows(early, run) == [], "a mean is made of what all have left"
    assert (
        bench.value(
            "SELECT count(*) FROM cerebro.leaderboard WHERE run_id = %s AND value IS NOT NULL", run
        )
        == 2
    )
    (ahead,), *_ = bench.rows(
        "SELECT cerebro.plan_fit('thirds', 'averaged', 2, strategy => 'average')"
    )
    (behind,), *_ = bench.rows("SELECT cerebro.plan_of(%s)", run)
    assert "strategy=average" in ahead and "strategy=average" in behind
    assert "expected=" in ahead and "unknown" not in ahead
    text = "SELECT madlib_fit('thirds', 'single', 'models', %s, %s, 'batch_size=8', 2, seed => 4)"
    bench.rows(text, tables, ADAM)
    first = bench.value("SELECT mst_key FROM averaged WHERE compile_params = %s", ADAM)
    assert first == 1, "of which the key is that of a single model, and decides the seed with it"
    assert bytes(bench.value("SELECT model_weights FROM single")) == bench.weights("means")[1]
    again = bench.fit(
        "thirds", "means_again", "averaged", 2, schedule="replay", replay_run=run, workers=1
    )
    assert bench.rows(kinds, again) == bench.rows(kinds, run)
    assert bench.weights("means_again") == bench.weights("means")


def test_copies_hop_among_their_segments(bench: Workbench, tables: int, means: int) -> None:
    """Two of a configuration, of which one has two segments, whichever worker is first."""
    bench.configure("late", [ADAM], ["batch_size=8"], tables)
    bench.messages()
    named = {"seed": 4, "strategy": "late_average", "workers": 2}
    run = bench.fit("thirds", "late_means", "late", 2, validation_table="thirds", **named)
    assert any(
        "the mean of 2, one for each part of the segments" in message
        for message in bench.messages()
    )
    first, second, third = sorted(
        bench.value("SELECT segments FROM cerebro.run_log WHERE run_id = %s", run)
    )
    turns = """
        SELECT v.epoch, array_agg(v.segment_id ORDER BY v.started_at) FILTER (WHERE v.segment_id <>
            %s),
            bool_and(v.started_at >= b.ended_at)
        FROM cerebro.visit v LEFT JOIN cerebro.visit b
            ON (b.run_id, b.epoch, b.segment_id, b.kind) = (v.run_id, v.epoch, %s, 'train')
                AND v.segment_id = %s
        WHERE v.run_id = %s AND v.kind = 'train' GROUP BY v.epoch ORDER BY 1"""
    hops = bench.rows(turns, third, second, first, run)
    assert hops == [(epoch, [second, first], True) for epoch in (1, 2)]
    (ahead,), *_ = bench.rows(
        "SELECT cerebro.plan_fit('thirds', 'late', 2, strategy => 'late_average', workers => 2)"
    )
    (behind,), *_ = bench.rows("SELECT cerebro.plan_of(%s)", run)
    assert "strategy=late_average" in ahead and "strategy=late_average" in behind
    again = bench.fit(
        "thirds", "late_again", "late", 2, schedule="replay", replay_run=run, workers=1
    )
    assert bench.weights("late_again") == bench.weights("late_means")
    assert (
        bench.value("SELECT (spec ->> 'copies')::integer FROM cerebro.run WHERE run_id = %s", again)
        == 2
    )
    with closing(superuser(bench)) as administrator:
        administrator.rows(
            "UPDATE cerebro.run_log SET spec = jsonb_set(spec, '{copies}', '9') WHERE run_id = %s",
            again,
        )
    with pytest.raises(psycopg2.errors.DataCorrupted, match="in 9 copies, on 3 segments"):
        bench.fit("thirds", "refused", "late", 2, schedule="replay", replay_run=again)
    assert bench.weights("means")[1] != bench.weights("late_means")[1], "that has three copies"


def test_the_mean_of_one_copy_is_what_hops(bench: Workbench, tables: int) -> None:
    bench.pack("whole", 1)
    bench.configure("late_one", [ADAM], ["batch_size=8"], tables)
    bench.fit("whole", "one_copy", "late_one", 2, seed=4, strategy="late_average")
    bench.fit("whole", "hopped_one", "late_one", 2, seed=4)
    assert bench.weights("one_copy") == bench.weights("hopped_one")


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["average", "late_average"])
def test_an_interrupted_run_goes_on_averaging(bench: Workbench, tables: int, strategy: str) -> None:
    slower, one, two = (f"{name}_{strategy}" for name in ("slower", "in_one", "in_two"))
    bench.configure(slower, [ADAM], ["batch_size=2,epochs=8"], tables)
    remember(bench, ADAM, 2, threads_per_trainer(SEGMENTS), fastest("graph_loop"))
    whole = bench.fit("thirds", one, slower, LONG, seed=5, strategy=strategy)
    watcher = bench.another()
    done = "SELECT count(*) FROM cerebro.visit WHERE run_id > %s AND status = 'completed'"
    with (
        closing(watcher),
        bench.fitting("thirds", two, slower, LONG, seed=5, strategy=strategy) as fitted,
    ):
        eventually(lambda: watcher.value(done, whole) >= 1)
        watcher.rows("SELECT pg_cancel_backend(%s)", bench.pid())
        with pytest.raises(psycopg2.errors.QueryCanceled):
            fitted.result()
    bench.rows("SELECT cerebro.resume(%s)", bench.newest_run())
    assert bench.weights(two) == bench.weights(one)


@pytest.mark.parametrize(
    ("named", "code", "words"),
    [
        ({"strategy": "wide"}, "22023", "workers => 1"),
        ({"strategy": "task", "schedule": "rotation"}, "22023", "Leave one of the two out"),
        ({"strategy": "average", "schedule": "rotation"}, "22023", "Leave one of the two out"),
        (
            {"strategy": "average", "search": "asha", "validation_table": "thirds"},
            "0A000",
            "Leave one of the two out",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(
    bench: Workbench, named: dict[str, str], code: str, words: str
) -> None:
    before = bench.last_run_id()
    with pytest.raises(psycopg2.Error) as caught:
        bench.fit("thirds", "refused", "two", 2, **named)
    assert (caught.value.pgcode, bench.last_run_id()) == (code, before)
    assert words in str(caught.value)


def test_a_replay_averages_where_the_run_did_that_it_repeats(bench: Workbench, means: int) -> None:
    run = bench.fit("thirds", "in_turns", "two", 1, seed=6, schedule="rotation")
    with pytest.raises(psycopg2.errors.InvalidParameterValue, match="did not average"):
        bench.fit(
            "thirds", "refused", "two", 1, schedule="replay", replay_run=run, strategy="average"
        )
    with pytest.raises(psycopg2.errors.InvalidParameterValue, match="had 'average'"):
        bench.fit(
            "thirds",
            "refused",
            "averaged",
            2,
            schedule="replay",
            replay_run=means,
            strategy="late_average",
        )


def test_it_is_said_where_configurations_hop_all_the_same(bench: Workbench) -> None:
    why = (
        "each trainer has the rows of its own segment"
        if bench.greenplum
        else "not every trainer has room for all rows"
    )
    with setting(bench, "cache_mb", "0"), closing(bench.another()) as fresh:
        run = fresh.fit("thirds", "hopping", "two", 1, workers=2, strategy="task")
        expected = f"strategy 'task' is not followed: configurations hop, for {why}"
        assert any(expected in message for message in fresh.messages())
    assert chosen(bench, run) == "mop"
