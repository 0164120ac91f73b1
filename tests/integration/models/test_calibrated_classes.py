"""A temperature, a threshold and costs are a part of each prediction, whoever makes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from roles import another_role, refused
from shops import check_onnx
from versions import trained
from workbench import Workbench

import cerebro_db

ALARMS = """
    CREATE TABLE alarms AS
    SELECT n AS id, n * 7919 % 101 AS heat, n * 31 % 17 AS noise,
           CASE WHEN n * 7919 % 101 + n * 104729 % 97 > 150 THEN 'yes' ELSE 'no' END AS fire
    FROM generate_series(1, 900) n;
    ALTER TABLE alarms ADD PRIMARY KEY (id)"""
SMALL = "models => '{linear}', configs => 1, epochs => 4, ensemble => 1, seed => 1"
TEMPERATURE = 2.5
THRESHOLD = 0.4
CALIBRATION = json.dumps({"temperature": TEMPERATURE, "threshold": THRESHOLD})
Prediction = tuple[str, float, dict[str, float]]


@pytest.fixture(scope="module")
def model(bench: Workbench) -> str:
    bench.rows(ALARMS)
    trained(bench, "alarm", "alarms", "fire", template="linear")
    return "alarm"


@pytest.fixture
def session(bench: Workbench, shared_superuser: Workbench, model: str) -> Iterator[Workbench]:
    calibrate(shared_superuser, "{}")
    bench.messages()
    yield bench
    bench.rows("ROLLBACK; RESET ALL")


def calibrate(superuser: Workbench, calibration: str) -> None:
    statement = "UPDATE cerebro.version_log SET calibration = %s::jsonb WHERE model = 'alarm'"
    superuser.rows(statement, calibration)


def predict(session: Workbench, *others: str) -> list[Prediction]:
    arguments = ", ".join(("'alarm'", "'alarms'", "'id'", *others))
    return session.rows(
        "SELECT prediction, probability, probabilities FROM "
        f"cerebro.predict({arguments}) ORDER BY id::integer"
    )


def expected(rows: list[Prediction]) -> list[Prediction]:
    """Return what predictions are under the temperature and the threshold."""
    result = []
    for _, _, probabilities in rows:
        powers = {name: p ** (1 / TEMPERATURE) for name, p in probabilities.items()}
        heated = {name: power / sum(powers.values()) for name, power in powers.items()}
        name = "yes" if heated["yes"] >= THRESHOLD else "no"
        result.append((name, heated[name], heated))
    return result


def check(found: list[Prediction], wanted: list[Prediction], apart: float = 1e-12) -> None:
    for row, wanted_row in zip(found, wanted, strict=True):
        assert row[0] == wanted_row[0]
        assert row[1] == pytest.approx(wanted_row[1], abs=apart)
        assert row[2] == pytest.approx(wanted_row[2], abs=apart)


def test_each_function_predicts_with_them(
    session: Workbench, shared_superuser: Workbench, tmp_path: Path
) -> None:
    """Also for another role, in another version of the model from a file, and as ONNX."""
    raw = predict(session)
    wanted = expected(raw)
    assert {name for name, *_ in wanted} == {"yes", "no"}
    assert [row[0] for row in wanted] != [row[0] for row in raw]
    calibrate(shared_superuser, CALIBRATION)
    found = predict(session)
    check(found, wanted)
    rows = session.rows(
        "SELECT prediction, probability, probabilities FROM "
        "cerebro.predict_rows('alarm', NULL::alarms) p ORDER BY (p.row).id"
    )
    assert rows == found
    records: list[dict[str, Any]] = [
        record
        for (record,) in session.rows(
            "SELECT cerebro.predict_row('alarm', to_jsonb(a)) FROM alarms a ORDER BY id LIMIT 30"
        )
    ]
    names = ("prediction", "probability", "probabilities")
    check([tuple(record[name] for name in names) for record in records], wanted[:30], 1e-6)
    with another_role(session, shared_superuser, "warden") as other:
        session.rows(
            "SELECT cerebro.grant_predict('alarm', 'warden'); GRANT SELECT ON alarms TO warden"
        )
        check(predict(other, "owner => 'cerebro'"), wanted)
        outline = other.value("SELECT outline::text FROM cerebro.model_grant")
        assert "temperature" not in outline and "calibration" not in outline
        session.rows("SELECT cerebro.revoke_predict('alarm', 'warden')")
    with cerebro_db.connect(session.url) as client:
        check_onnx(session, client, "alarm", "alarms", tmp_path)


def test_evaluations_and_importances_measure_them(
    session: Workbench, shared_superuser: Workbench
) -> None:
    metrics = "SELECT metric, value FROM cerebro.evaluate('alarm', 'alarms') WHERE class IS NULL"
    before: dict[str, float] = dict(session.rows(metrics))
    calibrate(shared_superuser, CALIBRATION)
    after: dict[str, float] = dict(session.rows(metrics))
    labels = [label for (label,) in session.rows("SELECT fire FROM alarms ORDER BY id")]
    found = predict(session)
    hits = [row[0] == label for row, label in zip(found, labels, strict=True)]
    assert after["accuracy"] == pytest.approx(sum(hits) / len(hits))
    assert after["log_loss"] != before["log_loss"]
    assert after["auc"] == pytest.approx(before["auc"])
    importance = "SELECT sum(importance) FROM cerebro.importance('alarm', 'alarms')"
    heated = session.value(importance)
    calibrate(shared_superuser, "{}")
    assert session.value(importance) != heated


def test_attributions_explain_the_probability_that_is_predicted(
    session: Workbench, shared_superuser: Workbench
) -> None:
    """That of the predicted class, which a threshold chooses, compared with a neutral row."""
    calibrate(shared_superuser, CALIBRATION)
    found = predict(session)
    assert any(probabilities["yes"] < 0.5 for name, _, probabilities in found if name == "yes")
    sums = session.rows(
        "SELECT sum(attribution) - min(gap) FROM cerebro.attribution('alarm', 'alarms') "
        "GROUP BY id ORDER BY id::integer"
    )
    rest: dict[str, list[float]] = {"yes": [], "no": []}
    for (name, probability, _), (explained,) in zip(found, sums, strict=True):
        rest[name].append(probability - explained)
    for neutral in rest.values():
        assert neutral == pytest.approx([neutral[0]] * len(neutral), abs=1e-5)
    assert rest["yes"][0] + rest["no"][0] == pytest.approx(1, abs=1e-5)


def test_a_version_shows_them(session: Workbench, shared_superuser: Workbench) -> None:
    view = "SELECT temperature, threshold FROM cerebro.model_version WHERE model = 'alarm'"
    assert session.row(view) == (1.0, None)
    calibrate(shared_superuser, CALIBRATION)
    assert session.row(view) == (TEMPERATURE, {"yes": THRESHOLD})


def test_the_threshold_is_chosen_for_the_metric(session: Workbench) -> None:
    """Its value is what an evaluation of the rows that were held back measures."""
    session.rows(
        "CREATE TABLE later AS SELECT * FROM alarms WHERE id > 500; CREATE TABLE earlier AS "
        "SELECT * FROM alarms WHERE id <= 500"
    )
    options = f"{SMALL}, split => 'table later', metric => 'f1'"
    session.rows(f"SELECT FROM cerebro.train('earlier', 'fire', 'chosen', {options})")
    view = "SELECT value, threshold FROM cerebro.model_version WHERE model = 'chosen'"
    value, threshold = session.row(view)
    assert threshold is not None and list(threshold) == ["yes"]
    (notice,) = [text for text in session.messages() if "from a probability of" in text]
    assert "predicts 'yes'" in notice and "best for f1" in notice
    measured = (
        "SELECT value FROM cerebro.evaluate('chosen', 'later') "
        "WHERE metric = 'f1' AND class IS NULL"
    )
    assert session.value(measured) == pytest.approx(value)
    found = session.rows(
        "SELECT prediction, probabilities FROM cerebro.predict('chosen', 'later', 'id')"
    )
    assert {(name == "yes") == (told["yes"] >= threshold["yes"]) for name, told in found} == {True}
    assert any(name == "yes" and told["yes"] < 0.5 for name, told in found)


COSTS = {"no": {"yes": 2.0}, "yes": {"no": 3.0}}


def test_costs_decide_the_class_without_a_threshold(
    session: Workbench, shared_superuser: Workbench, tmp_path: Path
) -> None:
    """In predictions, in their evaluation, in the view, and in an exported model."""
    raw = predict(session)
    calibrate(shared_superuser, json.dumps({"costs": COSTS}))
    found = predict(session)
    assert [row[2] for row in found] == [row[2] for row in raw]
    for name, _, probabilities in found:
        assert (name == "yes") == (3 * probabilities["yes"] > 2 * probabilities["no"])
    assert [row[0] for row in found] != [row[0] for row in raw]
    labels = [label for (label,) in session.rows("SELECT fire FROM alarms ORDER BY id")]
    costs = [COSTS[label].get(row[0], 0.0) for row, label in zip(found, labels, strict=True)]
    measured = "SELECT value FROM cerebro.evaluate('alarm', 'alarms') WHERE metric = 'cost'"
    assert session.value(measured) == pytest.approx(sum(costs) / len(costs))
    assert session.value("SELECT costs FROM cerebro.model_version WHERE model = 'alarm'") == COSTS
    with another_role(session, shared_superuser, "ranger") as other:
        session.rows(
            "SELECT cerebro.grant_predict('alarm', 'ranger'); GRANT SELECT ON alarms TO ranger"
        )
        assert predict(other, "owner => 'cerebro'") == found
        session.rows("SELECT cerebro.revoke_predict('alarm', 'ranger')")
    session.rows("SELECT cerebro.import_model(cerebro.export_model('alarm'), 'alarm_copy')")
    assert session.value("SELECT costs FROM cerebro.model_version WHERE model = 'alarm_copy'")
    with cerebro_db.connect(session.url) as client:
        check_onnx(session, client, "alarm", "alarms", tmp_path)
    calibrate(shared_superuser, "{}")
    assert session.rows(measured) == []


def test_a_call_names_costs(session: Workbench) -> None:
    """A version with other costs is deployed if its predictions cost less."""
    call = f"SELECT FROM cerebro.train('alarms', 'fire', 'dear', {SMALL}"
    session.rows(f"{call})")
    costs = json.dumps({"yes": {"no": 19}})
    session.rows(f"{call}, costs => '{costs}')")
    (notice,) = [text for text in session.messages() if "from a probability of" in text]
    assert "predicts 'yes' from a probability of 0.05 on" in notice
    assert "has the smallest expected cost" in notice
    view = (
        "SELECT version, metric, costs, threshold FROM cerebro.model_version "
        "WHERE deployed AND model = 'dear'"
    )
    assert session.row(view) == (2, "log_loss", {"yes": {"no": 19.0}}, {"yes": 0.05})
    spec = "SELECT spec -> 'train' -> 'costs' FROM cerebro.run_log ORDER BY run_id DESC LIMIT 1"
    assert session.value(spec) == {"yes": {"no": 19.0}}
    plan = session.row(
        "SELECT what, data FROM cerebro.plan('alarms', 'fire', 'dear', models => '{linear}', "
        f"costs => '{costs}') WHERE name = 'costs'"
    )
    assert plan == ("'yes' is predicted from a probability of 0.05 on", {"yes": {"no": 19.0}})


def test_costs_of_groups_and_of_several_classes(session: Workbench) -> None:
    session.rows(
        "CREATE TABLE sorts AS SELECT id, heat, noise, id % 2 AS line, "
        "(ARRAY['a', 'b', 'c'])[heat / 34 + 1] AS sort FROM alarms"
    )
    costs = {"a": {"b": 0.5, "c": 30.0}, "c": {"a": 8.0}}
    session.rows(
        f"SELECT FROM cerebro.train('sorts', 'sort', 'sorting', {SMALL}, group_by => 'line', "
        f"columns => 'heat, noise, line', costs => '{json.dumps(costs)}')"
    )
    classes = "abc"
    found = session.rows(
        "SELECT prediction, probabilities FROM cerebro.predict('sorting', 'sorts', 'id')"
    )
    assert session.value("SELECT count(*) FROM cerebro.model_group WHERE model = 'sorting'") == 2
    for name, shares in found:
        expected = {
            predicted: sum(
                shares[actual] * costs.get(actual, {}).get(predicted, float(actual != predicted))
                for actual in classes
            )
            for predicted in classes
        }
        assert expected[name] <= min(expected.values()) + 1e-9


@pytest.mark.parametrize(
    ("target", "costs", "message"),
    [
        ("heat", {"1": {"2": 3}}, "costs are of classes, but heat is predicted as a number"),
        ("fire", {"yes": {"maybe": 3}}, "costs names 'maybe', which fire does not have"),
        ("fire", {"yes": {"yes": 3}}, "costs has 3 for class 'yes' if it is predicted, but 1 if"),
        ("fire", {"yes": 3}, "costs has 3 for class 'yes'; expected an object"),
    ],
)
def test_costs_that_do_not_fit_are_refused(
    session: Workbench, target: str, costs: object, message: str
) -> None:
    """A plan refuses them, too, and no run is logged."""
    runs = session.value("SELECT count(*) FROM cerebro.run")
    task = "task => 'regression', " if target == "heat" else ""
    for function in ("train", "plan"):
        call = f"SELECT FROM cerebro.{function}('alarms', '{target}', {task}{SMALL}, costs => %s)"
        refused(session, call, json.dumps(costs), code="22023", words=message)
    assert session.value("SELECT count(*) FROM cerebro.run") == runs
