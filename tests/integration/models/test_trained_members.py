"""An ensemble of cerebro.train: its members are reproduced, trained further, and started from."""

from __future__ import annotations

import json

import pytest
from workbench import Workbench

SHIPS = """
    CREATE TABLE ships AS
    SELECT n AS id, n * 7919 % 101 AS length, (ARRAY['sail', 'motor', NULL])[n % 3 + 1] AS kind,
           (n * 7919 % 101 + n * 31 % 89) * 10.5 AS price
    FROM generate_series(1, 300) n;
    ALTER TABLE ships ADD PRIMARY KEY (id)"""
MEMBERS = (
    "SELECT mst_key, template, share FROM cerebro.model_member WHERE model = 'ships' AND version = "
    "%s ORDER BY position"
)


@pytest.fixture(scope="module")
def ships(bench: Workbench) -> Workbench:
    """The session of the owner of an ensemble."""
    bench.rows(SHIPS)
    bench.rows(
        "SELECT FROM cerebro.train('ships', 'price', 'ships', models => '{linear, realmlp_simple}',"
        " configs => 3, epochs => 6, ensemble => 4, seed => 2, columns => 'length, kind',"
        " refit => 'none')"
    )
    assert len(bench.rows(MEMBERS, 1)) > 1
    return bench


def test_the_members_of_a_version_are_listed(ships: Workbench) -> None:
    members = ships.rows(MEMBERS, 1)
    assert sum(share for *_, share in members) == pytest.approx(1)
    version = "SELECT template, mst_key, params FROM cerebro.model_version WHERE model = 'ships'"
    template, first_key, params = ships.row(version)
    assert (template, first_key) == ("ensemble", members[0][0])
    assert params == {
        "members": [
            {"mst_key": mst_key, "template": template, "share": share}
            for mst_key, template, share in members
        ]
    }
    logged = "SELECT template FROM cerebro.config WHERE run_id = %s AND mst_key = %s"
    run_id = ships.value("SELECT run_id FROM cerebro.model_version WHERE model = 'ships'")
    for mst_key, template, _ in members:
        assert ships.value(logged, run_id, mst_key) == template


def test_the_state_of_each_member_comes_out_once_more(ships: Workbench) -> None:
    query = "SELECT what, ok FROM cerebro.verify('ships', '1')"
    findings: dict[str, bool] = dict(ships.rows(query))
    states = [f"state of member {number}" for number, _ in enumerate(ships.rows(MEMBERS, 1), 1)]
    names = ["source", "packed rows", "software", "calibration", *states]
    assert findings == dict.fromkeys(names, True)


def test_a_run_starts_from_the_best_member(ships: Workbench) -> None:
    (_, template, _), *_ = ships.rows(MEMBERS, 1)
    planned = ships.rows(
        "SELECT what, why FROM cerebro.plan('ships', 'price', start_from => '{ships}', configs => 1"
        ") WHERE section = 'configuration'"
    )
    assert len(planned) == 1
    assert template in json.dumps(planned) and "model ships" in json.dumps(planned)


@pytest.mark.long
def test_all_members_continue(ships: Workbench) -> None:
    keys = {mst_key for mst_key, *_ in ships.rows(MEMBERS, 1)}
    run_id, version = ships.row("SELECT run_id, version FROM cerebro.refresh('ships', epochs => 1)")
    assert version == 2
    configs = ships.rows("SELECT mst_key FROM cerebro.config WHERE run_id = %s", run_id)
    assert {mst_key for (mst_key,) in configs} == keys
    assert {mst_key for mst_key, *_ in ships.rows(MEMBERS, 2)} <= keys
    findings: dict[str, bool] = dict(
        ships.rows("SELECT what, ok FROM cerebro.verify('ships', '2')")
    )
    assert all(findings.values()) and any(what.startswith("state") for what in findings)
