"""Networks of an architecture table among the templates of cerebro.train."""

from __future__ import annotations

import json

import pytest
from models import dense, sequential
from roles import refused
from workbench import Workbench

TABLE = """CREATE TABLE parcels AS
    SELECT n AS id, n % 13 AS width, n % 7 AS height, (ARRAY['a', 'b'])[n % 2 + 1] AS kind,
           n % 13 + n % 7 > 9 AS heavy, (1000 + 50 * (n % 13) + 20 * (n % 7))::float8 AS price
    FROM generate_series(1, 400) AS n"""
CLASSES = sequential([2], dense(16, "hidden"), dense(2, "out", "softmax"))
NUMBER = sequential([2], dense(16, "hidden"), dense(1, "out", "linear"))
COLUMNS = "columns => 'width, height', seed => 1, ensemble => 1, workers => 1"


@pytest.fixture(scope="module")
def parcels(bench: Workbench) -> Workbench:
    bench.rows(TABLE)
    for text in (CLASSES, NUMBER):
        bench.rows("SELECT load_keras_model('\"my nets\"', %s::json)", text)
    weights = "\\x" + "00" * 4 * (2 * 16 + 16 + 16 * 2 + 2)
    bench.rows("SELECT load_keras_model('\"my nets\"', %s::json, %s::bytea)", CLASSES, weights)
    return bench


@pytest.mark.long
@pytest.mark.parametrize(
    ("target", "model_id", "metric"),
    [("heavy", 1, "accuracy"), ("price", 2, "r2")],
    ids=["classes", "a number"],
)
def test_they_are_trained_and_predict_like_any_template(
    parcels: Workbench, target: str, model_id: int, metric: str
) -> None:
    name = f'"my nets":{model_id}'
    arguments = (
        f"'parcels', '{target}', models => %s, space => '{{\"lr\": 0.02}}', metric => '{metric}', "
        f"{COLUMNS}"
    )
    call = f"SELECT template FROM cerebro.train({arguments}, "
    beside = parcels.rows(f"{call} configs => 2, epochs => 1)", [name, "linear"])
    assert {template for (template,) in beside} == {name, "linear"}
    assert parcels.rows(f"{call} configs => 1, epochs => 30)", [name]) == [(name,)]
    parcels.rows("SELECT cerebro.deploy(%s, 'newest')", f"parcels_{target}")
    told = parcels.value(
        f"SELECT value FROM cerebro.evaluate('parcels_{target}', 'parcels') WHERE metric = "
        f"'{metric}' AND class IS NULL"
    )
    assert told > 0.85
    verified: dict[str, bool] = dict(
        parcels.rows(f"SELECT what, ok FROM cerebro.verify('parcels_{target}')")
    )
    assert all(verified.values()) and verified.keys() >= {"state", "state of all rows"}


REFUSED = {
    '"my nets":9': ("42704", "has no model 9"),
    '"my nets":3': ("0A000", "has weights to begin from"),
    '"my nets":2': ("22023", "gives 1 number; expected 2"),
    "nowhere:1": ("42P01", "does not exist"),
    "parcels:1": ("42703", "missing columns"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("call", ["train", "plan"])
def test_what_cannot_be_trained_is_refused_before(parcels: Workbench, call: str, name: str) -> None:
    code, words = REFUSED[name]
    runs = parcels.value("SELECT count(*) FROM cerebro.run")
    statement = f"SELECT * FROM cerebro.{call}('parcels', 'heavy', models => %s, {COLUMNS})"
    refused(parcels, statement, [name], code=code, words=words)
    assert parcels.value("SELECT count(*) FROM cerebro.run") == runs


def test_the_width_that_is_wanted_is_told(parcels: Workbench) -> None:
    statement = (
        "SELECT * FROM cerebro.plan('parcels', 'heavy', models => %s, columns => 'width, height, "
        "kind')"
    )
    error = refused(
        parcels, statement, ['"my nets":1'], code="22023", words="takes rows of shape [2]"
    )
    assert error.diag.message_hint is not None
    wanted = json.loads(error.diag.message_hint.split("batch_shape ")[1].split("]")[0] + "]")
    net = sequential(wanted[1:], dense(2, "out", "softmax"))
    parcels.rows("SELECT load_keras_model('wider', %s::json)", net)
    assert parcels.rows(statement, ["wider:1"])
