"""Run scikit-learn on a table as an expert would: a pipeline, tuned by random search."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.metrics import accuracy_score, root_mean_squared_error
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from bench.quality.holdout import TrainRows
from bench.quality.task import CLASSIFICATION, Values

MOST_ONE_HOT = 100
MOST_ORDINAL = 200
MOST_ITERATIONS = 200
MOST_PASSES = 10_000_000
"""Most rows, counted once for each iteration, that an MLP learns from."""
LAYERS = ((64,), (128,), (128, 64), (256, 128), (256, 256))
Make = Callable[[pandas.DataFrame, str, np.random.RandomState], Any]


def score(task: str, truth: Values, predicted: Values) -> float:
    """Return the accuracy or the negative RMSE, so that more is better."""
    if task == CLASSIFICATION:
        return float(accuracy_score(truth, predicted))
    return -float(root_mean_squared_error(truth, predicted))


def tune(make: Make, rows: TrainRows, task: str, seconds: float, seed: int) -> Any:
    """Return the best random pipeline, fitted to all rows.

    Args:
        seconds: time to draw pipelines; at least one is drawn.
    """
    random = np.random.RandomState(seed)
    began = time.monotonic()
    inputs = rows.inputs
    train = ~rows.held
    best: tuple[float, Any] | None = None
    while best is None or time.monotonic() - began < seconds:
        pipeline = make(inputs, task, random)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # networks that have not converged
            pipeline.fit(inputs[train], rows.targets[train])
            value = score(task, rows.targets[rows.held], pipeline.predict(inputs[rows.held]))
        if best is None or value > best[0]:
            best = (value, pipeline)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return best[1].fit(inputs, rows.targets)


def make_mlp(rows: pandas.DataFrame, task: str, random: np.random.RandomState) -> Any:
    """Draw an MLP over standardised numbers and one-hot categories, with imputed means."""
    settings = {
        "hidden_layer_sizes": LAYERS[random.randint(len(LAYERS))],
        "alpha": 10 ** random.uniform(-6, 0),
        "learning_rate_init": 10 ** random.uniform(-4, -2),
        "early_stopping": True,
        "max_iter": min(MOST_ITERATIONS, max(1, MOST_PASSES // len(rows))),
        "random_state": random.randint(1000),
    }
    regressor = TransformedTargetRegressor(MLPRegressor(**settings), transformer=StandardScaler())
    model = MLPClassifier(**settings) if task == CLASSIFICATION else regressor
    return make_pipeline(_make_number_encoder(rows), model)


def encode(rows: pandas.DataFrame, is_train_row: Values) -> Values:
    """Return the inputs of such an MLP; statistics are those of the training rows."""
    inputs = convert_dates(rows)
    encoded = _make_number_encoder(inputs).fit(inputs[is_train_row]).transform(inputs)
    return np.asarray(encoded.toarray() if hasattr(encoded, "toarray") else encoded)


def make_boosting(rows: pandas.DataFrame, task: str, random: np.random.RandomState) -> Any:
    """Draw boosted trees over numbers and category codes."""
    codes = {
        "handle_unknown": "use_encoded_value",
        "unknown_value": -1,
        "encoded_missing_value": -1,
    }
    kind = (
        HistGradientBoostingClassifier if task == CLASSIFICATION else HistGradientBoostingRegressor
    )
    return make_pipeline(
        _make_column_transformer(
            rows, "passthrough", OrdinalEncoder(**codes, max_categories=MOST_ORDINAL)
        ),
        kind(**draw_boosting_settings(random)),
    )


def draw_boosting_settings(random: np.random.RandomState) -> dict[str, Any]:
    """Draw settings of boosted trees."""
    return {
        "learning_rate": 10 ** random.uniform(-2, -0.3),
        "max_leaf_nodes": random.randint(7, 64),
        "min_samples_leaf": random.randint(5, 50),
        "l2_regularization": 10 ** random.uniform(-6, 1),
        "max_iter": random.randint(50, 500),
        "early_stopping": False,
    }


RIVALS: Mapping[str, Make] = {"MLP": make_mlp, "boosting": make_boosting}


def convert_dates(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Return rows with dates as seconds, which scikit-learn accepts."""
    dates = [name for name in rows if pandas.api.types.is_datetime64_any_dtype(rows[name])]
    return rows.assign(
        **{str(name): rows[name].astype("datetime64[s]").astype("int64") for name in dates}
    )


def _make_number_encoder(rows: pandas.DataFrame) -> Any:
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    encoder = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MOST_ONE_HOT)
    return _make_column_transformer(
        rows, numbers, make_pipeline(SimpleImputer(strategy="constant", fill_value="?"), encoder)
    )


def _make_column_transformer(rows: pandas.DataFrame, numbers: Any, categories: Any) -> Any:
    texts = [name for name in rows if not pandas.api.types.is_numeric_dtype(rows[name])]
    return make_column_transformer(
        (numbers, [name for name in rows if name not in texts]), (categories, texts)
    )
