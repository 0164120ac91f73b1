"""A version of a model comes out once more, or it is said why it does not."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from roles import another_role, refused
from workbench import Workbench

pytestmark = pytest.mark.long

VISITORS = """
    CREATE TABLE visitors AS
    SELECT n AS id, CASE WHEN n % 7 > 0 THEN 20 + n * 7919 % 50 END AS age, (ARRAY['a', 'b',
        NULL])[n % 3 + 1] AS deck,
           n * 31 % 97 / 10.0 AS fare, n % 3 = 0 OR n * 31 % 97 > 80 AS stayed
    FROM generate_series(1, 400) AS n"""
STATES = (
    "SELECT relname::text FROM pg_class WHERE relnamespace = 'cerebro_state'::regnamespace AND "
    "relkind = 'r'"
)
RUNS = "SELECT run_id, status FROM cerebro.run"
FINDINGS = ["source", "packed rows", "software", "calibration", "state"]


@pytest.fixture(scope="module")
def stayed(bench: Workbench) -> Iterator[str]:
    """A model that several configurations were trained for, of which each keeps its best epoch."""
    bench.rows(VISITORS)
    call = (
        "cerebro.train('visitors', 'stayed', 'stayed', models => '{realmlp_simple, linear}', "
        "refit => 'none', "
        'configs => 2, epochs => 4, workers => 1, costs => \'{"true": {"false": 2}}\')'
    )
    bench.rows(f"SELECT * FROM {call}")
    yield "stayed"
    bench.rows("SELECT cerebro.drop_model('stayed')")


def verify(bench: Workbench, version: str | None = None, model: str = "stayed") -> dict[str, bool]:
    found = bench.rows("SELECT what, ok, detail FROM cerebro.verify(%s, %s)", model, version)
    assert all(detail for _, _, detail in found), found
    return {what: ok for what, ok, _ in found}


def test_a_version_comes_out_once_more_and_nothing_is_left(bench: Workbench, stayed: str) -> None:
    before = sorted(bench.rows(STATES)), sorted(bench.rows(RUNS))
    bench.messages()
    assert verify(bench) == dict.fromkeys(FINDINGS, True)
    assert any("It is removed from the log at its end" in line for line in bench.messages())
    assert (sorted(bench.rows(STATES)), sorted(bench.rows(RUNS))) == before


def test_another_calibration_is_told(
    bench: Workbench, shared_superuser: Workbench, stayed: str
) -> None:
    change = "UPDATE cerebro.version_log SET calibration = %s::jsonb WHERE model = 'stayed'"
    read = "SELECT calibration::text FROM cerebro.version_log WHERE model = 'stayed'"
    calibration = shared_superuser.value(read)
    other = {**json.loads(calibration), "temperature": 3.25}
    shared_superuser.rows(change, json.dumps(other))
    assert verify(bench) == {**dict.fromkeys(FINDINGS, True), "calibration": False}
    shared_superuser.rows(change, json.dumps({"costs": other["costs"]}))
    assert verify(bench) == {what: True for what in FINDINGS if what != "calibration"}
    shared_superuser.rows(change, calibration)


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("fare", "ensemble => 3, configs => 2"),
        ("stayed", "ensemble => 3, configs => 2, metric => 'f1'"),
        ("stayed", "group_by => 'deck', configs => 1, costs => '{\"true\": {\"false\": 2}}'"),
    ],
    ids=["number", "ensemble", "groups"],
)
def test_calibrations_come_out_to_the_bit(
    bench: Workbench, stayed: str, target: str, options: str
) -> None:
    """Of a regression, of an ensemble, and of the model of each group."""
    bench.rows(
        f"SELECT FROM cerebro.train('visitors', '{target}', 'fitted', {options}, "
        "models => '{linear, realmlp_simple}', epochs => 4, workers => 1, seed => 3)"
    )
    found = verify(bench, model="fitted")
    assert all(found.values()), found
    groups = {f"calibration of {group}" for group in "ab" if "group_by" in options}
    assert groups <= found.keys()
    assert target == "stayed" or "calibration" in found
    bench.rows("SELECT cerebro.drop_model('fitted')")


def test_what_cannot_be_verified_is_refused(
    bench: Workbench, shared_superuser: Workbench, stayed: str
) -> None:
    wrong = {
        "NULL": "22004",
        "'nobody'": "42704",
        "'stayed', '2'": "22023",
        "'stayed', 'previous'": "22023",
    }
    for arguments, sqlstate in wrong.items():
        refused(
            bench, f"SELECT * FROM cerebro.verify({arguments})", code=sqlstate, words="verify error"
        )
    with another_role(bench, shared_superuser, "doubter") as doubter:
        refused(doubter, "SELECT * FROM cerebro.verify('stayed')", code="42704")
    bench.rows("BEGIN ISOLATION LEVEL REPEATABLE READ")
    refused(bench, "SELECT * FROM cerebro.verify('stayed')", code="25001")
    bench.rows("ROLLBACK; BEGIN; UPDATE visitors SET fare = 0")
    refused(bench, "SELECT * FROM cerebro.verify('stayed')", code="25001")
    bench.rows("ROLLBACK")


def test_what_has_changed_since_is_told_apart(bench: Workbench, stayed: str) -> None:
    """And what can still be proved is: the packed rows that were kept, or else those of the source,
    have the bits.
    """
    run_id, mst_key = bench.row(
        "SELECT run_id, mst_key FROM cerebro.model_version WHERE version = 1"
    )
    bench.rows("UPDATE visitors SET age = age + 1 WHERE id = 5")
    assert verify(bench, "1") == {**dict.fromkeys(FINDINGS, True), "source": False}
    bench.rows("UPDATE visitors SET age = age - 1 WHERE id = 5")
    for side in ("training", "validation"):
        bench.rows(
            f"DROP TABLE cerebro_state.r{run_id}_{side}, cerebro_state.r{run_id}_{side}_summary"
        )
    assert verify(bench, "1") == {**dict.fromkeys(FINDINGS, True), "packed rows": False}
    changed = "overlay(chunk PLACING '\\x01' FROM length(chunk) - 9)"
    bench.rows(f"UPDATE cerebro_state.r{run_id}_m{mst_key} SET chunk = {changed}")
    assert verify(bench, "1") == {
        **dict.fromkeys(FINDINGS, True),
        "packed rows": False,
        "state": False,
    }
    bench.rows("ALTER TABLE visitors DROP COLUMN fare")
    assert verify(bench, "1") == dict.fromkeys(("source", "packed rows", "state"), False)
    bench.rows("DROP TABLE visitors")
    assert verify(bench, "1") == dict.fromkeys(("source", "packed rows", "state"), False)
    bench.rows(
        "SELECT cerebro.drop_run((SELECT run_id FROM cerebro.model_version WHERE version = 1))"
    )
    refused(
        bench,
        "SELECT * FROM cerebro.verify('stayed', '1')",
        code="55000",
        words="not in the log",
    )
