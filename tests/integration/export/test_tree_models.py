"""Boosted trees as files predict for raw rows what the database predicts."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import lightgbm
import numpy as np
import pytest
from mlflow_models import check_registered
from shops import COLUMNS, check_onnx, columns, make_shops, train
from workbench import Workbench

import cerebro_db
from cerebro_db import errors
from cerebro_db.export.recipe.rows import RawRows

FIT_WORKERS = 1
pytestmark = pytest.mark.filterwarnings(
    "ignore:column .* which the model does not know:UserWarning"
)


@pytest.fixture(scope="module")
def session(bench: Workbench) -> Iterator[cerebro_db.Session]:
    make_shops(bench)
    train(bench, "classes", "opening", "open", "boosting", epochs=3)
    train(bench, "numbers", "turning", "turnover", "boosting", epochs=3)
    with cerebro_db.connect(bench.url) as opened:
        yield opened


@pytest.mark.parametrize(("model", "source"), [("classes", "opening"), ("numbers", "turning")])
def test_files_predict_what_the_database_predicts(
    bench: Workbench, session: cerebro_db.Session, model: str, source: str, tmp_path: Path
) -> None:
    later = f"{source}_later"
    check_onnx(bench, session, model, later, tmp_path)
    path, description = session.export_lightgbm(model, tmp_path / "m.txt")
    rows = RawRows.of(description.read_text())
    names = [feature["column"] for feature in rows.features]
    booster = lightgbm.Booster(model_file=path)
    scores = np.asarray(booster.predict(rows.matrix(columns(bench, later, names))))
    query = (
        "SELECT prediction, probabilities FROM cerebro.predict(%s, %s, id_col => 'id') "
        "ORDER BY id::integer"
    )
    predictions = bench.rows(query, model, later)
    if model == "classes":
        # The text has no temperature.
        pair = np.maximum([1 - scores, scores], 1e-7)
        pair **= 1 / rows.description.get("temperature", 1.0)
        scores = pair[1] / pair.sum(axis=0)
        shares = [probabilities["true"] for _, probabilities in predictions]
        assert np.abs(scores - shares).max() < 1e-6  # the database has single precision
        return
    scale = rows.description["target_scale"]
    numbers = scale["low"] + (scale["offset"] + scale["deviation"] * scores)
    numbers = np.clip(numbers, scale["low"], scale["high"])
    expected = np.array([float(prediction) for prediction, _ in predictions])
    assert np.abs(numbers - expected).max() < 1e-6 * scale["deviation"]


@pytest.mark.long
def test_trees_beside_a_network_are_one_graph(
    bench: Workbench, session: cerebro_db.Session, tmp_path: Path
) -> None:
    """A version whose members are a network and trees of one table, with the same recipe."""
    train(bench, "both", "turning", "turnover", "linear")
    (both,), (numbers,) = (
        bench.rows("SELECT recipe::text FROM cerebro.version_log WHERE model = %s", model)
        for model in ("both", "numbers")
    )
    assert both == numbers
    bench.rows(
        "INSERT INTO cerebro.member_log SELECT owner, 'both', version, group_value, 2, run_id, "
        "mst_key, template, params, 0.25, architecture, compile_params, backend, state_bytes "
        "FROM cerebro.member_log WHERE model = 'numbers'"
    )
    check_onnx(bench, session, "both", "turning_later", tmp_path)
    with pytest.raises(errors.FeatureNotSupported, match="adds up several members"):
        session.export_lightgbm("both", tmp_path / "m.txt")


@pytest.mark.long
def test_trees_are_registered_as_a_graph(
    bench: Workbench, session: cerebro_db.Session, tmp_path: Path
) -> None:
    rows = columns(bench, "opening_later", list(COLUMNS))
    (tmp_path / "given").write_bytes(pickle.dumps(rows))
    check_registered(bench, "opening", tmp_path, model="classes", apart=1e-5)


def test_trees_are_not_a_model_of_keras(session: cerebro_db.Session, tmp_path: Path) -> None:
    with pytest.raises(errors.FeatureNotSupported, match="not a model of Keras"):
        session.export_keras("classes", tmp_path / "m.keras")
    assert not list(tmp_path.iterdir())
