"""A model of numbers learns their distances from one another, however far they are from 0.

Each table is trained on twice: as it is, and with a target that is a multiple of it plus a
constant. Networks are the same to the bit, and all that is reported is in the units of the target.
"""

from __future__ import annotations

import json
from typing import Any

import psycopg2
import pytest
from roles import another_role
from workbench import Workbench

QUICK = "models => '{linear}', configs => 1, epochs => 3, ensemble => 1, seed => 1, refit => 'none'"
TABLE = """
    CREATE TABLE trips AS
    SELECT n AS id, n % 101 AS distance, n % 4 = 0 AS held, n * 37 % 11 * 3 + n % 101 * 10 AS near
    FROM generate_series(1, 600) n;
    ALTER TABLE trips ADD PRIMARY KEY (id);
    ALTER TABLE trips ADD far integer, ADD large bigint;
    UPDATE trips SET far = near * 4 + 1700000000, large = near::bigint * 4096 + (1::bigint << 60);
    ANALYZE trips;
    CREATE VIEW held_back AS SELECT * FROM trips WHERE held"""
UNITS = {"near": 1, "far": 4, "large": 4096}
ZEROS = {"near": 0, "far": 1_700_000_000, "large": 1 << 60}
STEPS = {"near": 1e-12, "far": 2**-21, "large": 2**8}
"""About the distance of two doubles there."""
TARGETS = pytest.mark.parametrize("target", ["far", "large"])


@pytest.fixture(scope="module")
def trips(bench: Workbench) -> Workbench:
    """A session with a model of each target, by the name of the target."""
    bench.rows(TABLE)
    for target in UNITS:
        train(bench, target)
    return bench


def train(bench: Workbench, target: str, more: str = QUICK) -> None:
    bench.rows(
        "SELECT FROM cerebro.train('trips', %s, %s, task => 'regression', columns => 'distance', "
        f"split => 'column held', {more})",
        target,
        target,
    )


def read_version(bench: Workbench, target: str) -> dict[str, Any]:
    return dict(
        bench.value(
            "SELECT to_jsonb(v) FROM cerebro.version_log v WHERE model = %s AND version = 1", target
        )
    )


def read_weights(bench: Workbench, target: str) -> list[bytes]:
    version = read_version(bench, target)
    table = f'cerebro_state."r{version["run_id"]}_m{version["mst_key"]}"'
    return [bytes(chunk) for (chunk,) in bench.rows(f"SELECT chunk FROM {table} ORDER BY part")]


def predict(bench: Workbench, target: str, source: str = "held_back") -> list[tuple[float, float]]:
    """Return the lower and the upper end of each prediction, which are not rounded."""
    return bench.rows(
        "SELECT lower, upper FROM cerebro.predict(%s, %s, 'id') ORDER BY id::integer",
        target,
        source,
    )


def expect(target: str, number: float) -> Any:
    """Return the number of a target that stands for one of `near`, as a double."""
    tolerance = 4 * STEPS[target] + 1e-9 * UNITS[target]
    return pytest.approx(number * UNITS[target] + ZEROS[target], rel=0, abs=tolerance)


@TARGETS
def test_weights_have_the_same_bits(trips: Workbench, target: str) -> None:
    assert read_weights(trips, target) == read_weights(trips, "near")


@TARGETS
def test_predictions_are_moved_and_multiplied(trips: Workbench, target: str) -> None:
    expected = predict(trips, "near")
    assert len(expected) == 150 and len(set(expected)) > 20
    for found, bounds in zip(predict(trips, target), expected, strict=True):
        assert found == tuple(expect(target, bound) for bound in bounds)


@TARGETS
def test_a_row_is_predicted_as_in_its_table(trips: Workbench, target: str) -> None:
    record = trips.value("SELECT to_jsonb(t) FROM trips t WHERE id = 8")
    answer = trips.value("SELECT cerebro.predict_row(%s, %s::jsonb)", target, json.dumps(record))
    assert (float(answer["lower"]), float(answer["upper"])) == predict(trips, target)[1]


@TARGETS
def test_what_is_logged_is_in_the_units_of_the_target(trips: Workbench, target: str) -> None:
    """Losses are squares, the metrics of all epochs and the margin are not."""
    unit = UNITS[target]
    expected = read_version(trips, "near")
    found = read_version(trips, target)
    for name in ("value", "margin"):
        assert found[name] == pytest.approx(expected[name] * unit, rel=1e-6, abs=2 * STEPS[target])
    importance = [value and value * unit for value in expected["importance"]]
    assert found["importance"] == pytest.approx(importance, rel=1e-6, abs=2 * STEPS[target])
    query = "SELECT epoch, dataset, name, value FROM cerebro.metric WHERE run_id = %s ORDER BY 1, 2"
    metrics = trips.rows(f"{query}, 3", expected["run_id"])
    assert {name for _, _, name, _ in metrics} == {"loss", "root_mean_squared_error"}
    assert trips.rows(f"{query}, 3", found["run_id"]) == [
        (epoch, dataset, name, pytest.approx(value * (unit**2 if name == "loss" else unit)))
        for epoch, dataset, name, value in metrics
    ]
    losses = (
        "SELECT loss FROM cerebro.visit WHERE run_id = %s AND kind = 'train' "
        "ORDER BY epoch, segment_id"
    )
    assert trips.rows(losses, found["run_id"]) == [
        (pytest.approx(loss * unit**2),) for (loss,) in trips.rows(losses, expected["run_id"])
    ]


@pytest.mark.parametrize("target", UNITS)
def test_rows_that_were_held_back_are_evaluated_as_the_leaderboard_says(
    trips: Workbench, target: str
) -> None:
    metrics: dict[str, float] = dict(
        trips.rows("SELECT metric, value FROM cerebro.evaluate(%s, 'held_back')", target)
    )
    value = read_version(trips, target)["value"]
    assert metrics["rmse"] == pytest.approx(value, rel=1e-6, abs=2 * STEPS[target])
    assert metrics["coverage"] >= 0.9


@TARGETS
def test_explanations_are_in_the_units_of_the_target(trips: Workbench, target: str) -> None:
    unit = UNITS[target]
    for query in (
        "SELECT importance FROM cerebro.importance(%s, 'held_back')",
        "SELECT attribution FROM cerebro.attribution(%s, 'held_back', 'id') ORDER BY id, 1",
    ):
        expected = [value * unit for (value,) in trips.rows(query, "near")]
        found = [value for (value,) in trips.rows(query, target)]
        assert found == pytest.approx(expected, rel=1e-3, abs=2 * STEPS[target])


def test_a_granted_model_predicts_the_same(trips: Workbench, shared_superuser: Workbench) -> None:
    """Its scale was learned of rows that the role may not read: its plans and cursors lack it."""
    with another_role(trips, shared_superuser, "dispatcher") as session:
        trips.rows("SELECT cerebro.grant_predict('far', 'dispatcher')")
        session.rows("CREATE TEMP TABLE mine AS SELECT n AS id, n % 101 AS distance"
                     " FROM generate_series(1, 20) n")  # fmt: skip
        query = "SELECT lower, upper FROM cerebro.predict(%s, %s, 'id'{}) ORDER BY id::integer"
        found = session.rows(query.format(", owner => 'cerebro'"), "far", "mine")
        outline = session.value("SELECT outline::text FROM cerebro.model_grant WHERE model = 'far'")
        assert "deviation" not in outline
        trips.rows("CREATE TEMP TABLE mine AS SELECT n AS id, n % 101 AS distance"
                   " FROM generate_series(1, 20) n")  # fmt: skip
        assert found == trips.rows(query.format(""), "far", "mine")


def test_a_version_is_compared_with_one_of_another_scale(trips: Workbench) -> None:
    """A worse version does not replace a better one, and a refreshed one is about as good."""
    trips.rows(
        "INSERT INTO trips SELECT n, 50, false, 0, 1800000000 FROM generate_series(601, 640) n"
    )
    trips.messages()
    train(trips, "far", QUICK.replace("epochs => 3", "epochs => 1"))
    assert "is not better than version 1" in "".join(trips.messages())
    before = read_version(trips, "far")["value"]
    trips.rows("DELETE FROM trips WHERE id > 600; DELETE FROM trips WHERE id % 40 = 1")
    trips.rows("SELECT FROM cerebro.refresh('far')")
    query = (
        "SELECT value FROM cerebro.version_log WHERE model = 'far' ORDER BY version DESC LIMIT 1"
    )
    assert trips.value(query) < 2 * before


@pytest.mark.parametrize("rest", ["n % 90", "n % 90 * 100"])
def test_numbers_that_double_precision_does_not_tell_apart_are_reported(
    bench: Workbench, rest: str
) -> None:
    """The view and the arguments of the message are a call without the message."""
    bench.rows(
        f"CREATE TABLE ticks AS SELECT n AS id, n % 7 AS x, (1::bigint << 62) + {rest} AS "
        '"At" FROM generate_series(1, 300) n'
    )
    query = "SELECT why FROM cerebro.plan({}, task => 'regression') WHERE section = 'target'"
    try:
        reason = bench.value(query.format("'ticks', 'At'"))
    except psycopg2.errors.InvalidParameterValue as error:
        reason = str(error)
    assert "its 90 different values are" in reason
    view, arguments = reason.partition("CREATE VIEW")[2].split(" then ")
    bench.rows(f"CREATE VIEW {view}")
    more = arguments.splitlines()[0].rstrip(".")
    assert "double precision" not in bench.value(query.format(more))
    bench.rows("DROP TABLE ticks CASCADE")
