"""A model for each group of rows, in one run: trained over the rows of the group alone, and asked
for those.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import keras
import numpy as np
import psycopg2
import pytest
from processes import eventually
from roles import another_role, own_schema, refused
from shops import columns
from workbench import Workbench

import cerebro_db
from cerebro_db.export.recipe.rows import RawRows

pytestmark = pytest.mark.postgresql("on Greenplum group_by is refused")

SALES = """
    CREATE TABLE sales AS
    SELECT n AS id, g.country, x.price, n * 31 % 7 AS day, (ARRAY['a', 'b',
        NULL])[n % 3 + 1] AS kind,
           (CASE g.country WHEN 'de' THEN 1 WHEN 'fr' THEN -1 ELSE 0.2 END * x.price + n * 31 %
               7)::real AS amount
    FROM generate_series(1, 600) AS n, LATERAL (SELECT n * 7919 % 101 / 10.0 AS price) x,
         LATERAL (SELECT CASE WHEN n % 2 = 0 THEN 'de' WHEN n % 3 > 0 THEN 'fr' WHEN n % 5 > 0 THEN
             'it'
                              WHEN n % 7 > 0 THEN 'lu' END AS country) g"""
ARGUMENTS = """models => '{linear}', space => '{"batch_size": 32}', configs => 2, epochs => 4,
        ensemble => 1,
    seed => 1, workers => 1, group_by => 'country', min_group_rows => 100"""
OWN = ["de", "fr"]


@pytest.fixture(scope="module")
def sales(bench: Workbench) -> int:
    bench.rows(SALES)
    (run_id, *_), *_ = bench.rows(f"SELECT * FROM cerebro.train('sales', 'amount', {ARGUMENTS})")
    return int(run_id)


def bits(bench: Workbench, run_id: int) -> list[tuple[object, ...]]:
    """Digests of the states of the groups' models that a run has made."""
    keys = bench.rows(
        "SELECT group_value, mst_key FROM cerebro.model_group WHERE run_id = %s ORDER BY 1", run_id
    )
    digest = "SELECT md5(string_agg(chunk, '' ORDER BY part)) FROM cerebro_state.r{}_m{}"
    return [(group, key, bench.value(digest.format(run_id, key))) for group, key in keys]


def test_each_group_has_the_best_of_its_own_selection(bench: Workbench, sales: int) -> None:
    said = "".join(bench.messages())
    assert (
        "for all rows and for 2 groups by country" in said
        and "2 values of country have fewer than 100" in said
    )
    board = bench.rows(
        "SELECT group_value, rank, mst_key, value FROM cerebro.leaderboard WHERE run_id = %s "
        "ORDER BY 1, 2",
        sales,
    )
    assert [(group, rank) for group, rank, _, _ in board] == [
        (g, r) for g in [*OWN, None] for r in (1, 2)
    ]
    best = {group: (key, value) for group, rank, key, value in board if rank == 1}
    found = bench.rows(
        "SELECT group_value, mst_key, value, deployed, margin FROM cerebro.model_group ORDER BY 1"
    )
    assert [(row[0], (row[1], row[2])) for row in found] == [(group, best[group]) for group in OWN]
    assert all(deployed and margin > 0 for *_, deployed, margin in found)
    assert bench.row("SELECT mst_key, group_by FROM cerebro.model_version") == (
        best[None][0],
        "country",
    )


def test_a_configuration_of_a_group_sees_its_rows_once_an_epoch_and_no_others(
    bench: Workbench, sales: int
) -> None:
    seen = """
        SELECT c.group_value, sum(t.rows) FILTER (WHERE t.kind = 'train'),
            sum(t.rows) FILTER (WHERE t.kind <> 'train')
        FROM cerebro.config_log c JOIN (
            SELECT run_id, mst_key, epoch, rows, kind FROM cerebro.visit WHERE status = 'completed'
            UNION ALL SELECT run_id, mst_key, epoch, rows, 'evaluate' FROM cerebro.evaluation
                WHERE status = 'completed'
        ) t USING (run_id, mst_key) WHERE run_id = %s AND t.epoch = 4 GROUP BY 1"""
    rows = {group: (training, both) for group, training, both in bench.rows(seen, sales)}
    spec = bench.value("SELECT spec -> 'train' FROM cerebro.run WHERE run_id = %s", sales)
    counts: dict[str, int] = dict(bench.rows("SELECT country, count(*) FROM sales GROUP BY 1"))
    for group, place in spec["groups"].items():
        assert rows[group] == (2 * sum(place[0]), 2 * counts[group]), (
            "two configurations, and both sides are evaluated"
        )
    assert rows[None] == (2 * spec["training_rows"], 2 * sum(counts.values()))
    visited = bench.rows(
        """SELECT c.segments, array_agg(DISTINCT v.segment_id ORDER BY v.segment_id), count(*)
           FROM cerebro.config_log c JOIN cerebro.visit v USING (run_id, mst_key)
           WHERE c.run_id = %s AND c.group_value IS NOT NULL GROUP BY c.mst_key, c.segments""",
        sales,
    )
    assert all(own == found and count == 4 * len(own) for own, found, count in visited)
    done, total = bench.row(
        "SELECT visits_done, visits_total FROM cerebro.progress WHERE run_id = %s", sales
    )
    assert (
        done == total == bench.value("SELECT count(*) FROM cerebro.visit WHERE run_id = %s", sales)
    )


def test_rows_that_were_trained_on_are_evaluated_after_every_fourth_epoch(
    bench: Workbench, sales: int
) -> None:
    """Those held back after each one; of a model the leaderboard has what was known when it came
    about.
    """
    evaluated = """
        SELECT group_value, dataset, array_agg(DISTINCT epoch ORDER BY epoch) FROM cerebro.metric
        JOIN cerebro.config USING (run_id, mst_key) WHERE run_id = %s GROUP BY 1, 2 ORDER BY 1, 2"""
    sides = ("training", [4]), ("validation", [1, 2, 3, 4])
    assert bench.rows(evaluated, sales) == [
        (group, *side) for group in (*OWN, None) for side in sides
    ]
    seen = """
        SELECT c.group_value, sum(e.rows) FROM cerebro.evaluation e JOIN cerebro.config c
            USING (run_id, mst_key)
        WHERE run_id = %s AND e.epoch = 2 AND e.status = 'completed' GROUP BY 1"""
    groups = bench.value(
        "SELECT spec -> 'train' -> 'groups' FROM cerebro.run WHERE run_id = %s", sales
    )
    counts: dict[str, int] = dict(bench.rows("SELECT country, count(*) FROM sales GROUP BY 1"))
    held_back = {group: 2 * (counts[group] - sum(place[0])) for group, place in groups.items()}
    assert {group: rows for group, rows in bench.rows(seen, sales) if group} == held_back
    known = """
        SELECT bool_and((l.training IS NULL) = (c.best_epoch < 4)),
            bool_and(l.validation IS NOT NULL)
        FROM cerebro.leaderboard l JOIN cerebro.config c USING (run_id, mst_key)
            WHERE run_id = %s"""
    assert bench.row(known, sales) == (True, True)


def test_rows_are_predicted_by_the_model_of_their_group(bench: Workbench, sales: int) -> None:
    bench.messages()
    query = """SELECT s.country, p.prediction, p.upper::numeric - p.prediction::numeric AS margin,
        to_jsonb(s)::text
               FROM cerebro.predict('sales_amount', 'sales', id_col => 'id') p JOIN sales s
                   ON s.id = p.id::int"""
    found = bench.rows(query)
    others = bench.value(
        "SELECT count(*) FROM sales WHERE country NOT IN ('de', 'fr') OR country IS NULL"
    )
    assert len(found) == 600 and f"{others} rows have no model of their own by country" in "".join(
        bench.messages()
    )
    margins: dict[str | None, float] = dict(
        bench.rows("SELECT group_value, margin FROM cerebro.model_group")
    )
    margins[None] = bench.value("SELECT margin FROM cerebro.model_version")
    for country, prediction, margin, record in (
        found[::40] + [row for row in found if row[0] in ("lu", None)][:4]
    ):
        assert float(margin) == pytest.approx(
            margins[country if country in OWN else None], rel=1e-3
        )
        alone = bench.value("SELECT cerebro.predict_row('sales_amount', %s::jsonb)", record)
        assert float(alone["prediction"]) == pytest.approx(float(prediction), rel=1e-4, abs=1e-4)
    whole: dict[str, float] = dict(
        bench.rows(
            "SELECT metric, value FROM cerebro.evaluate('sales_amount', 'sales') WHERE "
            "group_values IS NULL"
        )
    )
    rmse = """SELECT sqrt(avg((p.prediction::float8 - s.amount) ^ 2))
              FROM cerebro.predict('sales_amount', 'sales', 'id') p JOIN sales s
                  ON s.id = p.id::int"""
    assert whole["rmse"] == pytest.approx(bench.value(rmse), rel=1e-4)
    ids = {
        row[0]
        for row in bench.rows("SELECT id FROM cerebro.attribution('sales_amount', 'sales', 'id')")
    }
    assert len(ids) == 600


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_the_model_of_each_group_is_exported_by_its_name(
    bench: Workbench, sales: int, tmp_path: Path
) -> None:
    """And without a name that of all rows, which predicts those of groups that have none."""
    with cerebro_db.connect(bench.url) as session:
        for group, where in [
            *((name, f"country = '{name}'") for name in OWN),
            (None, "country = 'lu'"),
        ]:
            path, beside = session.export_keras(
                "sales_amount", tmp_path / f"{group}.keras", group=group
            )
            rows = RawRows.of(beside.read_text())
            given = columns(
                bench, f"sales WHERE {where}", [each["column"] for each in rows.features]
            )
            told = rows.answers(
                keras.saving.load_model(path).predict(rows.inputs(given), verbose=0)
            )
            said = bench.rows(
                "SELECT p.prediction::float8, p.lower, p.upper"
                " FROM cerebro.predict('sales_amount', 'sales', id_col => 'id')"
                f" p JOIN sales s ON s.id = p.id::int WHERE {where} ORDER BY s.id"
            )
            assert np.allclose(
                np.array(said).T, [told.prediction, told.lower, told.upper], rtol=1e-6, atol=1e-5
            )
        with pytest.raises(cerebro_db.errors.UndefinedObject, match="no model of group 'lu'"):
            session.export_keras("sales_amount", tmp_path / "lu.keras", group="lu")


def test_who_was_granted_the_model_has_those_of_groups_and_not_their_names(
    bench: Workbench, sales: int, shared_superuser: Workbench
) -> None:
    bench.rows("GRANT SELECT ON sales TO PUBLIC")
    with another_role(bench, shared_superuser, "reseller") as reseller:
        own_schema(shared_superuser, "reseller")
        reseller.rows(
            "CREATE TABLE reseller.mine AS TABLE sales; SET search_path = reseller, madlib"
        )
        bench.rows("SELECT cerebro.grant_predict('sales_amount', 'reseller')")
        query = """SELECT prediction::float8, lower::float8, upper::float8
                   FROM cerebro.predict('sales_amount', %s, 'id', owner => 'cerebro')
                       ORDER BY id::int"""
        bench.messages()
        for one, other in zip(
            reseller.rows(query, "mine"), bench.rows(query, "sales"), strict=True
        ):
            assert one == pytest.approx(other, rel=1e-4, abs=1e-4), (
                "other rows are in its batch, or it is the same"
            )
        assert reseller.messages() == bench.messages() != []
        row = (
            "SELECT cerebro.predict_row('sales_amount', to_jsonb(t), 'cerebro') FROM {} t WHERE "
            "id < 20 ORDER BY id"
        )
        assert reseller.rows(row.format("mine")) == bench.rows(row.format("sales"))
        outline = json.dumps(reseller.value("SELECT outline FROM cerebro.model_grant"))
        assert '"country"' in outline and not any(f'"{name}"' in outline for name in OWN)
        for table in (
            "group_log",
            "member_log",
            "grant_log",
            "grant_state",
            "model_group",
            "model_version",
        ):
            assert reseller.rows(f"SELECT * FROM cerebro.{table}") == []
        refused(reseller, "SELECT cerebro_internal.sealed_version()", code="42501")
        bench.rows("SELECT cerebro.revoke_predict('sales_amount', 'reseller')")
        assert not bench.rows("SELECT FROM cerebro.grant_state")
        refused(reseller, row.format("mine"), code="42704")


def cancelled(bench: Workbench, call: str, moment: str) -> int:
    """The run of a call that is cancelled once a query about runs after the newest one is true."""
    watcher, before = bench.another(), bench.last_run_id()
    with bench.calling(lambda: bench.rows(call)) as called:
        eventually(lambda: watcher.value(moment, before))
        run_id = watcher.newest_run()
        watcher.rows("SELECT cerebro.cancel(%s)", run_id)
        with pytest.raises(psycopg2.errors.QueryCanceled):
            called.result()
    watcher.close()
    return run_id


@pytest.mark.long
def test_a_run_that_was_cancelled_goes_on_to_the_bits_of_one_that_was_not(
    bench: Workbench, sales: int
) -> None:
    visits = "SELECT count(*) > 0 FROM cerebro.visit WHERE run_id > %s AND status = 'completed'"
    arguments = ARGUMENTS.replace("ensemble", "model => 'again', ensemble")
    run_id = cancelled(bench, f"SELECT cerebro.train('sales', 'amount', {arguments})", visits)
    bench.rows("SELECT cerebro.resume(%s)", run_id)
    assert bits(bench, run_id) == bits(bench, sales)
    bench.rows("SELECT cerebro.drop_model('again')")
    left = bench.rows("SELECT relname FROM pg_class WHERE relname ~ %s", f"^r{run_id}_m")
    assert not left and not bench.rows("SELECT FROM cerebro.model_group WHERE model = 'again'")


def test_classes_count_alike_within_each_group(bench: Workbench) -> None:
    """The log of a run says so from its beginning on: it need not train."""
    bench.rows("""CREATE TABLE visits AS SELECT n AS id,
        CASE WHEN n % 2 = 0 THEN 'de' ELSE 'fr' END AS country,
                  n * 7919 % 101 AS price, CASE WHEN n % 14 = 0
                      OR n % 6 = 1 THEN 'yes' ELSE 'no' END AS bought
                  FROM generate_series(1, 400) AS n""")
    arguments = """models => '{linear}', configs => 1, epochs => 1, ensemble => 1, seed => 1,
        workers => 1,
        group_by => 'country', min_group_rows => 50, space => '{"class_weight": "auto"}'"""
    call = f"SELECT * FROM cerebro.train('visits', 'bought', background => true, {arguments})"
    ((run_id, *_), *_) = bench.rows(call)
    bench.rows("SELECT cerebro.cancel(%s)", run_id)
    bench.rows("SELECT cerebro.wait(%s)", run_id)
    spec = bench.value("SELECT spec -> 'train' FROM cerebro.run WHERE run_id = %s", run_id)
    counts = {group: place[-1] for group, place in spec["groups"].items()} | {None: spec["counts"]}
    assert [sum(pair) for pair in zip(counts["de"], counts["fr"], strict=True)] == counts[None]
    texts = bench.rows(
        "SELECT group_value, fit_params FROM cerebro.config_log WHERE run_id = %s", run_id
    )
    for group, text in texts:
        ((no, yes),) = re.findall(r"class_weight=\{0: ([0-9.]+), 1: ([0-9.]+)\}", text)
        assert float(no) * counts[group][0] == pytest.approx(
            float(yes) * counts[group][1], rel=1e-3
        )
        assert float(no) * counts[group][0] == pytest.approx(sum(counts[group]) / 2, rel=1e-3)
    assert len({text for _, text in texts}) == 3


@pytest.mark.long
def test_a_search_decides_for_each_group(bench: Workbench, sales: int) -> None:
    arguments = ARGUMENTS.replace(
        "configs => 2", "configs => 3, search => 'halving', search_params => '{\"eta\": 2}'"
    )
    ((run_id, *_), *_) = bench.rows(
        f"SELECT * FROM cerebro.train('sales', 'amount', model => 'halved', {arguments})"
    )
    limits = bench.rows(
        """SELECT c.group_value, array_agg(d.last_epoch ORDER BY d.last_epoch)
           FROM (SELECT mst_key, max(last_epoch) AS last_epoch FROM cerebro.decision
               WHERE run_id = %s GROUP BY 1) d
           JOIN cerebro.config c USING (mst_key) WHERE c.run_id = %s GROUP BY 1 ORDER BY 1""",
        run_id,
        run_id,
    )
    assert [group for group, _ in limits] == [*OWN, None]
    assert all(epochs == [1, 1, 4] for _, epochs in limits), limits
    bench.rows("SELECT cerebro.drop_model('halved')")


SAMPLED = """models => '{linear}', space => '{"batch_size": 32}', epochs => 1, ensemble => 1,
        seed => 1,
    workers => 1, group_by => 'country', min_group_rows => 100, search => 'tpe'"""
DRAWN = """SELECT group_value, mst_key, source, point::text, compile_params FROM cerebro.config_log
    WHERE run_id = %s AND mst_key IN (SELECT mst_key FROM cerebro.config_log WHERE run_id = %s)
        ORDER BY mst_key"""


@pytest.fixture(scope="module")
def sampled(bench: Workbench, sales: int) -> int:
    """A run in which two groups draw configurations, beside those that they begin with."""
    ((run_id, *_), *_) = bench.rows(
        f"SELECT * FROM cerebro.train('sales', 'amount', model => 's', configs => 4, {SAMPLED})"
    )
    return int(run_id)


@pytest.mark.long
def test_each_group_draws_configurations_of_its_own(bench: Workbench, sampled: int) -> None:
    counts = """SELECT group_value, count(*), count(*) FILTER (WHERE source = 'search'),
        count(DISTINCT point::text)
                FILTER (WHERE source = 'search') FROM cerebro.config_log WHERE run_id = %s
                    GROUP BY 1 ORDER BY 1"""
    found = bench.rows(counts, sampled)
    assert [group for group, *_ in found] == ["de", "fr", None]
    assert {total for _, total, *_ in found} == {4} and all(
        1 <= drawn == several for *_, drawn, several in found
    )
    board = bench.rows(
        "SELECT group_value, max(rank) FROM cerebro.leaderboard WHERE run_id = %s GROUP BY 1",
        sampled,
    )
    assert dict(board) == dict.fromkeys(["de", "fr", None], 4)


@pytest.mark.long
def test_what_a_resumed_run_draws_is_what_it_would_have_drawn(
    bench: Workbench, sampled: int
) -> None:
    drawn = "SELECT count(*) > 1 FROM cerebro.config_log WHERE run_id > %s AND source = 'search'"
    run_id = cancelled(
        bench,
        f"SELECT cerebro.train('sales', 'amount', model => 't', configs => 4, {SAMPLED})",
        drawn,
    )
    bench.rows("SELECT cerebro.resume(%s)", run_id)
    assert bench.rows(DRAWN, run_id, run_id) == bench.rows(DRAWN, sampled, sampled)
    assert bits(bench, run_id) == bits(bench, sampled)


@pytest.mark.parametrize(
    ("arguments", "state", "said"),
    [
        ("group_by => 'nation'", "42703", "no column 'nation', which group_by names"),
        ("group_by => 'amount'", "22023", "which is the target"),
        ("group_by => 'price'", "42804", "of type numeric; expected texts"),
        ("min_group_rows => 5", "22023", "there is no group_by"),
        ("group_by => 'country', min_group_rows => 0", "22023", "min_group_rows"),
        (
            "group_by => 'country', min_group_rows => 5000",
            "22023",
            "none of its 4 values has 5000 training rows",
        ),
    ],
)
def test_wrong_calls_are_refused(
    bench: Workbench, sales: int, arguments: str, state: str, said: str
) -> None:
    tables = (
        "SELECT relname FROM pg_class WHERE relname ~ '^r[0-9]+_(training|validation)$' ORDER BY 1"
    )
    before = bench.rows(tables)
    for function in ("plan", "train"):
        call = f"SELECT cerebro.{function}('sales', 'amount', model => 'wrong', {arguments})"
        refused(bench, call, code=state, words=said)
    assert bench.rows(tables) == before


def test_what_is_not_there_for_groups_says_so(bench: Workbench, sales: int) -> None:
    for statement, said in {
        "SELECT cerebro.refresh('sales_amount')": "models of groups by country",
    }.items():
        refused(bench, statement, code="0A000", words=said)
    bench.rows("CREATE VIEW nowhere AS SELECT id, price, day, kind, amount FROM sales")
    refused(
        bench,
        "SELECT * FROM cerebro.predict('sales_amount', 'nowhere')",
        code="42703",
        words="country",
    )


def test_models_of_groups_come_out_once_more(bench: Workbench, sales: int) -> None:
    findings = "SELECT what, ok FROM cerebro.verify('sales_amount')"
    expected = [
        "source",
        "packed rows",
        "software",
        *(f"calibration of {group}" for group in OWN),
        "calibration",
        *(f"state of {group}" for group in OWN),
        "state",
    ]
    assert bench.rows(findings) == [(what, True) for what in expected]
    for side in ("training", "validation"):
        bench.rows(
            f"DROP TABLE cerebro_state.r{sales}_{side}, cerebro_state.r{sales}_{side}_summary"
        )
    assert bench.rows(findings) == [(what, what != "packed rows") for what in expected]
    key = bench.value(
        "SELECT mst_key FROM cerebro.model_group WHERE run_id = %s AND group_value = 'fr'", sales
    )
    changed = "overlay(chunk PLACING '\\x01' FROM length(chunk) - 9)"
    bench.rows(f"UPDATE cerebro_state.r{sales}_m{key} SET chunk = {changed}")
    assert bench.rows(findings) == [
        (what, what not in ("packed rows", "state of fr")) for what in expected
    ]


def test_the_plan_says_what_is_tried_for_which_groups(bench: Workbench, sales: int) -> None:
    plan = (
        f"SELECT name, data FROM cerebro.plan('sales', 'amount', {ARGUMENTS}) WHERE section = "
        "'group'"
    )
    *own, (_, others) = bench.rows(plan)
    counts: dict[str, int] = dict(bench.rows("SELECT country, count(*) FROM sales GROUP BY 1"))
    assert {name: sum(data["rows"]) for name, data in own} == {name: counts[name] for name in OWN}
    assert others["small"] == 2
