"""Boosted trees in runs: epochs over all segments, beside networks, in groups, and interrupted."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from itertools import groupby

import pytest
from acts import done, done_at_once, let_end
from processes import eventually, trainers
from roles import refused
from workbench import Row, Workbench

GROUPS = pytest.mark.postgresql("groups are refused on Greenplum")
PROCESSES = pytest.mark.postgresql("trainers on Greenplum belong to processes of segments")
EPOCHS = 3
BLOOMS = """
    CREATE TABLE blooms AS
    SELECT n AS id, (ARRAY['de', 'fr'])[n % 2 + 1] AS country,
        CASE WHEN n % 7 > 0 THEN n * 7919 % 97 / 10.0 END AS height,
        date '2020-01-01' + n * 31 % 400 AS opened,
        (ARRAY['a', 'b', NULL])[n % 3 + 1] AS soil,
        ARRAY[n * 13 % 11, n * 17 % 5]::real[] AS leaf,
        CASE WHEN n * 7919 % 97 > 60 THEN 'red' WHEN n % 3 = 0 THEN 'blue' ELSE 'white' END AS kind
    FROM generate_series(1, 400) AS n;
    ALTER TABLE blooms ADD PRIMARY KEY (id)"""
SPACE = json.dumps({"trees": 1500, "leaves": 5, "min_rows": 3, "class_weight": "auto"})
OPTIONS = (
    f"columns => '* except id', epochs => {EPOCHS}, ensemble => 1, seed => 1, space => '{SPACE}'"
)
VISITS = """
    SELECT mst_key, epoch, segment_id, loss IS NULL, form, worker_pid, status, attempt
    FROM cerebro.visit WHERE run_id = %s AND mst_key = ANY (%s)
    ORDER BY mst_key, visit_no, attempt"""


def call_alone(model: str) -> str:
    """The call that trains one configuration of trees alone."""
    return (
        f"SELECT * FROM cerebro.train('blooms', 'kind', '{model}', models => '{{boosting}}', "
        f"configs => 1, workers => 1, {OPTIONS})"
    )


@pytest.fixture(scope="module", autouse=True)
def blooms(bench: Workbench) -> None:
    bench.rows(BLOOMS)


@pytest.fixture(scope="module")
def grouped(bench: Workbench) -> int:
    """A run of trees and of a network, for all rows and for each country."""
    bench.rows(
        "SELECT * FROM cerebro.train('blooms', 'kind', 'grouped', models => '{linear,boosting}', "
        f"configs => 2, workers => 2, group_by => 'country', min_group_rows => 100, {OPTIONS})"
    )
    return bench.newest_run()


@pytest.fixture(scope="module")
def alone(bench: Workbench) -> int:
    """A run of trees that nothing disturbs."""
    bench.rows(call_alone("alone"))
    return bench.newest_run()


def state_of(bench: Workbench, run: int) -> str:
    """A digest of the state of the version that a run has made of its first configuration."""
    table = f"cerebro_state.r{run}_m1"
    return str(bench.value(f"SELECT md5(string_agg(chunk, '' ORDER BY part)) FROM {table}"))


def check_epochs(visits: list[Row]) -> None:
    """Each epoch visits all segments in order, on one worker; the last visit grows the trees.

    On Greenplum the order ends at the segment of the worker.
    """
    for _, rows in groupby(visits, lambda row: row[:2]):
        epoch = list(rows)
        segments = [row[2] for row in epoch]
        end = segments.index(max(segments)) + 1
        assert [*segments[end:], *segments[:end]] == sorted(set(segments))
        assert [row[3] for row in epoch] == [True] * (len(epoch) - 1) + [False]
        assert {row[4] for row in epoch} == {"trees"} and len({row[5] for row in epoch}) == 1
        assert {row[6:] for row in epoch} == {("completed", 1)}


@GROUPS
def test_trees_learn_from_all_segments_in_each_epoch(bench: Workbench, grouped: int) -> None:
    configs = bench.rows(
        "SELECT mst_key, template, group_value, status FROM cerebro.config WHERE run_id = %s",
        grouped,
    )
    assert {status for *_, status in configs} == {"completed"}
    assert sorted((template, group or "") for _, template, group, _ in configs) == sorted(
        (template, group) for template in ("linear", "boosting") for group in ("", "de", "fr")
    )
    trees = [key for key, template, *_ in configs if template == "boosting"]
    visits = bench.rows(VISITS, grouped, trees)
    check_epochs(visits)
    assert {row[:2] for row in visits} == {
        (key, epoch) for key in trees for epoch in range(1, EPOCHS + 1)
    }
    networks = bench.rows(VISITS, grouped, [key for key, *_ in configs if key not in trees])
    assert not any(row[3] for row in networks) and "trees" not in {row[4] for row in networks}


@GROUPS
def test_trees_of_groups_predict_their_rows(bench: Workbench, grouped: int) -> None:
    rows = bench.rows("SELECT id, prediction FROM cerebro.predict('grouped', 'blooms')")
    assert len(rows) == 400
    kinds: dict[str, str] = dict(bench.rows("SELECT id::text, kind FROM blooms"))
    hits = sum(kinds[str(key)] == prediction for key, prediction in rows)
    assert hits > 300
    for key in ("3", "8"):
        record = bench.value("SELECT to_jsonb(b) FROM blooms b WHERE id::text = %s", key)
        single = bench.value("SELECT cerebro.predict_row('grouped', %s)", json.dumps(record))
        assert single["prediction"] == dict((str(k), p) for k, p in rows)[key]


def test_a_version_of_trees_is_reproduced_to_the_bit(bench: Workbench, alone: int) -> None:
    check_epochs(bench.rows(VISITS, alone, [1]))
    findings = bench.rows("SELECT what, ok, detail FROM cerebro.verify('alone')")
    assert all(ok for _, ok, _ in findings), findings


def test_a_refresh_grows_trees_anew_beside_networks(bench: Workbench) -> None:
    """Trees learn from rows that came later as if they had always been there."""
    bench.rows("CREATE TABLE grown AS SELECT * FROM blooms WHERE id <= 300")
    bench.rows(
        "SELECT * FROM cerebro.train('grown', 'kind', 'grown', models => '{linear,boosting}', "
        f"configs => 2, {OPTIONS.replace('ensemble => 1', 'ensemble => 5')})"
    )
    bench.rows("INSERT INTO grown SELECT * FROM blooms WHERE id > 300")
    members = "SELECT template FROM cerebro.model_member WHERE model = 'grown' AND version = %s"
    assert ("boosting",) in bench.rows(members, 1)
    before = bench.value("SELECT training_rows FROM cerebro.model_version WHERE model = 'grown'")
    run, version, rows = bench.row(
        "SELECT run_id, version, training_rows FROM cerebro.refresh('grown')"
    )
    assert version == 2 and rows > before
    grown = bench.rows(
        "SELECT sum(v.rows) FROM cerebro.visit v JOIN cerebro.config c USING (run_id, mst_key) "
        "WHERE v.run_id = %s AND c.template = 'boosting' GROUP BY v.epoch",
        run,
    )
    assert grown == [(rows,)]  # a tenth of three epochs is one
    findings = bench.rows("SELECT what, ok, detail FROM cerebro.verify('grown', '2')")
    assert all(ok for _, ok, _ in findings), findings


@contextmanager
def paused(
    bench: Workbench, person: Workbench, model: str
) -> Iterator[tuple[int, Future[list[Row]]]]:
    """A run of trees that is paused as soon as it has begun."""
    before = person.last_run_id()
    with bench.calling(lambda: bench.rows(call_alone(model))) as trained:
        eventually(lambda: person.newest_run() > before)
        run = person.newest_run()
        eventually(lambda: person.rows("SELECT FROM cerebro.visit WHERE run_id = %s", run))
        done(person, "pause_run(%s)", run)
        yield run, trained


def find_trainers(person: Workbench, run: int) -> set[int]:
    """The processes of the trainers of a run."""
    query = "SELECT DISTINCT worker_pid FROM cerebro.visit WHERE run_id = %s"
    found = trainers({pid for (pid,) in person.rows(query, run)})
    assert found
    return found


@PROCESSES
def test_a_run_that_is_interrupted_grows_the_same_trees(
    bench: Workbench, person: Workbench, alone: int
) -> None:
    """A clone begins with trees of its own, for those of another configuration stay as they are."""
    with paused(bench, person, "resumed") as (run, trained):
        error = refused(
            person, "SELECT cerebro.clone_config(%s, 1, '{\"leaves\": 6}')", run, code="0A000"
        )
        assert error.diag.message_hint == "Write warm => false: the clone then begins anew."
        let_end(bench, person, run, trained, resumed=True)
    visits = bench.rows(VISITS, run, [1])
    check_epochs(visits)
    assert {row[1] for row in visits} == {1, 2, 3}
    assert state_of(bench, run) == state_of(bench, alone)


def test_acts_on_trees_are_repeated_to_the_bit(bench: Workbench, person: Workbench) -> None:
    """Epochs beyond the planned ones are refused: there is no room for further trees."""
    with paused(bench, person, "steered") as (run, trained):
        more_epochs = f"SELECT cerebro.set_epochs(%s, {EPOCHS + 1}, 1)"
        act = person.value(more_epochs, run)
        status = "SELECT status, reason FROM cerebro.act WHERE act_id = %s"
        eventually(lambda: person.row(status, act)[0] != "scheduled")
        assert person.row(status, act)[0] == "refused"
        assert "with more trees and warm => false" in person.row(status, act)[1]
        fewer_trees = '{"trees": 30, "leaves": 6}'
        calls = [
            f"clone_config(%s, 1, '{fewer_trees}', warm => false)",
            'drill_down(%s, 1, \'{"trees": [30], "leaves": [3, 4]}\')',
            'add_configs(%s, \'{"models": ["linear", "boosting"], "trees": 30}\', configs => 2)',
            f"set_epochs(%s, {EPOCHS - 1}, 1)",
        ]
        done_at_once(person, calls, *[run] * len(calls))
        done(person, "continue_run(%s)", run)
        trained.result()
    configs = bench.rows(
        "SELECT mst_key, template, status, epochs FROM cerebro.config WHERE run_id = %s", run
    )
    assert {status for _, _, status, _ in configs} == {"completed"}
    trees = {key: epochs for key, template, _, epochs in configs if template == "boosting"}
    assert len(trees) >= 4
    visits = bench.rows(VISITS, run, [*trees])
    check_epochs(visits)
    assert {row[:2] for row in visits} == {
        (key, epoch) for key, epochs in trees.items() for epoch in range(1, epochs + 1)
    }
    findings = bench.rows("SELECT what, ok, detail FROM cerebro.verify('steered')")
    assert all(ok for _, ok, _ in findings), findings


@PROCESSES
def test_an_epoch_whose_trainer_dies_is_made_again_as_a_whole(
    bench: Workbench, person: Workbench, alone: int
) -> None:
    before = person.last_run_id()
    with bench.calling(lambda: bench.rows(call_alone("killed"))) as trained:
        eventually(lambda: person.newest_run() > before)
        run = person.newest_run()
        eventually(lambda: person.rows("SELECT FROM cerebro.visit WHERE run_id = %s", run))
        for pid in find_trainers(person, run):
            os.kill(pid, signal.SIGKILL)
        trained.result()
    rows = bench.rows(VISITS, run, [1])
    check_epochs([(*row[:7], 1) for row in rows if row[6] == "completed"])
    first, *others = [row[6:] for row in rows if row[:2] == (1, 1)]
    assert first == ("failed", 1) and {*others} == {("completed", 2)}
    assert state_of(bench, run) == state_of(bench, alone)


def test_an_epoch_that_the_budget_ends_keeps_its_trees(bench: Workbench) -> None:
    bench.rows(
        "CREATE TABLE waves AS SELECT n AS id, sin(n) AS a, n * 7919 % 97 AS b, "
        "sin(n) * (n * 7919 % 97) + n % 13 AS y FROM generate_series(1, 5000) n"
    )
    bench.rows(
        "SELECT * FROM cerebro.train('waves', 'y', 'ended', columns => 'a, b', budget => '8 s', "
        "models => '{boosting}', configs => 1, epochs => 1, seed => 1, refit => 'none', "
        'space => \'{"trees": 20000, "leaves": 63}\')'
    )
    forms = "SELECT form FROM cerebro.visit WHERE run_id = %s AND loss IS NOT NULL"
    (form,) = bench.row(forms, bench.newest_run())
    assert 0 < int(form.removeprefix("trees ")) < 20_000
    findings = bench.rows("SELECT what, ok, detail FROM cerebro.verify('ended')")
    assert all(ok for _, ok, _ in findings), findings


def test_trees_are_left_out_or_refused_if_a_trainer_cannot_hold_the_rows(
    bench: Workbench, shared_superuser: Workbench
) -> None:
    call = "SELECT section, name FROM cerebro.plan('blooms', 'kind', columns => 'height, soil'{})"
    names = [name for section, name in bench.rows(call.format("")) if section == "template"]
    assert names[:2] == ["linear", "boosting"]
    shared_superuser.rows("SELECT cerebro.set('cache_mb', 0)")
    try:
        bench.messages()
        names = [name for section, name in bench.rows(call.format("")) if section == "template"]
        assert "boosting" not in names and "linear" in names
        (notice,) = (text for text in bench.messages() if "boosting" in text)
        assert "template boosting is left out: boosted trees learn from all rows" in notice
        assert "raises cache_mb" in notice
        named = call.format(", models => '{boosting}'")
        error = refused(bench, named, code="53200", words="a trainer has 0 MB for rows")
        assert "Leave boosting out of models." in str(error.diag.message_hint)
    finally:
        shared_superuser.rows("SELECT cerebro.set('cache_mb', NULL)")
    texts = "CREATE TABLE letters AS SELECT n AS y, repeat(n || ' is a word of many ', 9) AS x "
    bench.rows(f"{texts} FROM generate_series(1, 60) n")
    refused(
        bench,
        "SELECT * FROM cerebro.plan('letters', 'y', types => '{\"x\": \"text\"}', "
        "models => '{boosting}', task => 'regression')",
        code="22023",
        words="other than texts and images",
    )
    refused(
        bench,
        call.format(", models => '{boosting}', search => 'pbt', epochs => 9"),
        code="0A000",
        words="boosted trees keep theirs",
    )


@pytest.mark.long
def test_trees_learn_from_a_sample_if_a_trainer_cannot_hold_all_rows(
    bench: Workbench, shared_superuser: Workbench
) -> None:
    bench.rows(
        "CREATE TABLE many AS SELECT n AS id, n * 7919 % 97 AS y, "
        "array_fill((n * 7919 % 97)::real, ARRAY[30]) AS x FROM generate_series(1, 250000) AS n"
    )
    shared_superuser.rows("SELECT cerebro.set('cache_mb', 24)")
    bench.messages()
    try:
        bench.rows(
            "SELECT * FROM cerebro.train('many', 'y', 'sampled', models => '{linear,boosting}', "
            "task => 'regression', columns => '* except id', configs => 2, epochs => 2, "
            "ensemble => 1, seed => 1, refit => 'none', space => '{\"trees\": 40}')"
        )
        findings = bench.rows("SELECT what, ok, detail FROM cerebro.verify('sampled')")
    finally:
        shared_superuser.rows("SELECT cerebro.set('cache_mb', NULL)")
    assert all(ok for _, ok, _ in findings), findings
    (notice,) = (text for text in bench.messages() if "template boosting learns" in text)
    assert "a trainer has 25 MB for rows" in notice
    rows: dict[str, int] = dict(
        bench.rows(
            "SELECT c.template, max(e.rows) FROM (SELECT run_id, mst_key, epoch, sum(rows) AS rows "
            "FROM cerebro.visit WHERE run_id = %s GROUP BY 1, 2, 3) e "
            "JOIN cerebro.config c USING (run_id, mst_key) GROUP BY 1",
            bench.value("SELECT min(run_id) FROM cerebro.model_version WHERE model = 'sampled'"),
        )
    )
    assert 10_000 <= rows["boosting"] < rows["linear"] / 2
